// Facts on this machine that decide whether quire runs here, and how fast.
// Owner   values.
// Thread  main; gather_facts() measures for a fraction of a second, on threads of its own.
// Fails   never: an unknown fact is empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/doctor/system_text.h"

namespace quire::app::doctor {

struct CpuFacts {
  std::string name{};
  std::vector<std::string> instruction_sets{};
  std::vector<std::string> kernels{};     // that the CPU can run, slowest first
  std::string isa{};                      // --isa
  std::vector<std::uint32_t> affinity{};  // CPUs that the process may run on
  std::uint32_t num_online = 0;
  std::optional<std::uint32_t> quota{};  // of the control groups, in CPUs
  std::uint32_t threads = 0;             // that a server would compute with
  std::optional<double> load{};
  std::vector<std::vector<std::uint32_t>> nodes{};  // usable CPUs of each NUMA node
};

struct MemoryFacts {
  std::optional<std::uint64_t> total{};
  std::optional<std::uint64_t> available{};
  std::optional<std::uint64_t> group_limit{};
  std::optional<std::uint64_t> group_left{};  // of the limit
  std::optional<std::uint64_t> swap_total{};
  std::optional<std::uint64_t> swap_free{};
  std::string huge_pages{};            // setting of transparent huge pages
  bool process_has_huge_pages = true;  // false: switched off for this process
  std::optional<double> read_bytes_per_s{};

  std::optional<std::uint64_t> left() const;  // the smaller of available and group_left
};

struct GpuFacts {
  struct Device {
    std::string name{};
    std::string architecture{};
    std::uint64_t free_bytes = 0;
  };
  bool built_with_cuda = false;
  std::string driver{};           // version of NVIDIA's driver; empty: it is not loaded
  std::vector<Device> devices{};  // that this program can use
  std::string problem{};          // of the first device that it cannot
};

struct PortFacts {
  std::string host{};
  std::uint16_t port = 0;
  bool asked = true;     // false: another port is served on
  int error = 0;         // errno of bind() or listen(); 0: it is free
  std::string holder{};  // "quire (pid 4711)"; empty: unknown
};

struct FileFacts {
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  std::uint64_t wanted = 0;  // for --max-connections
};

struct CacheFacts {
  std::string path{};
  bool is_writable = false;
  std::optional<std::uint64_t> free_bytes{};
};

struct Facts {
  CpuFacts cpu{};
  MemoryFacts memory{};
  GpuFacts gpu{};
  std::vector<PortFacts> ports{};
  FileFacts files{};
  CacheFacts cache{};
  Proxies proxies{};
};

// Those in text files. `affinity` and the kernels are the caller's.
CpuFacts cpu_facts(const ReadText& read, std::vector<std::uint32_t> affinity);
MemoryFacts memory_facts(const ReadText& read);

// All of this machine.
Facts gather_facts(const Config& config, const char* const* environment);

}  // namespace quire::app::doctor
