// The options of `quire bench` itself: the flags, the modes that take each, and BenchOptions from the values typed.
// Thread  main.
// Fails   every problem is collected.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config.h"

namespace quire::tools {

// Names of --scenario, in the order of the help.
inline constexpr std::string_view kScenarioNames[] = {"utilisation", "waste",    "max-batch",
                                                      "preemption",  "policies", "prefix"};
std::string scenario_names();  // "utilisation, waste, …"

using app::Config;
using app::Problems;

enum class BenchMode : std::uint8_t {
  kRunner,     // prefill and decode, directly on the model's runner
  kMicro,      // each kernel separately
  kStep,       // cost of a step by its number of rows
  kProfile,    // time of a step by op
  kServe,      // the whole engine with streams, without HTTP
  kCompare,    // two servers under the same load
  kSpeculate,  // speedup of verifying draft tokens
};

struct BenchOptions {
  BenchMode mode = BenchMode::kRunner;
  bool json = false;
  std::uint32_t runs = 5;
  std::string random_shape;  // empty: the model's own weights
  std::string scenario;      // empty: `mode` is run
  std::string csv;           // file for a scenario's CSV; empty: standard output
  // micro
  std::uint64_t working_set_bytes = std::uint64_t{256} << 20;  // large enough that weights and K, V come from memory
  // serve, compare, speculate
  std::vector<std::uint32_t> streams = {1, 8, 32};  // concurrent streams, one measurement per number
  std::uint32_t prompt_tokens = 128;
  std::uint32_t shared_tokens = 0;  // of prompt_tokens, equal for all requests of a measurement
  std::uint32_t answer_tokens = 64;
  std::optional<std::uint32_t> requests;  // per measurement; empty: one per stream and at least four
  // compare
  std::vector<std::string> urls;
  // Requests per second of an open loop; empty: a closed loop, in which each stream waits for its answer.
  std::optional<double> rate;
  std::uint32_t vocab = 1024;  // prompts are ids below it
  // speculate
  double draft_alpha = 0.75;       // probability that the next draft token is accepted
  double draft_cost = 0.10;        // of a draft token, in steps of one row
  std::uint32_t draft_tokens = 4;  // per sequence and step
};

// A flag: its name, the modes that take it, and its text in --help.
struct BenchFlag {
  std::string_view name;  // "--streams"
  unsigned modes;         // bit m: mode m of BenchMode; bit 7: scenarios
  std::string_view kind;  // "count"
  std::string_view help;
};

std::span<const BenchFlag> bench_flags();
std::string bench_mode_names();  // "runner, micro, step, profile, serve, compare, speculate"

// The values typed for each flag, in the order of bench_flags(): none, one, or for --url several.
using TypedBenchFlags = std::vector<std::vector<std::string>>;

BenchOptions read_bench_options(const TypedBenchFlags& typed, bool json, Problems& problems);

}  // namespace quire::tools
