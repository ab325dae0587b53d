#include "app/machine.h"

#include <sched.h>

#include <algorithm>
#include <barrier>
#include <charconv>
#include <chrono>
#include <fstream>
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

// What a control group leaves: its limit less what it holds and cannot drop. "max" is no number and no limit.
std::optional<std::uint64_t> group_left(const std::string& limit, const std::string& current, const std::string& stat,
                                        std::string_view droppable) {
  const auto most = number_of(line_of(limit, ""));
  const auto held = number_of(line_of(current, ""));
  if (!most || !held) return std::nullopt;
  const std::uint64_t cache = std::min(*held, number_of(line_of(stat, droppable)).value_or(0));
  return *most - std::min(*most, *held - cache);
}

}  // namespace

std::string cpu_name() {
  const auto name = line_of("/proc/cpuinfo", "model name");
  return name && !name->empty() ? *name : "unknown";
}

std::uint32_t usable_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::max(1u, std::thread::hardware_concurrency());
  return static_cast<std::uint32_t>(CPU_COUNT(&set));
}

std::optional<std::uint64_t> free_memory_bytes() {
  std::optional<std::uint64_t> free;
  const auto take_least = [&free](std::optional<std::uint64_t> bytes) {
    if (bytes) free = std::min(free.value_or(*bytes), *bytes);
  };
  if (const auto kib = number_of(line_of("/proc/meminfo", "MemAvailable"))) take_least(*kib * 1024);
  const std::string v2 = "/sys/fs/cgroup/memory.";
  take_least(group_left(v2 + "max", v2 + "current", v2 + "stat", "inactive_file"));
  const std::string v1 = "/sys/fs/cgroup/memory/memory.";
  take_least(group_left(v1 + "limit_in_bytes", v1 + "usage_in_bytes", v1 + "stat", "total_inactive_file"));
  return free;
}

std::vector<double> measure_read_bandwidth(std::uint32_t num_threads, std::uint64_t buffer_bytes, std::uint32_t runs) {
  const std::size_t part = buffer_bytes / sizeof(std::uint64_t) / num_threads;
  std::vector<std::uint64_t> buffer(part * num_threads, 1);  // written, so that the pages are there
  std::vector<double> figures(runs);
  std::vector<std::uint64_t> sums(num_threads * 8);  // a cache line each
  std::barrier together(num_threads);
  const auto work = [&](std::uint32_t thread) {
    const std::uint64_t* from = buffer.data() + part * thread;
    for (double& figure : figures) {
      together.arrive_and_wait();
      const auto start = std::chrono::steady_clock::now();
      std::uint64_t lanes[16] = {};
      for (std::size_t i = 0; i + 16 <= part; i += 16) {
        for (std::size_t lane = 0; lane < 16; ++lane) lanes[lane] += from[i + lane];
      }
      for (const std::uint64_t lane : lanes) sums[thread * 8] += lane;  // kept: the loads are not to be left out
      together.arrive_and_wait();
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      if (thread == 0) figure = static_cast<double>(part * num_threads * sizeof(std::uint64_t)) / seconds.count();
    }
  };
  std::vector<std::jthread> threads;
  for (std::uint32_t thread = 1; thread < num_threads; ++thread) threads.emplace_back(work, thread);
  work(0);
  threads.clear();
  return figures;
}

}  // namespace quire::app
