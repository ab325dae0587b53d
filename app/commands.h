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

// `notes`: what the operator should know of the settings, said once at start.
int serve(const Config& config, const std::vector<std::string>& notes);
int plan(const Config& config, const std::vector<std::string>& notes);  // serve --plan
int generate(const Config& config, const GenerateOptions& options);
int inspect(const Config& config, const InspectOptions& options);
int bench(const std::vector<std::string>& args);  // becomes quire-bench; `args`: what follows `quire bench`, unread
int build_datastore(const Config& config, const BuildDatastoreOptions& options);
int make_key(const KeyOptions& options);

}  // namespace quire::app
