#include "app/model/machine.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string_view>
#include <thread>

namespace quire::app {
namespace {

// The value of the first line "key<blanks>: value" or "key value" of a file in /proc or /sys.
std::optional<std::string> line_of(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key)) continue;
    const std::size_t start = line.find_first_not_of(" \t:", key.size());
    return start == line.npos ? std::string() : line.substr(start);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_of(const std::optional<std::string>& text) {
  std::uint64_t value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

// A process's control groups as the kernel names them: "0::/user.slice" (version 2), "4:cpu,cpuacct:/docker/1"
// (version 1).
struct Groups {
  std::string v2 = "/";
  std::string v1_cpu = "/";
  std::string v1_memory = "/";
};

// A group outside of the namespace, "/../other", is not visible: the mount point itself is the nearest that is.
std::string seen(const std::string& group) {
  const bool outside = (group + "/").find("/../") != group.npos;
  return outside ? std::string() : group;
}

Groups groups_of(const std::string& membership) {
  Groups groups;
  std::ifstream file(membership);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = seen(line.substr(second + 1));
    if (controllers == ",,") groups.v2 = group;
    if (controllers.find(",cpu,") != controllers.npos) groups.v1_cpu = group;
    if (controllers.find(",memory,") != controllers.npos) groups.v1_memory = group;
  }
  return groups;
}

// ceil(quota / period), at least 1. "max" and "-1" are not numbers: no limit.
std::optional<std::uint32_t> cpus_of_quota(const std::optional<std::string>& quota,
                                           const std::optional<std::string>& period) {
  const auto time = number_of(quota);
  const auto of = number_of(period);
  if (!time || !of || *of == 0) return std::nullopt;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(*time / *of + (*time % *of != 0 ? 1 : 0), 1,
                                                              std::numeric_limits<std::uint32_t>::max()));
}

std::optional<std::uint32_t> cpus_of_group_v2(const std::string& directory) {
  const auto line = line_of(directory + "/cpu.max", "");  // "150000 100000"
  const std::size_t blank = line ? line->find(' ') : std::string::npos;
  if (blank == std::string::npos) return std::nullopt;
  return cpus_of_quota(line, line->substr(blank + 1));
}

std::optional<std::uint32_t> cpus_of_group_v1(const std::string& directory) {
  return cpus_of_quota(line_of(directory + "/cpu.cfs_quota_us", ""), line_of(directory + "/cpu.cfs_period_us", ""));
}

template <typename T>
std::optional<T> least_of(std::optional<T> a, std::optional<T> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

// Memory that a control group leaves: its limit minus what it uses and cannot drop. "max" is not a number: no limit.
std::optional<std::uint64_t> bytes_left(std::optional<std::uint64_t> most, const std::string& current,
                                        const std::string& stat, std::string_view droppable) {
  const auto held = number_of(line_of(current, ""));
  if (!most || !held) return std::nullopt;
  const std::uint64_t cache = std::min(*held, number_of(line_of(stat, droppable)).value_or(0));
  return *most - std::min(*most, *held - cache);
}

// Above memory.high the kernel throttles a group until it frees memory: treated as a limit.
std::optional<std::uint64_t> limit_of_group_v2(const std::string& directory) {
  const std::string memory = directory + "/memory.";
  return least_of(number_of(line_of(memory + "max", "")), number_of(line_of(memory + "high", "")));
}

// Without a limit the file has the largest whole number of pages in 63 bits.
std::optional<std::uint64_t> limit_of_group_v1(const std::string& directory) {
  constexpr std::uint64_t kNone = std::uint64_t{1} << 62;
  const auto most = number_of(line_of(directory + "/memory.limit_in_bytes", ""));
  return most && *most < kNone ? most : std::nullopt;
}

std::optional<std::uint64_t> bytes_of_group_v2(const std::string& directory) {
  const std::string memory = directory + "/memory.";
  return bytes_left(limit_of_group_v2(directory), memory + "current", memory + "stat", "inactive_file");
}

std::optional<std::uint64_t> bytes_of_group_v1(const std::string& directory) {
  const std::string memory = directory + "/memory.";
  return bytes_left(limit_of_group_v1(directory), memory + "usage_in_bytes", memory + "stat", "total_inactive_file");
}

// The smallest value of the process's group and its ancestors. In a container the names may be the host's: a group that
// does not exist there is skipped, and the mount point itself is the container's group.
template <typename Allowed>
auto least_upwards(const std::string& mount, std::string group, Allowed allowed) -> decltype(allowed(mount)) {
  decltype(allowed(mount)) least;
  for (;;) {
    least = least_of(least, allowed(mount + group));
    if (group.empty()) return least;
    group.erase(group.rfind('/') == group.npos ? 0 : group.rfind('/'));
  }
}

}  // namespace

std::string cpu_name() {
  const auto name = line_of("/proc/cpuinfo", "model name");
  return name && !name->empty() ? *name : "unknown";
}

std::uint32_t usable_cpus() {
  cpu_set_t set;
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  const std::uint32_t allowed =
      known ? static_cast<std::uint32_t>(CPU_COUNT(&set)) : std::max(1u, std::thread::hardware_concurrency());
  return std::min(allowed, quota_cpus().value_or(allowed));
}

std::optional<std::uint32_t> quota_cpus(const std::string& mounts, const std::string& membership) {
  const Groups groups = groups_of(membership);
  return least_of(least_upwards(mounts, groups.v2, cpus_of_group_v2),
                  least_upwards(mounts + "/cpu", groups.v1_cpu, cpus_of_group_v1));
}

std::optional<std::uint64_t> group_memory_bytes(const std::string& mounts, const std::string& membership) {
  const Groups groups = groups_of(membership);
  return least_of(least_upwards(mounts, groups.v2, bytes_of_group_v2),
                  least_upwards(mounts + "/memory", groups.v1_memory, bytes_of_group_v1));
}

std::optional<std::uint64_t> group_memory_limit(const std::string& mounts, const std::string& membership) {
  const Groups groups = groups_of(membership);
  return least_of(least_upwards(mounts, groups.v2, limit_of_group_v2),
                  least_upwards(mounts + "/memory", groups.v1_memory, limit_of_group_v1));
}

std::optional<std::uint64_t> free_memory_bytes() {
  std::optional<std::uint64_t> available;
  if (const auto kib = number_of(line_of("/proc/meminfo", "MemAvailable"))) available = *kib * 1024;
  return least_of(available, group_memory_bytes());
}

}  // namespace quire::app
