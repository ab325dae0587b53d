// What this machine is: its CPU's name, the memory a process may still take, how fast memory is read.
// Thread  any; measuring starts threads of its own.
// Fails   unknown things are "unknown" or nothing, never an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quire::app {

std::string cpu_name();
// That this process may run on.
std::uint32_t usable_cpus();

// The least of what the kernel calls available and what is left under the control groups' limits (version 2 and 1).
std::optional<std::uint64_t> free_memory_bytes();

// Bytes a second of `num_threads` threads, each reading its part of a buffer much larger than the caches, one figure a run.
std::vector<double> measure_read_bandwidth(std::uint32_t num_threads, std::uint64_t buffer_bytes, std::uint32_t runs);

}  // namespace quire::app
