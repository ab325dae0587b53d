#include "app/doctor/facts.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "app/doctor/ports.h"
#include "app/hub/local_models.h"
#include "app/model/machine.h"
#include "app/model/read_bandwidth.h"
#include "app/process/open_files.h"
#include "core/base/start_error.h"
#include "core/cpu/cpu_ops.h"
#include "gpu/cuda/cuda_device.h"

namespace quire::app::doctor {
namespace {

constexpr std::uint32_t kDefaultPort = 8000;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::uint32_t> affinity() {
  cpu_set_t set;
  std::vector<std::uint32_t> out;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return out;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) out.push_back(cpu);
  }
  return out;
}

// Larger than the caches of most processors, and a small part of what is free.
std::optional<double> read_bandwidth(std::uint32_t threads, std::optional<std::uint64_t> free) {
  constexpr std::uint64_t kWanted = std::uint64_t{512} << 20;
  constexpr std::uint64_t kLeast = std::uint64_t{16} << 20;
  constexpr std::uint32_t kRuns = 3;
  const std::uint64_t bytes = std::min(kWanted, free.value_or(kWanted) / 8);
  if (bytes < kLeast) return std::nullopt;
  const std::vector<double> figures = measure_read_bandwidth(threads, bytes, kRuns);
  return *std::ranges::max_element(figures);
}

GpuFacts gpu_facts() {
  GpuFacts gpu{.built_with_cuda = gpu::has_cuda(), .driver = driver_in(text_of("/proc/driver/nvidia/version"))};
  for (int number = 0; number < gpu::num_cuda_devices(); ++number) {
    try {
      const std::unique_ptr<gpu::Device> device = gpu::make_cuda_device(number);
      gpu.devices.push_back({device->name(), device->architecture(), device->free_bytes()});
    } catch (const StartError& error) {
      if (gpu.problem.empty()) gpu.problem = error.what();
    }
  }
  return gpu;
}

CacheFacts cache_facts(const Config& config) {
  CacheFacts cache;
  std::filesystem::path place = hub_settings(config).cache;
  cache.path = place.string();
  std::error_code error;
  while (!std::filesystem::exists(place, error) && place.has_relative_path()) place = place.parent_path();
  cache.is_writable = access(place.c_str(), W_OK | X_OK) == 0;
  const std::filesystem::space_info space = std::filesystem::space(place, error);
  if (!error) cache.free_bytes = space.available;
  return cache;
}

std::vector<PortFacts> ports_of(const Config& config) {
  std::vector<PortFacts> out;
  if (config.port != 0) out.push_back(port_facts(config.host, static_cast<std::uint16_t>(config.port)));
  if (config.port != kDefaultPort) {
    out.push_back(port_facts(config.host, kDefaultPort));
    out.back().asked = false;
  }
  return out;
}

}  // namespace

std::optional<std::uint64_t> MemoryFacts::left() const {
  return available && group_left ? std::min(*available, *group_left) : available ? available : group_left;
}

CpuFacts cpu_facts(const ReadText& read, std::vector<std::uint32_t> affinity) {
  CpuFacts cpu;
  cpu.instruction_sets = instruction_sets_in(read("/proc/cpuinfo"));
  cpu.num_online = static_cast<std::uint32_t>(numbers_in(read("/sys/devices/system/cpu/online")).size());
  cpu.load = load_in(read("/proc/loadavg"));
  cpu.nodes = node_cpus(read, affinity);
  cpu.affinity = std::move(affinity);
  return cpu;
}

MemoryFacts memory_facts(const ReadText& read) {
  const std::string meminfo = read("/proc/meminfo");
  MemoryFacts memory{.total = bytes_in(meminfo, "MemTotal"),
                     .available = bytes_in(meminfo, "MemAvailable"),
                     .swap_total = bytes_in(meminfo, "SwapTotal"),
                     .swap_free = bytes_in(meminfo, "SwapFree")};
  memory.huge_pages = chosen_in(read("/sys/kernel/mm/transparent_hugepage/enabled"));
  memory.process_has_huge_pages = read("/proc/self/status").find("THP_enabled:\t0") == std::string::npos;
  return memory;
}

Facts gather_facts(const Config& config, const char* const* environment) {
  Facts facts;
  facts.cpu = cpu_facts(text_of, affinity());
  facts.cpu.name = cpu_name();
  facts.cpu.kernels = cpu::supported_isas();
  facts.cpu.isa = config.isa;
  facts.cpu.quota = quota_cpus();
  facts.cpu.threads = config.threads.value_or(usable_cpus());
  facts.memory = memory_facts(text_of);
  facts.memory.group_limit = group_memory_limit();
  facts.memory.group_left = group_memory_bytes();
  facts.memory.read_bytes_per_s = read_bandwidth(facts.cpu.threads, facts.memory.left());
  facts.gpu = gpu_facts();
  facts.ports = ports_of(config);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    facts.files = {limit.rlim_cur, limit.rlim_max, files_for(config)};
  }
  facts.cache = cache_facts(config);
  facts.proxies = proxies_in(environment);
  return facts;
}

}  // namespace quire::app::doctor
