// What `quire` can do. Each returns the process's exit code; what keeps it from starting is a StartError.
// Thread  main.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/keys/caller.h"
#include "app/config.h"
#include "core/bridge/account.h"

namespace quire::app {

struct GenerateOptions {
  std::string prompt;
  std::optional<std::uint32_t> max_tokens;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<std::int32_t> top_k;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop;
};

struct ServeOptions {
  bool plan = false;  // say what it would take, and end
};

struct InspectOptions {
  bool json = false;
  std::string url;  // a running server is looked at instead of a model
};

struct BuildDatastoreOptions {
  std::vector<std::string> texts;  // files and directories
  std::string output;
};

struct KeyOptions {
  std::string name;
  api::keys::Role role = api::keys::Role::kUser;
  bridge::AccountLimits limits{};
  std::string tenant;  // empty: its own
  std::string file;    // that the line is appended to; empty: it is printed
  std::uint32_t weight = 1;
};

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

// `notes`: what the operator should know of the settings, said once at start.
int serve(const Config& config, const std::vector<std::string>& notes);
int plan(const Config& config, const std::vector<std::string>& notes);  // serve --plan
int generate(const Config& config, const GenerateOptions& options);
int inspect(const Config& config, const InspectOptions& options);
int bench(const Config& config, const BenchOptions& options);
int build_datastore(const Config& config, const BuildDatastoreOptions& options);
int make_key(const KeyOptions& options);

}  // namespace quire::app
