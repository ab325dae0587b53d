// The options of `quire bench` itself: what there is, which of them a mode takes, and BenchOptions from what was typed.
// Thread  main.
// Fails   every problem is collected.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/config.h"

namespace quire::tools {

using app::Config;
using app::Problems;

enum class BenchMode : std::uint8_t {
  kRunner,     // prefill and decode, straight to the model's runner
  kMicro,      // every kernel by itself
  kStep,       // what a step costs by its number of rows
  kProfile,    // where a step's time goes
  kServe,      // the whole engine, streams and all, without HTTP
  kCompare,    // two servers under the same load
  kSpeculate,  // what verifying guesses brings
};

struct BenchOptions {
  BenchMode mode = BenchMode::kRunner;
  bool json = false;
  std::uint32_t runs = 5;
  std::string random_shape;  // empty: the model's own weights
  std::string scenario;      // empty: what `mode` says
  std::string csv;           // where a scenario's figures go; empty: standard output
  // micro
  std::uint64_t working_set_bytes = std::uint64_t{256} << 20;  // so that weights and K, V come from memory
  // serve, compare, speculate
  std::vector<std::uint32_t> streams = {1, 8, 32};  // how many at once, one measurement for each
  std::uint32_t prompt_tokens = 128;
  std::uint32_t shared_tokens = 0;  // of them, the same for all requests of a measurement
  std::uint32_t answer_tokens = 64;
  std::optional<std::uint32_t> requests;  // of a measurement; else one a stream, and four at least
  // compare
  std::vector<std::string> urls;
  std::optional<double> rate;  // requests a second, whatever is still open; else each stream sends when it was answered
  std::uint32_t vocab = 1024;  // prompts are ids below it
  // speculate
  double draft_alpha = 0.75;       // chance that one more guess is right
  double draft_cost = 0.10;        // of a guess, in steps of one row
  std::uint32_t draft_tokens = 4;  // guesses of a step
};

// One of the flags below, as it is typed; where it may stand, bit by BenchMode; what --help says.
struct BenchFlag {
  std::string_view name;  // "--streams"
  unsigned modes;         // of these modes; 0: of scenarios alone
  std::string_view kind;  // "count"
  std::string_view help;
};

std::span<const BenchFlag> bench_flags();
std::string bench_mode_names();  // "runner, micro, step, profile, serve, compare"

// What was typed of each flag, in the order of bench_flags(): nothing, a value, or for --url several.
using TypedBenchFlags = std::vector<std::vector<std::string>>;

BenchOptions read_bench_options(const TypedBenchFlags& typed, bool json, Problems& problems);

}  // namespace quire::tools
