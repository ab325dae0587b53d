// Facts about this machine: name of the CPU, number of CPUs and amount of memory that this process may use.
// Thread  any.
// Fails   never: an unknown fact is "unknown" or empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace quire::app {

std::string cpu_name();
// Number of CPUs that this process may run on: its affinity mask, limited by the CPU quota of its control groups.
std::uint32_t usable_cpus();

// CPU quota of the process's control groups and their ancestors, in CPUs, rounded up: cpu.max (version 2),
// cpu.cfs_quota_us / cpu.cfs_period_us (version 1). Empty if no group has a limit. `mounts`: the mount point of the
// groups; `membership`: the file that names this process's groups.
std::optional<std::uint32_t> quota_cpus(const std::string& mounts = "/sys/fs/cgroup",
                                        const std::string& membership = "/proc/self/cgroup");

// Memory that the limits of the process's control groups and their ancestors leave: memory.max and memory.high
// (version 2), memory.limit_in_bytes (version 1), each minus what the group uses and the kernel cannot reclaim. Empty
// if no group has a limit.
std::optional<std::uint64_t> group_memory_bytes(const std::string& mounts = "/sys/fs/cgroup",
                                                const std::string& membership = "/proc/self/cgroup");

// The least of those limits themselves. Empty if no group has one.
std::optional<std::uint64_t> group_memory_limit(const std::string& mounts = "/sys/fs/cgroup",
                                                const std::string& membership = "/proc/self/cgroup");

// The smaller of MemAvailable and group_memory_bytes().
std::optional<std::uint64_t> free_memory_bytes();

}  // namespace quire::app
