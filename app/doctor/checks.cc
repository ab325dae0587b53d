#include "app/doctor/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "app/config/units.h"
#include "app/doctor/place_checks.h"

namespace quire::app::doctor {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr double kGB = 1e9;

template <typename T>
boost::json::value json_of(const std::optional<T>& value) {
  return value ? boost::json::value(*value) : boost::json::value(nullptr);
}

boost::json::array json_of(const std::vector<std::string>& words) {
  boost::json::array out;
  for (const std::string& word : words) out.emplace_back(word);
  return out;
}

std::string known(const std::optional<std::uint64_t>& bytes) { return bytes ? bytes_text(*bytes) : "unknown"; }

Check check_cpus(const CpuFacts& cpu) {
  const std::size_t allowed = cpu.affinity.size();
  const std::uint32_t present = std::max(cpu.num_online, static_cast<std::uint32_t>(allowed));
  Check check{"cpu", Verdict::kOk,
              fmt::format("{}; {} of {} CPUs allowed{}, {} threads", cpu.name, allowed, present,
                          cpu.quota ? fmt::format(", quota of {} CPU{}", *cpu.quota, *cpu.quota == 1 ? "" : "s") : "",
                          cpu.threads)};
  check.facts = {{"name", cpu.name},
                 {"online", present},
                 {"affinity", allowed},
                 {"quota", json_of(cpu.quota)},
                 {"threads", cpu.threads}};
  const std::uint64_t usable = std::min<std::uint64_t>(allowed, cpu.quota.value_or(~0u));
  if (usable == 1) {
    check.verdict = Verdict::kSlow;
    check.advice = "Computing, reading prompts and serving connections share one CPU: allow at least two.";
  } else if (cpu.threads > usable) {
    check.verdict = Verdict::kSlow;
    check.advice = fmt::format("{} threads wait for each other on {} CPUs: leave --threads out.", cpu.threads, usable);
  }
  return check;
}

Check check_load(const CpuFacts& cpu) {
  Check check{"load", Verdict::kOk, "unknown"};
  check.facts = {{"tasks", json_of(cpu.load)}};
  if (!cpu.load) return check;
  check.text = fmt::format("{:.2f} tasks were running in the last minute", *cpu.load);
  if (*cpu.load > static_cast<double>(cpu.num_online) / 2) {
    check.verdict = Verdict::kSlow;
    check.advice =
        "Other programs use the CPUs, and every step waits for its slowest thread: stop them, or measure later.";
  }
  return check;
}

Check check_kernels(const CpuFacts& cpu) {
  const std::string& best = cpu.kernels.back();
  const bool is_auto = cpu.isa == "auto";
  const std::string taken = is_auto ? best : cpu.isa;
  Check check{"kernels", Verdict::kOk,
              fmt::format("{} (--isa {}); the CPU has {}", taken, cpu.isa,
                          cpu.instruction_sets.empty() ? "no vector instructions known"
                                                       : fmt::format("{}", fmt::join(cpu.instruction_sets, " ")))};
  check.facts = {{"taken", taken},
                 {"isa", cpu.isa},
                 {"supported", json_of(cpu.kernels)},
                 {"instruction_sets", json_of(cpu.instruction_sets)}};
  if (std::ranges::find(cpu.kernels, taken) == cpu.kernels.end()) {
    check.verdict = Verdict::kWrong;
    check.advice = fmt::format("This machine cannot run {} kernels: leave --isa out.", taken);
  } else if (taken != best) {
    check.verdict = Verdict::kSlow;
    check.advice = fmt::format("{} kernels are faster here: leave --isa out.", best);
  } else if (taken == "scalar") {
    check.verdict = Verdict::kSlow;
    check.advice =
        "The fast kernels need AVX2, FMA and F16C: in a virtual machine, pass the host's CPU model on to the guest.";
  }
  return check;
}

Check check_numa(const CpuFacts& cpu) {
  const std::size_t num_nodes = std::max<std::size_t>(1, cpu.nodes.size());
  Check check{"numa", Verdict::kOk,
              fmt::format("the usable CPUs belong to {} node{}", num_nodes, num_nodes == 1 ? "" : "s")};
  check.facts = {{"nodes", num_nodes}};
  if (num_nodes > 1) {
    check.verdict = Verdict::kSlow;
    check.advice =
        "Threads read weights from the memory of another node: run one server per node, with numactl --cpunodebind=N "
        "--membind=N quire serve.";
  }
  return check;
}

Check check_memory(const MemoryFacts& memory) {
  Check check{"memory", Verdict::kOk, fmt::format("{}, {} available", known(memory.total), known(memory.available))};
  if (memory.group_limit && memory.group_limit < memory.total.value_or(~std::uint64_t{0})) {
    check.text += fmt::format("; the control group allows {}, of which {} are left", known(memory.group_limit),
                              known(memory.group_left));
  }
  check.facts = {{"total_bytes", json_of(memory.total)},
                 {"available_bytes", json_of(memory.available)},
                 {"group_limit_bytes", json_of(memory.group_limit)},
                 {"group_left_bytes", json_of(memory.group_left)}};
  const std::optional<std::uint64_t> left = memory.left();
  if (left && *left < kGiB / 2) {
    check.verdict = Verdict::kWrong;
    check.advice =
        "Less than 0.5 GiB is left, too little for any model but the one inside: end other programs, or raise the "
        "limit.";
  } else if (left && *left < 2 * kGiB) {
    check.verdict = Verdict::kSlow;
    check.advice = "Less than 2 GiB is left: only models below 1B parameters fit, with little room for their KV cache.";
  }
  return check;
}

Check check_bandwidth(const MemoryFacts& memory, std::uint32_t threads) {
  constexpr double kSlow = 10 * kGB;
  Check check{"bandwidth", Verdict::kOk, "not measured: too little memory is free"};
  check.facts = {{"read_bytes_per_s", json_of(memory.read_bytes_per_s)}, {"threads", threads}};
  if (!memory.read_bytes_per_s) return check;
  const double bandwidth = *memory.read_bytes_per_s;
  check.text =
      fmt::format("{:.1f} GB/s are read by {} thread{}: with 1 GiB of weights one stream gets at most {:.0f} tokens/s",
                  bandwidth / kGB, threads, threads == 1 ? "" : "s", bandwidth / static_cast<double>(kGiB));
  if (bandwidth < kSlow) {
    check.verdict = Verdict::kSlow;
    check.advice =
        "Machines of today read 20 GB/s and more: look for busy programs, empty memory channels or a throttled CPU.";
  }
  return check;
}

Check check_huge_pages(const MemoryFacts& memory) {
  const std::string setting = memory.huge_pages.empty() ? "unknown" : memory.huge_pages;
  Check check{"huge pages", Verdict::kOk, fmt::format("transparent huge pages: {}", setting)};
  check.facts = {{"setting", memory.huge_pages.empty() ? boost::json::value(nullptr) : boost::json::value(setting)},
                 {"process_has_them", memory.process_has_huge_pages}};
  if (memory.huge_pages == "never") {
    check.verdict = Verdict::kSlow;
    check.advice =
        "Weights and KV cache lie on pages of 4 KiB, and looking up their addresses takes time: echo madvise > "
        "/sys/kernel/mm/transparent_hugepage/enabled.";
  } else if (!memory.process_has_huge_pages) {
    check.verdict = Verdict::kSlow;
    check.advice =
        "They are switched off for this process (PR_SET_THP_DISABLE): start it by something that leaves them on.";
  } else if (!memory.huge_pages.empty()) {
    check.text += "; weights and KV cache lie on pages of 2 MiB";
  }
  return check;
}

Check check_swap(const MemoryFacts& memory) {
  const std::uint64_t total = memory.swap_total.value_or(0);
  const std::uint64_t used = total - std::min(total, memory.swap_free.value_or(total));
  Check check{"swap", Verdict::kOk,
              total == 0 ? "none" : fmt::format("{}, {} used", bytes_text(total), bytes_text(used))};
  check.facts = {{"total_bytes", json_of(memory.swap_total)}, {"free_bytes", json_of(memory.swap_free)}};
  if (used > 64 * kMiB) {
    check.verdict = Verdict::kSlow;
    check.advice =
        "Memory was short, and pages of weights that are swapped out stop every step: free memory, or swapoff -a.";
  }
  return check;
}

Check check_gpu(const GpuFacts& gpu) {
  Check check{"gpu", Verdict::kOk, "none; models run on the CPU"};
  boost::json::array devices;
  std::string names;
  for (const GpuFacts::Device& device : gpu.devices) {
    devices.push_back(
        {{"name", device.name}, {"architecture", device.architecture}, {"free_bytes", device.free_bytes}});
    names += fmt::format("{}{} ({}), {} free", names.empty() ? "" : "; ", device.name, device.architecture,
                         bytes_text(device.free_bytes));
  }
  check.facts = {{"built_with_cuda", gpu.built_with_cuda}, {"driver", gpu.driver}, {"devices", devices}};
  if (!gpu.devices.empty()) check.text = names;
  if (gpu.driver.empty()) {
    check.text += gpu.built_with_cuda ? "" : " (this program is built without CUDA)";
  } else {
    check.text =
        fmt::format("{}; NVIDIA driver {}", gpu.devices.empty() ? "none that this program can use" : names, gpu.driver);
  }
  if (!gpu.driver.empty() && !gpu.built_with_cuda) {
    check.verdict = Verdict::kSlow;
    check.advice = "This program is built without CUDA, and models run on the CPU: build the preset cuda-release.";
  } else if (!gpu.problem.empty()) {
    check.verdict = Verdict::kSlow;
    check.advice = gpu.problem + ".";
  } else if (!gpu.driver.empty() && gpu.devices.empty()) {
    check.verdict = Verdict::kSlow;
    check.advice = "The driver shows no device to this process: in a container, start it with --gpus all.";
  }
  return check;
}

Check check_model(const ModelFacts& model) {
  Check check{"model", Verdict::kOk,
              fmt::format("{}: {} of weights, about {:.1f} tokens/s for one stream", model.name,
                          bytes_text(model.weight_bytes), model.tokens_per_s)};
  check.facts = {{"name", model.name},
                 {"weight_bytes", model.weight_bytes},
                 {"stream_bytes", model.stream_bytes},
                 {"longest_tokens", model.longest},
                 {"free_bytes", json_of(model.free_bytes)},
                 {"tokens_per_s", model.tokens_per_s}};
  if (!model.problem.empty()) {
    check.verdict = Verdict::kWrong;
    check.text = fmt::format("{} cannot be read", model.name);
    check.facts = {{"name", model.name}, {"problem", model.problem}};
    check.advice = model.problem;
  } else if (model.free_bytes && model.weight_bytes >= *model.free_bytes) {
    check.verdict = Verdict::kWrong;
    check.advice = fmt::format("It does not fit into the {} that are free: --quantize int8 or int4 makes it smaller.",
                               bytes_text(*model.free_bytes));
  } else if (model.free_bytes && model.weight_bytes + model.stream_bytes > *model.free_bytes) {
    check.verdict = Verdict::kSlow;
    check.advice =
        fmt::format("One stream of {} tokens does not fit besides it: lower --max-model-len.", model.longest);
  }
  return check;
}

}  // namespace

const char* name_of(Verdict verdict) {
  constexpr const char* kNames[] = {"ok", "slow", "wrong"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::vector<Check> checks_of(const Facts& facts, const std::optional<ModelFacts>& model) {
  std::vector<Check> checks = {
      check_cpus(facts.cpu),          check_load(facts.cpu),      check_kernels(facts.cpu),
      check_numa(facts.cpu),          check_memory(facts.memory), check_bandwidth(facts.memory, facts.cpu.threads),
      check_huge_pages(facts.memory), check_swap(facts.memory),   check_gpu(facts.gpu)};
  std::ranges::move(place_checks(facts), std::back_inserter(checks));
  if (model) checks.push_back(check_model(*model));
  return checks;
}

Verdict worst_of(const std::vector<Check>& checks) {
  Verdict worst = Verdict::kOk;
  for (const Check& check : checks) worst = std::max(worst, check.verdict);
  return worst;
}

}  // namespace quire::app::doctor
