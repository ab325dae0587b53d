// What `quire` can do. Each returns the process's exit code; what keeps it from starting is a StartError.
// Thread  main.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/config.h"

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

struct BenchOptions {
  bool json = false;
  std::uint32_t runs = 5;
  std::string random_shape;  // empty: the model's own weights
  std::string scenario;      // empty: plain prefill and decode
  std::string csv;           // where a scenario's figures go; empty: standard output
};

// `notes`: what the operator should know of the settings, said once at start.
int serve(const Config& config, const std::vector<std::string>& notes);
int plan(const Config& config, const std::vector<std::string>& notes);  // serve --plan
int generate(const Config& config, const GenerateOptions& options);
int inspect(const Config& config, const InspectOptions& options);
int bench(const Config& config, const BenchOptions& options);

}  // namespace quire::app
