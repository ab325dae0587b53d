// A checkpoint's tensors by name: of the shards that model.safetensors.index.json names, else of model.safetensors.
// Only headers are read here; a tensor's data is a view into its mapped file and may be unaligned.
// Owner   views into ModelFiles, which must outlive the checkpoint.
// Thread  one, while starting.
// Fails   StartError naming file and tensor: a header that overruns its file or passes 100 MB, bad JSON, a name twice,
//         offsets outside the file, overlapping or leaving a hole, a byte length that is not shape x dtype.
// Source  the safetensors format description (huggingface/safetensors, README): 8 bytes header length, JSON, data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/tensors.h"
#include "core/model/model_files.h"

namespace quire::model {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

struct Tensor {
  std::string name;
  std::string dtype;  // as the header spells it: "BF16"
  std::vector<std::uint64_t> shape;
  FileBytes data;
  std::string file;  // as errors call it

  std::uint64_t num_elements() const;            // checked when the header was read
  std::optional<backend::DType> number() const;  // F32, BF16, F16; nothing for any other dtype
};

// The tensors of one file, in file order.
std::vector<Tensor> parse_safetensors(FileBytes file, const std::string& name);

class Checkpoint {
 public:
  static Checkpoint open(const ModelFiles& files);
  // Of a decoder with its head: a checkpoint saved from the decoder alone names its tensors without "model.".
  static Checkpoint open_decoder(const ModelFiles& files);

  const Tensor* find(std::string_view name) const;
  // By name, ascending.
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }
  std::uint64_t num_parameters() const;
  std::uint64_t bytes() const;
  // The file that names the tensors: the index of a sharded checkpoint, or the one safetensors file.
  const std::string& file() const { return file_; }
  // The names of the files that hold the tensors, ascending.
  const std::vector<std::string>& files() const { return files_; }

 private:
  using ShardOf = std::map<std::string, std::string>;  // the file of a tensor
  void add_shards(const ModelFiles& files, const std::string& index, const ShardOf& shard_of);

  std::map<std::string, Tensor, std::less<>> tensors_;
  std::string file_;
  std::vector<std::string> files_;
};

// "[64, 172]"
std::string shape_text(std::span<const std::uint64_t> shape);

}  // namespace quire::model
