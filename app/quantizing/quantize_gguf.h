// A GGUF file in plain precision, written again with its matrices in Q8_0 or Q4_0. Metadata is copied. Vectors, norms
// and routers stay as they are; in a Q4_0 file the output matrix, and an embedding that is one, are in Q8_0.
// Thread  one.
// Fails   StartError: a file that is one of several, or has no matrix in plain precision; one that cannot be written.
// Equals  gguf 0.19's quantize(), bit for bit.
// Source  the block layouts of ggml.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace quire::app {

// Blocks of row.size() / 32, of a type that has them: "Q8_0", "Q4_0".
void append_blocks(std::string_view type, std::span<const float> row, std::string& out);

struct QuantizedGguf {
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes = 0;
  std::size_t num_matrices = 0;
};

QuantizedGguf quantize_gguf(const std::string& model, std::string_view type, const std::string& out,
                            const std::function<void(std::uint64_t done, std::uint64_t size)>& on_progress);

}  // namespace quire::app
