// Decoding speed of one stream on this machine's CPU. A step reads the weights of one token once, and K and V of the
// context:
//   tokens/s = read bandwidth / (weights of a token + K and V)
// Thread  any; measuring takes a fraction of a second, on threads of its own.
// Source  the roofline model (Williams et al. 2009): a step of one row is bound by memory. Ours: the bandwidth is
//         measured over a buffer as large as the weights, so that a model that fits into the processor's caches is
//         taken at their speed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace quire::app {

struct SpeedEstimate {
  std::uint32_t threads = 0;
  double bytes_per_s = 0;
  std::uint64_t step_bytes = 0;  // of weights that a step of one row reads

  double tokens_per_s(std::uint64_t kv_bytes) const { return bytes_per_s / static_cast<double>(step_bytes + kv_bytes); }
};

// `free_bytes`: of memory; the buffer takes a quarter of it at most. Empty: unknown.
SpeedEstimate estimate_speed(std::uint64_t step_bytes, std::optional<std::uint64_t> free_bytes);

// "about 31 tokens/s for one stream on the CPU, 29 at 4096 tokens of context", and where the figures come from: "an
// estimate: 1.2 GiB of weights read per token at 41.2 GB/s, measured now with 2 threads".
std::string speed_text(const SpeedEstimate& speed, std::uint32_t context, std::uint64_t kv_bytes);
std::string speed_source_text(const SpeedEstimate& speed);

}  // namespace quire::app
