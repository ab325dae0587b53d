// Read bandwidth of this machine's memory.
// Thread  any; measuring starts threads of its own.
#pragma once

#include <cstdint>
#include <vector>

namespace quire::app {

// Bytes read per second, one figure per run: each of `num_threads` threads reads its part of a buffer much larger than
// the caches.
std::vector<double> measure_read_bandwidth(std::uint32_t num_threads, std::uint64_t buffer_bytes, std::uint32_t runs);

}  // namespace quire::app
