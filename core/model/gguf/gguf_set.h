// The GGUF files of one model: one file, or all parts of a split one. Only the first part has the model's metadata.
// Owner   the files' mappings; every view is valid as long as the object.
// Thread  one, at start; reading: any.
// Fails   StartError: a missing or foreign part, a part in place of the first, two tensors of one name, a file that is
//         no model (an adapter, a tower of images).
// Source  llama.cpp's gguf-split: "NAME-00001-of-00003.gguf", split.no, split.count, split.tensors.count.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/gguf/gguf_file.h"
#include "core/model/source/mapped_file.h"

namespace quire::model {

class GgufSet {
 public:
  // `path`: the file, or any part of a split one.
  explicit GgufSet(const std::string& path);

  const GgufFile& metadata() const { return *files_.front(); }
  const std::vector<std::unique_ptr<GgufFile>>& files() const { return files_; }
  // Null: no such file or tensor.
  const MappedFile* mapped(std::string_view file_name) const;
  const GgufTensor* find(std::string_view tensor) const;
  const std::map<std::string_view, const GgufTensor*>& tensors() const { return tensors_; }

 private:
  void open(const std::string& path);

  std::vector<std::unique_ptr<MappedFile>> mapped_;
  std::vector<std::unique_ptr<GgufFile>> files_;
  std::map<std::string_view, const GgufTensor*> tensors_;
};

// "a/x-00002-of-00003.gguf" → the names of all three; a file that is not split is alone.
std::vector<std::string> parts_of_split(const std::string& path);

}  // namespace quire::model
