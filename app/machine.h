// Facts about this machine: the CPU's name, and how many CPUs and how much memory this process may use.
// Thread  any.
// Fails   unknown things are "unknown" or nothing, never an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace quire::app {

std::string cpu_name();
// The CPUs that this process may run on: its affinity mask, capped by the CPU time that its control groups allow.
std::uint32_t usable_cpus();

// How many CPUs' worth of time the process's control groups and those above them allow, rounded up: cpu.max (version
// 2), cpu.cfs_quota_us over cpu.cfs_period_us (version 1). Nothing where none has a limit. `mounts` is where the groups
// are mounted, `membership` the file that says which are this process's.
std::optional<std::uint32_t> quota_cpus(const std::string& mounts = "/sys/fs/cgroup",
                                        const std::string& membership = "/proc/self/cgroup");

// What the process's control groups and those above them leave of their limits: memory.max and memory.high (version 2),
// memory.limit_in_bytes (version 1), each less what the group holds and the kernel cannot drop. Nothing where none has one.
std::optional<std::uint64_t> group_memory_bytes(const std::string& mounts = "/sys/fs/cgroup",
                                                const std::string& membership = "/proc/self/cgroup");

// The least of what the kernel calls available and what the control groups leave.
std::optional<std::uint64_t> free_memory_bytes();

}  // namespace quire::app
