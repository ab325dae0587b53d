// The metadata of a set's architecture, "llama.block_count" by the name "block_count", and its tensors.
// Owner   borrows the set, which must outlive the object.
// Thread  start.
// Fails   StartError naming file and key or tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/gguf/gguf_set.h"

namespace quire::model {

class GgufSource {
 public:
  explicit GgufSource(const GgufSet& set);

  const std::string& architecture() const { return architecture_; }
  const GgufFile& file() const { return file_; }
  std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }

  // Nothing: the file has no such key.
  std::optional<std::uint64_t> uint(std::string_view name) const { return file_.uint(key(name)); }
  std::optional<double> number(std::string_view name) const;  // finite
  std::optional<bool> flag(std::string_view name) const { return file_.flag(key(name)); }
  std::optional<std::vector<bool>> flags(std::string_view name) const;  // of layers() at most
  std::uint64_t require_uint(std::string_view name) const;
  // A number for each of layers(): one for all, or a list. Empty: the file has no such key.
  std::vector<std::uint64_t> by_layer(std::string_view name) const;

  std::uint64_t layers() const;    // of the decoder: blocks but for the last ones, which propose drafts
  std::uint64_t blocks() const;    // at most 4,096
  std::uint64_t heads() const;     // at least 1
  std::uint64_t kv_heads() const;  // of the first layer
  std::uint64_t head_dim() const;

  bool has_tensor(std::string_view name) const { return find(name) != nullptr; }
  const GgufTensor* find(std::string_view name) const { return set_.find(name); }
  const GgufTensor& require(std::string_view name) const;
  // The numbers of a tensor of F32, all of them finite.
  std::vector<float> numbers(const GgufTensor& tensor) const;
  [[noreturn]] void refuse_tensor(const GgufTensor& tensor, std::string_view why) const;

 private:
  const GgufSet& set_;
  const GgufFile& file_;
  std::string architecture_;
};

}  // namespace quire::model
