// The commands of `quire`. Each returns the process's exit code; a command that cannot start throws StartError.
// Thread  main.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/wire/caller.h"
#include "app/config/config.h"
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
  bool plan = false;  // print the memory that serving would need, and exit
};

struct InspectOptions {
  bool json = false;
  std::string url;  // of a running server to inspect; empty: inspect a model
};

struct ListOptions {
  bool json = false;
};

struct RemoveOptions {
  bool yes = false;  // without asking
};

struct BuildDatastoreOptions {
  std::vector<std::string> texts;  // files and directories
  std::string output;
};

struct KeyOptions {
  std::string name;
  api::keys::Role role = api::keys::Role::kUser;
  bridge::AccountLimits limits{};
  std::string tenant;  // empty: the key is its own tenant
  std::string file;    // to append the key's line to; empty: the line is printed
  std::uint32_t weight = 1;
};

// `notes`: remarks on the settings for the operator, logged once at start. serve() downloads a MODEL given by name; the
// other commands get its directory.
int serve(const Config& config, const std::vector<std::string>& notes);
int plan(const Config& config, const std::vector<std::string>& notes);  // serve --plan
int generate(const Config& config, const GenerateOptions& options);
int inspect(const Config& config, const InspectOptions& options);
// Replaces this process by quire-bench; `args`: the words after `quire bench`, not parsed.
int bench(const std::vector<std::string>& args);
int pull(const Config& config);
int list(const Config& config, const ListOptions& options);
int remove(const Config& config, const RemoveOptions& options);
int build_datastore(const Config& config, const BuildDatastoreOptions& options);
int make_key(const KeyOptions& options);

}  // namespace quire::app
