// A checkpoint of plain matrices, written again with its linear layers in fewer bits, as compressed-tensors stores
// them: quire, transformers and vLLM read the result.
//   w8a8   int8, a scale for each output; inputs in 8 bits, for each token
//   fp8    e4m3, a scale for each output; inputs in fp8, for each token
//   w4a16  int4 in groups of 128 inputs (64 or 32, where 128 does not divide them), symmetric
// Embeddings, the output matrix, routers and whatever is no linear layer stay as they are, and so do all other files.
// Shape   shards keep their names; config.json, which completes the directory, is written last. A shard that is there
//         with the tensors that it is to have is kept: an interrupted run goes on where it ended.
// Thread  one.
// Fails   StartError: a checkpoint that is quantised already, matrices whose inputs are no multiple of 32 (w4a16), a
//         directory that cannot be written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace quire::app {

enum class QuantizedForm : std::uint8_t { kW8A8, kFp8, kW4A16 };

struct QuantizedCheckpoint {
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes = 0;
  std::size_t num_matrices = 0;  // in fewer bits
};

QuantizedCheckpoint quantize_checkpoint(const std::string& model, QuantizedForm form, const std::string& out,
                                        const std::function<void(std::uint64_t done, std::uint64_t size)>& on_progress);

}  // namespace quire::app
