#include "app/config/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/config/config_fields.h"
#include "app/config/device_name.h"
#include "app/config/units.h"
#include "app/kv_events/kv_events_config.h"
#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/speculate/speculative_config.h"

namespace quire::app {
namespace {

std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names;
  for (const Field& field : fields()) names.push_back(field.name);
  return names;
}

constexpr std::uint32_t kLeastRowsShared = 16;  // of a step; prompts and running sequences share them

// Default sizes. A GPU takes hardly more time for many rows than for few; a CPU takes more time for each.
struct Sizes {
  std::uint32_t sequences;
  std::uint32_t rows;
};
constexpr Sizes kCpuSizes{64, 512};
constexpr Sizes kGpuSizes{256, 2048};

// Chooses the sizes that were not given. There are no more sequences than rows, since that would need round-robin, but
// at least kCpuSizes.sequences.
void settle_sizes(Config& config) {
  const std::optional<std::uint32_t> sequences = config.asked_num_seqs;
  const std::optional<std::uint32_t> rows = config.asked_num_batched_tokens;
  const Sizes usual = !(sequences && rows) && takes_gpu(config) ? kGpuSizes : kCpuSizes;
  config.max_num_batched_tokens = rows.value_or(usual.rows);
  config.max_num_seqs =
      sequences.value_or(std::min(usual.sequences, std::max(config.max_num_batched_tokens, kCpuSizes.sequences)));
}

// Reports settings that are incompatible with speculation or with parts of it.
void check_speculation(const speculate::SpeculativeConfig& speculation, const Config& config, Problems& problems) {
  if (speculation.method == speculate::Method::kNone) return;
  if (serves_round_robin(config)) {
    problems.push_back(
        fmt::format("--speculative-config: draft tokens are rows of a step: raise --max-num-batched-tokens {} to at "
                    "least --max-num-seqs {}, or leave --speculative-config out",
                    config.max_num_batched_tokens, config.max_num_seqs));
  }
  if (config.kv_cache_dtype != "int4") return;
  const auto refuse = [&problems](const std::string& what) {
    problems.push_back("--speculative-config: " + what +
                       "; leave --speculative-config out, or use another --kv-cache-dtype");
  };
  if (speculate::drafts_with_target(speculation.method)) {
    refuse(fmt::format("{} drafts in the model's own KV cache, and an int4 cache stores positions in groups of 16",
                       name_of(speculation.method)));
  }
  if (speculation.topk > 1) {
    refuse(fmt::format("topk is {}, and with an int4 cache drafts must be chains", speculation.topk));
  }
  if (speculation.lookahead_window > 0) {
    refuse(fmt::format("window is {}, and with an int4 cache drafts must be chains", speculation.lookahead_window));
  }
}

// Reports broken rules between fields.
void check_together(const Config& config, Problems& problems) {
  if (config.block_size % 16 != 0) {
    problems.push_back(fmt::format("--block-size {}: expected a multiple of 16", config.block_size));
  }
  if (config.max_num_batched_tokens < std::min(config.max_num_seqs, kLeastRowsShared)) {
    problems.push_back(
        fmt::format("--max-num-batched-tokens {}: every running sequence takes a row of a step: expected at least "
                    "--max-num-seqs, {}; or at least {}, to serve sequences round-robin",
                    config.max_num_batched_tokens, config.max_num_seqs, kLeastRowsShared));
  }
  if (!config.pin_prefix.empty() && config.prefix_caching == "off") {
    problems.push_back("--pin-prefix: pinned prefixes need the prefix cache; leave --prefix-caching off out");
  }
  if (!config.cache_dir.empty() && config.prefix_caching == "off") {
    problems.push_back("--cache-dir: it saves and loads the prefix cache; leave --prefix-caching off out");
  }
  if (config.kv_debug.size() > 1 && std::count(config.kv_debug.begin(), config.kv_debug.end(), "off") != 0) {
    problems.push_back(
        fmt::format("--kv-debug {}: off cannot be combined with other values", fmt::join(config.kv_debug, ",")));
  }
  if (!config.speculative_config.empty()) {
    const auto read = speculate::parse_speculative_config(config.speculative_config);
    if (!read) {
      problems.push_back("--speculative-config: " + read.error().message);
    } else {
      check_speculation(*read, config, problems);
    }
  }
  const auto kv_events = parse_kv_events_config(config.kv_events_config);
  if (!kv_events) problems.push_back("--kv-events-config: " + kv_events.error().message);
  if (kv_events && kv_events->enabled && config.prefix_caching == "off") {
    problems.push_back("--kv-events-config: it publishes events of the prefix cache; leave --prefix-caching off out");
  }
  if (config.tls_cert.empty() && !config.tls_key.empty()) {
    problems.push_back("--tls-key: --tls-cert is missing; a key needs its certificate");
  }
  if (!is_device(config.device)) {
    problems.push_back(fmt::format("--device {}: expected auto, cpu, cuda or cuda:N, where N is the device's number",
                                   log_safe(config.device)));
  }
  if (config.tensor_parallel_size > 1 && config.device == "cpu") {
    problems.push_back(
        fmt::format("--tensor-parallel-size {}: --device cpu supports only 1; leave it out, or use --device cuda",
                    config.tensor_parallel_size));
  }
}

}  // namespace

Layer read_environment(const char* const* environment, Problems& problems, std::vector<std::string>& notes) {
  constexpr std::string_view kPrefix = "QUIRE_";
  Layer layer;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::size_t equals = entry.find('=');
    if (!entry.starts_with(kPrefix) || equals == entry.npos) continue;
    const std::string variable(entry.substr(0, equals));
    std::string name = variable.substr(kPrefix.size());
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c == '_' ? '-' : static_cast<char>(c + (c >= 'A' && c <= 'Z' ? 32 : 0)); });
    const std::string value(entry.substr(equals + 1));
    if (const Field* field = find_field(name)) {
      layer[std::string(field->name)] = Setting{variable, {value}};
      if (field->name == "port" && value.starts_with("tcp://")) {
        problems.push_back(
            "QUIRE_PORT is an address that Kubernetes set for a Service named quire; set enableServiceLinks: false in "
            "the pod, or rename the Service");
        layer.erase("port");
      }
    } else if (!nearest(name, field_names()).empty()) {
      const std::string suggestion = environment_of(*find_field(nearest(name, field_names())));
      problems.push_back(fmt::format("unknown variable {}: did you mean {}?", log_safe(variable), suggestion));
    } else {
      notes.push_back(fmt::format("{} is not a setting of quire and is ignored", log_safe(variable)));
    }
  }
  return layer;
}

Config resolve(std::span<const Layer> layers, Problems& problems) {
  Config config;
  for (const Field& field : fields()) {
    const std::string fallback(field.fallback);
    CHECK(store(field, std::span(&fallback, 1), config).ok());
    for (const Layer& layer : layers) {
      const auto found = layer.find(field.name);
      if (found == layer.end()) continue;
      const Setting& setting = found->second;
      const Result<Done> stored = store(field, setting.values, config);
      if (!stored) {
        const std::string given = field.is_secret() ? "…" : fmt::format("{}", fmt::join(setting.values, ","));
        problems.push_back(fmt::format("{} '{}': {}", setting.where, log_safe(given), stored.error().message));
      }
      break;
    }
  }
  settle_sizes(config);
  check_together(config, problems);
  return config;
}

Config read_settings(Layer flags, const char* const* environment, Problems problems, std::vector<std::string>& notes) {
  std::vector<Layer> layers;  // strongest first
  layers.push_back(std::move(flags));
  layers.push_back(read_environment(environment, problems, notes));
  for (const Layer& layer : {layers[0], layers[1]}) {
    const auto named = layer.find("config");
    if (named == layer.end() || named->second.values.back().empty()) continue;
    layers.push_back(read_file(named->second.values.back(), problems));
    break;
  }
  Config config = resolve(layers, problems);
  throw_if_any(problems);
  return config;
}

void throw_if_any(const Problems& problems) {
  if (problems.empty()) return;
  if (problems.size() == 1) throw StartError(problems.front());
  throw StartError(fmt::format("{} problems:\n  {}", problems.size(), fmt::join(problems, "\n  ")));
}

std::string unknown_text(std::string_view what, std::string_view given, std::string_view prefix) {
  std::string_view name = given;
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  std::string plain(name.substr(0, name.find('=')));
  std::replace(plain.begin(), plain.end(), '_', '-');
  const std::string suggestion = nearest(plain, field_names());
  return fmt::format("unknown {} {}{}", what, log_safe(given),
                     suggestion.empty() ? "" : fmt::format(": did you mean {}{}?", prefix, suggestion));
}

}  // namespace quire::app
