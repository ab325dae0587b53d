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
  std::string prompt;       // "-", or empty without a file: standard input
  std::string prompt_file;  // empty: none
  std::string system;       // empty: none
  bool raw = false;         // no chat template
  std::string json_schema;  // JSON, or a file with it; empty: none
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

struct ChatOptions {
  std::string url;               // of a running server; empty: a server of its own
  std::string system;            // empty: none
  std::vector<std::string> set;  // "NAME=VALUE", as /set has them
};

struct InspectOptions {
  bool json = false;
  bool tensors = false;  // list the tensors
  std::string url;       // of a running server to inspect; empty: inspect a model
  std::string cacert;  // file of PEM certificates that the server of an https URL may be signed by; empty: the system's
};

struct OperateOptions {
  std::string id;  // of a request; empty: all that run
  std::string url = "http://127.0.0.1:8000";
  std::string cacert;  // as InspectOptions::cacert
  bool json = false;
};

struct DoctorOptions {
  bool json = false;
  bool has_model = false;  // a MODEL was given
};

struct ListOptions {
  bool json = false;
  bool names = false;  // only the names, without reading the models
};

struct RemoveOptions {
  bool yes = false;  // without asking
};

struct QuantizeOptions {
  std::string to;   // "w8a8", "fp8", "w4a16", "q8_0" or "q4_0"
  std::string out;  // a directory; of q8_0 and q4_0 a file
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
// `flags`: as typed; a server of its own gets them.
int chat(const Config& config, const Layer& flags, const ChatOptions& options);
int inspect(const Config& config, const InspectOptions& options);
// Replaces this process by quire-bench; `args`: the words after `quire bench`, not parsed.
int bench(const std::vector<std::string>& args);
int ps(const Config& config, const OperateOptions& options);
int stop(const Config& config, const OperateOptions& options);
int diagnose(const Config& config, const DoctorOptions& options);
int pull(const Config& config);
int list(const Config& config, const ListOptions& options);
int remove(const Config& config, const RemoveOptions& options);
int quantize(const Config& config, const QuantizeOptions& options);
int build_datastore(const Config& config, const BuildDatastoreOptions& options);
int make_key(const KeyOptions& options);

}  // namespace quire::app
