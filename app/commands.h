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

struct InspectOptions {
  bool json = false;
};

struct BenchOptions {
  bool json = false;
  std::uint32_t runs = 5;
  std::string random_shape;  // empty: the model's own weights
};

// `notes`: what the operator should know of the settings, said once at start.
int serve(const Config& config, const std::vector<std::string>& notes);
int generate(const Config& config, const GenerateOptions& options);
int inspect(const Config& config, const InspectOptions& options);
int bench(const Config& config, const BenchOptions& options);

}  // namespace quire::app
