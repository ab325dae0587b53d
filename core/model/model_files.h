// Where a model's files come from: a directory, mapped read-only, or memory (the model linked into the binary).
// Owner   the caller; every span given out lives exactly as long as this object.
// Thread  one, while starting: find() maps on first use. Spans already given out may be read by any thread.
// Fails   StartError: no such directory, or a file that is there but cannot be read. No such file is a nullopt.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/model/mapped_file.h"

namespace quire::model {

class ModelFiles {
 public:
  static std::unique_ptr<ModelFiles> directory(const std::string& path);
  // The names and bytes must outlive the object: they are the program's own read-only data.
  static std::unique_ptr<ModelFiles> memory(std::span<const std::pair<std::string_view, FileBytes>> files);

  virtual ~ModelFiles() = default;

  // A file's bytes, or nothing where there is no such file. `name` is a plain file name, or one in a folder.
  virtual std::optional<FileBytes> find(std::string_view name) const = 0;
  // As find(), but a missing file is a StartError.
  FileBytes require(std::string_view name) const;
  // Of a file as it is mapped; nothing where there is no such file, and for memory.
  virtual std::optional<FileStamp> stamp(std::string_view) const { return std::nullopt; }
  // How to call a file in an error text: "/models/x/config.json" or "embedded:config.json".
  virtual std::string describe(std::string_view name) const = 0;
  // For messages: the other format that lacks this file, and the next step. Empty: it is none that is known.
  virtual std::string explain_missing(std::string_view) const { return {}; }
  // Gives back the memory of the pages that lie wholly inside `bytes`; reading them again maps them again.
  virtual void release(FileBytes bytes) const = 0;
};

}  // namespace quire::model
