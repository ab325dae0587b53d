// All settings of the operator, read once and checked together. Precedence: flags, environment, file, default.
// Shape   one member per field of config_fields.cc, which has its name, unit, default, range and help.
// Owner   a value; passed on as const.
// Thread  one, while starting.
// Fails   all problems are collected: throw_if_any() throws one StartError with all of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"

namespace quire::app {

struct Bytes {
  std::uint64_t value = 0;
};

struct Config {
  std::string model;  // a directory, or a name of a hub until with_local_models()
  std::string revision;
  std::string download_dir;    // empty: the environment decides
  std::string allow_http_hub;  // "on" or "off"
  // Directories of draft models and heads that are given by names of a hub; by name. Filled by with_local_models().
  std::map<std::string, std::string> draft_snapshots;
  std::string config;
  // the server
  std::string host;
  std::uint32_t port = 0;
  std::string api_key_file;          // empty: none
  std::vector<std::string> api_key;  // secrets
  std::string uds;                   // path; empty: TCP
  std::vector<std::string> allowed_origins;
  std::string allowed_credentials;  // "on" or "off"
  std::string tokenizer_info;       // "on" or "off"
  std::vector<std::string> allowed_methods;
  std::vector<std::string> allowed_headers;
  std::string tls_cert;  // file; empty: plain HTTP
  std::string tls_key;   // file; empty: the key is in tls_cert
  std::string admin_host;
  std::optional<std::uint32_t> admin_port;  // empty: none
  std::vector<std::string> served_model_name;
  std::string generation_config;
  std::string chat_template;     // file; empty: the model's own
  std::string tool_call_parser;  // "auto", or a format of api/answer/call_format.h
  std::string reasoning_parser;  // "auto", or a format of api/answer/reasoning_format.h
  std::uint32_t max_queue = 0;
  std::uint32_t max_queue_tokens = 0;
  Duration stall_timeout{};
  Duration drain_timeout{};
  std::uint32_t io_threads = 0;
  std::uint32_t max_connections = 0;
  std::uint32_t max_explained_requests = 0;
  Bytes body_limit;
  Duration header_timeout{};
  Duration body_timeout{};
  Duration idle_timeout{};
  std::string otlp_traces_endpoint;  // URL; empty: OTEL_EXPORTER_OTLP_… decide
  // the engine
  std::string dtype;
  std::string quantize;      // "none", "int8", "int4", "fp8", "w8a8", "w4a8" or "w16a16"
  std::string activations;   // "auto", "int8" or "f32"
  std::string packed_cache;  // directory; empty: every start packs the weights
  std::optional<std::uint32_t> max_model_len;
  std::optional<std::uint32_t> asked_num_seqs;  // empty: settle_sizes() chooses for the device
  std::optional<std::uint32_t> asked_num_batched_tokens;
  // The two limits in force, from those asked for.
  std::uint32_t max_num_seqs = 0;
  std::uint32_t max_num_batched_tokens = 0;
  Duration min_step_time{};
  std::uint32_t block_size = 0;
  std::string kv_cache_dtype;
  std::string prefix_caching;  // "on" or "off"
  std::optional<Bytes> kv_cache_memory;
  std::vector<std::string> pin_prefix;  // files
  std::string cache_dir;                // empty: the cache is neither saved nor loaded
  std::string kv_events_config;         // JSON, see kv_events/kv_events_config.h; empty: nothing is published
  std::vector<std::string> kv_debug;    // "off", or some of "check", "poison", "log"
  std::string scheduling_policy;
  std::string preemption_victim;
  std::uint32_t max_overtakes = 0;
  Bytes swap_space;
  // JSON, see core/speculate/speculative_config.h. Empty: no drafts, except that serve uses the embedded model's head.
  std::string speculative_config;
  std::string device;
  std::uint32_t tensor_parallel_size = 1;
  std::optional<std::uint32_t> threads;
  std::string isa;
  std::string log_level;
  std::string log_format;    // "text" or "json"
  std::string log_requests;  // "off", "errors", "all" or "content"
  Duration log_stats_interval{};
};

// True if more sequences may run than a step has rows.
inline bool serves_round_robin(const Config& config) { return config.max_num_batched_tokens < config.max_num_seqs; }

using Problems = std::vector<std::string>;

// The values that one source gives a field, as typed.
struct Setting {
  std::string where;  // "--port", "QUIRE_PORT", "quire.toml: port"
  std::vector<std::string> values;
};
using Layer = std::map<std::string, Setting, std::less<>>;  // by field name

// Settings in `environment` ("NAME=value", up to a null), for example QUIRE_PORT=8000. A name that resembles a field's
// is a problem; any other QUIRE_ name belongs to other programs (the environment is shared) and becomes a note.
Layer read_environment(const char* const* environment, Problems& problems, std::vector<std::string>& notes);
// TOML, one key per field, with dashes or underscores. Anything else in the file is a problem.
Layer read_file(const std::string& path, Problems& problems);

// Takes each field from the first layer that has it, else its default; then checks the rules between fields.
Config resolve(std::span<const Layer> layers, Problems& problems);

// Reads all sources: `flags`, environment, and the file that one of them names. Throws all problems, those given too.
Config read_settings(Layer flags, const char* const* environment, Problems problems, std::vector<std::string>& notes);

void throw_if_any(const Problems& problems);

// "unknown flag --prot: did you mean --port?"; `prefix` goes before a suggested name.
std::string unknown_text(std::string_view what, std::string_view given, std::string_view prefix);

}  // namespace quire::app
