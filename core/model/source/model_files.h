// Source of a model's files: a directory, mapped read-only, or memory (the model linked into the binary), or a GGUF
// file (core/model/gguf).
// Owner   the caller; every span returned is valid as long as this object.
// Thread  one, at start: find() maps files on first use. Any thread may read the spans.
// Fails   StartError: no such directory, or an unreadable file. A missing file is a nullopt.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/source/mapped_file.h"

namespace quire::model {

struct ModelSpec;
struct Tensor;

// Tensors under the names of a ModelSpec's table, and the files that hold them.
struct NamedTensors {
  std::vector<Tensor> tensors;
  std::vector<std::string> files;
};

// Gives the memory of the pages that lie wholly inside `bytes` back to the kernel; a later read maps them again.
void release_pages(FileBytes bytes);

class ModelFiles {
 public:
  static std::unique_ptr<ModelFiles> directory(const std::string& path);
  // The names and bytes must outlive the object: they are the program's own read-only data.
  static std::unique_ptr<ModelFiles> memory(std::span<const std::pair<std::string_view, FileBytes>> files);

  virtual ~ModelFiles() = default;

  // A file's bytes; nullopt if there is no such file. `name` is a plain file name, or one in a folder.
  virtual std::optional<FileBytes> find(std::string_view name) const = 0;
  // As find(), but a missing file is a StartError.
  FileBytes require(std::string_view name) const;
  // Size and time of a file when it was mapped; nullopt for a missing file and for files in memory.
  virtual std::optional<FileStamp> stamp(std::string_view) const { return std::nullopt; }
  // The file's name in error texts: "/models/x/config.json" or "embedded:config.json".
  virtual std::string describe(std::string_view name) const = 0;
  // For error texts: the other format of a model without this file, and the next step. Empty: no known format.
  virtual std::string explain_missing(std::string_view) const { return {}; }
  virtual void release(FileBytes bytes) const = 0;  // release_pages(), for bytes of mapped files
  // Of a source whose tensors are not in safetensors.
  virtual std::optional<NamedTensors> tensors() const;
  // Fits a spec that was read from config.json to tensors() whose names or layouts are not the family's own.
  virtual void fit(ModelSpec& spec) const;
};

}  // namespace quire::model
