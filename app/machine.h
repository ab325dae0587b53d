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
// That this process may run on: its affinity mask, and no more than the control groups give it time for.
std::uint32_t usable_cpus();

// How many CPUs' worth of time the process's control groups and those above them allow, rounded up: cpu.max (version
// 2), cpu.cfs_quota_us over cpu.cfs_period_us (version 1). Nothing where none has a limit. `mounts` is where the groups
// are mounted, `membership` the file that says which are this process's.
std::optional<std::uint32_t> quota_cpus(const std::string& mounts = "/sys/fs/cgroup",
                                        const std::string& membership = "/proc/self/cgroup");

// The least of what the kernel calls available and what is left under the control groups' limits (version 2 and 1).
std::optional<std::uint64_t> free_memory_bytes();

// Bytes a second of `num_threads` threads, each reading its part of a buffer much larger than the caches, one figure a
// run.
std::vector<double> measure_read_bandwidth(std::uint32_t num_threads, std::uint64_t buffer_bytes, std::uint32_t runs);

}  // namespace quire::app
