#include "core/speculate/speculative_config.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>

#include "core/sample/token_tree.h"

namespace quire::speculate {
namespace {

namespace json = boost::json;
using enum Method;
using Config = SpeculativeConfig;
using Methods = std::uint32_t;  // one bit per Method

constexpr std::array<std::string_view, 16> kNames = {
    "none",   "draft_model", "eagle",     "eagle3",       "medusa",     "hydra",    "specinfer", "ngram",
    "suffix", "rest",        "lookahead", "draft_verify", "layer_skip", "magicdec", "triforce",  "hybrid"};

// Methods that Drafting::make_drafter() makes. A name is added together with its drafter.
constexpr std::string_view kBuilt[] = {"none",       "draft_model", "eagle",    "eagle3", "medusa",    "hydra",
                                       "specinfer",  "ngram",       "suffix",   "rest",   "lookahead", "draft_verify",
                                       "layer_skip", "magicdec",    "triforce", "hybrid"};

template <typename... M>
constexpr Methods bits(M... methods) {
  return ((Methods{1} << static_cast<unsigned>(methods)) | ...);
}
constexpr Methods kAll = (Methods{1} << kNames.size()) - 1;
constexpr Methods kDrafting = kAll & ~bits(kNone);
constexpr Methods kHeads = bits(kEagle, kEagle3, kMedusa, kHydra, kHybrid);
constexpr Methods kSelf = bits(kDraftVerify, kLayerSkip, kMagicdec);
constexpr Methods kModels = bits(kDraftModel, kSpecinfer, kTriforce);
constexpr Methods kComputing = kHeads | kSelf | kModels;  // drafts come from logits
constexpr Methods kSuffixes = bits(kSuffix, kHybrid);
// A triforce draft is a chain that the sparse target refines.
constexpr Methods kBranching = (kComputing & ~bits(kTriforce)) | kSuffixes | bits(kRest);
constexpr Methods kSparse = bits(kMagicdec, kTriforce);

// ---- kinds of values, each with the member that it is stored in

struct Name {};  // the method
struct Rule {};  // the acceptance rule
struct Flag {
  bool Config::*member;
};
struct Whole {
  std::uint32_t low, high;
  std::uint32_t Config::*member;
};
struct Real {
  double low, high;
  float Config::*member;
};
struct Path {
  std::string Config::*member;
};
struct Paths {};   // a string, or a list of strings
struct Layers {};  // a list of integers

struct Key {
  std::string_view name;
  Methods methods;
  std::variant<Name, Rule, Flag, Whole, Real, Path, Paths, Layers> kind;
};

// A name may occur twice, for different methods.
constexpr Key kKeys[] = {
    {"method", kAll, Name{}},
    {"num_speculative_tokens", kDrafting, Whole{1, 64, &Config::num_speculative_tokens}},
    {"accept", kDrafting, Rule{}},
    {"adaptive", kDrafting, Flag{&Config::adaptive}},
    {"topk", kBranching, Whole{1, 16, &Config::topk}},
    {"shared_noise", kComputing, Flag{&Config::shared_noise}},
    {"model", kHeads | kModels, Paths{}},
    {"self_test", kHeads | kModels, Flag{&Config::self_test}},
    {"prompt_lookup_min", bits(kNgram), Whole{1, 32, &Config::prompt_lookup_min}},
    {"prompt_lookup_max", bits(kNgram), Whole{1, 32, &Config::prompt_lookup_max}},
    {"suffix_decoding_max_tree_depth", kSuffixes, Whole{1, 64, &Config::suffix_max_tree_depth}},
    {"suffix_decoding_max_cached_tokens", kSuffixes, Whole{0, 2147483647, &Config::suffix_max_cached_tokens}},
    {"suffix_decoding_max_spec_factor", kSuffixes, Real{0, 64, &Config::suffix_max_spec_factor}},
    {"suffix_decoding_max_spec_offset", kSuffixes, Whole{0, 64, &Config::suffix_max_spec_offset}},
    {"suffix_decoding_min_token_prob", kSuffixes, Real{0, 1, &Config::suffix_min_token_prob}},
    {"datastore", bits(kRest), Path{&Config::datastore}},
    {"exit_layer", bits(kLayerSkip), Whole{1, 1024, &Config::exit_layer}},
    {"skip_layers", bits(kDraftVerify), Layers{}},
    {"sinks", kSparse, Whole{0, 1048576, &Config::sinks}},
    {"window", kSparse, Whole{1, 1048576, &Config::window}},
    {"window", bits(kLookahead), Whole{0, 32, &Config::lookahead_window}},
    {"ngram_size", bits(kLookahead), Whole{2, 8, &Config::lookahead_ngram_size}},
    {"guesses", bits(kLookahead), Whole{1, 32, &Config::lookahead_ngrams}},
};
constexpr std::uint32_t kMaxLayers = 1024;
constexpr std::size_t kMaxModels = 16;

// ---- texts of errors

// "a, b and c".
template <typename Range>
std::string listed(const Range& names) {
  std::string out;
  std::size_t left = std::size(names);
  for (const std::string_view name : names) {
    out += std::string(name) + (left > 2 ? ", " : left == 2 ? " and " : "");
    --left;
  }
  return out;
}

// Caller's text for an error message: at most 64 bytes, and only printable ASCII.
std::string shown(std::string_view text) {
  constexpr std::size_t kMaxShown = 64;
  std::string out(text.substr(0, kMaxShown));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return out + (text.size() > kMaxShown ? "..." : "");
}

std::string methods_text(std::string_view key) {
  std::vector<std::string_view> names;
  for (const Key& one : kKeys) {
    if (one.name != key) continue;
    for (std::size_t m = 0; m < kNames.size(); ++m) {
      if ((one.methods >> m & 1) != 0) names.push_back(kNames[m]);
    }
  }
  return listed(names);
}

template <typename T>
std::string range_text(T low, T high) {
  const auto plain = [](T value) { return std::to_string(static_cast<std::int64_t>(value)); };
  return "from " + plain(low) + " to " + plain(high);
}

Error wrong(std::string_view key, const std::string& expected) {
  return invalid(std::string(key), std::string(key) + " must be " + expected);
}

// ---- parsing of values

std::optional<std::uint32_t> whole(const json::value& value, std::uint32_t low, std::uint32_t high) {
  if (!value.is_int64() && !value.is_uint64()) return std::nullopt;
  const bool fits = value.is_uint64()
                        ? value.get_uint64() <= high
                        : value.get_int64() >= std::int64_t{low} && value.get_int64() <= std::int64_t{high};
  if (!fits) return std::nullopt;
  return value.to_number<std::uint32_t>();
}

std::optional<std::string> path(const json::value& value) {
  if (!value.is_string() || value.get_string().empty()) return std::nullopt;
  return std::string(value.get_string());
}

// Stores one value: one overload per kind. config.method is already set.
struct Store {
  std::string_view key;
  const json::value& value;
  Config& config;

  Result<Done> operator()(const Name&) const { return Done{}; }
  Result<Done> operator()(const Rule&) const {
    const auto rule = value.is_string() ? sample::accept_named(std::string_view(value.get_string()))
                                        : std::optional<sample::Accept>();
    if (!rule) return wrong(key, "\"match\", \"ratio\" or \"block\"");
    config.accept = *rule;
    return Done{};
  }
  Result<Done> operator()(const Flag& kind) const {
    if (!value.is_bool()) return wrong(key, "true or false");
    config.*kind.member = value.get_bool();
    return Done{};
  }
  Result<Done> operator()(const Whole& kind) const {
    const auto number = whole(value, kind.low, kind.high);
    if (!number) return wrong(key, "a whole number " + range_text(kind.low, kind.high));
    config.*kind.member = *number;
    return Done{};
  }
  Result<Done> operator()(const Real& kind) const {
    const double number = value.is_number() ? value.to_number<double>() : -1.0;
    if (!(number >= kind.low && number <= kind.high)) return wrong(key, "a number " + range_text(kind.low, kind.high));
    config.*kind.member = static_cast<float>(number);
    return Done{};
  }
  Result<Done> operator()(const Path& kind) const {
    std::optional<std::string> text = path(value);
    if (!text) return wrong(key, "a path");
    config.*kind.member = std::move(*text);
    return Done{};
  }
  Result<Done> operator()(const Paths&) const {
    if (std::optional<std::string> text = path(value)) {
      config.models = {std::move(*text)};
      return Done{};
    }
    const bool several = config.method == kSpecinfer;
    const Error refused = wrong(key, several ? "a path, or a list of up to 16 of them" : "a path");
    if (!several || !value.is_array()) return refused;
    for (const json::value& one : value.get_array()) {
      std::optional<std::string> text = path(one);
      if (!text || config.models.size() == kMaxModels) return refused;
      config.models.push_back(std::move(*text));
    }
    if (config.models.empty()) return refused;
    return Done{};
  }
  Result<Done> operator()(const Layers&) const {
    const Error refused = wrong(key, "a list of layers, " + range_text(0u, kMaxLayers - 1) + ", each once, ascending");
    if (!value.is_array()) return refused;
    std::vector<std::uint32_t>& layers = config.skip_layers;
    for (const json::value& one : value.get_array()) {
      const auto layer = whole(one, 0, kMaxLayers - 1);
      if (!layer || (!layers.empty() && *layer <= layers.back())) return refused;
      layers.push_back(*layer);
    }
    return Done{};
  }
};

Result<Method> method_of(const json::object& given, std::span<const std::string_view> built) {
  const json::value* value = given.if_contains("method");
  const std::string there = "use one of: " + listed(built);
  if (value == nullptr) return invalid("method", "method is missing; " + there);
  if (!value->is_string()) return invalid("method", "method must be a string; " + there);
  const std::string_view name = value->get_string();
  const auto* const known = std::find(kNames.begin(), kNames.end(), name);
  if (known == kNames.end()) return invalid("method", "unknown method \"" + shown(name) + "\"; " + there);
  if (std::ranges::find(built, name) == built.end()) {
    return invalid("method", "method \"" + std::string(name) + "\" is not built in; " + there);
  }
  return static_cast<Method>(known - kNames.begin());
}

Result<Done> store(std::string_view name, const json::value& value, Config& config) {
  bool known = false;
  for (const Key& key : kKeys) {
    if (key.name != name) continue;
    known = true;
    if ((key.methods >> static_cast<unsigned>(config.method) & 1) != 0) {
      return std::visit(Store{key.name, value, config}, key.kind);
    }
  }
  if (!known) return invalid(shown(name), "unknown key " + shown(name));
  return invalid(std::string(name), std::string(name) + " is a key of " + methods_text(name) + ", not of " +
                                        std::string(name_of(config.method)));
}

// Adaptive budgets keep nodes by their expected gain; lookahead nodes promise none, so they would never run.
Result<Done> settle_window(const json::object& given, Config& config) {
  if (config.lookahead_window == 0) return Done{};
  if (!given.contains("num_speculative_tokens")) config.num_speculative_tokens = sample::TokenTree::kMaxNodes;
  if (given.contains("adaptive") && config.adaptive) {
    return invalid("adaptive",
                   "adaptive must be false if lookahead has a window: its rows pay off only in later steps");
  }
  config.adaptive = false;
  const std::uint32_t rows = config.lookahead_window * (config.lookahead_ngram_size - 1);
  const std::uint32_t most = config.num_speculative_tokens / 2;
  if (rows <= most) return Done{};
  return invalid("window", "window · (ngram_size - 1) is " + std::to_string(rows) + " and must be at most " +
                               std::to_string(most) + ", half of num_speculative_tokens");
}

// Checks required keys and relations between keys. If only one of prompt_lookup_min and max is given, the other
// follows.
Result<Done> settle(const json::object& given, Config& config) {
  const bool needs_model = config.method == kDraftModel || config.method == kSpecinfer || config.method == kTriforce;
  if (needs_model && config.models.empty()) return invalid("model", "model is missing: the directory of a draft model");
  if (config.method == kRest && config.datastore.empty()) {
    return invalid("datastore", "datastore is missing: the file that `quire build-datastore` wrote");
  }
  if (config.accept != sample::Accept::kMatch) {
    if (!given.contains("adaptive")) config.adaptive = false;
    if (config.adaptive) {
      return invalid("accept",
                     "accept \"" + std::string(name_of(config.accept)) +
                         "\" cannot be combined with adaptive true: a draft size that depends on sampled tokens would "
                         "change the output distribution; leave adaptive out, or set accept to \"match\"");
    }
  }
  if (!given.contains("prompt_lookup_min")) {
    config.prompt_lookup_min = std::min(config.prompt_lookup_min, config.prompt_lookup_max);
  }
  if (!given.contains("prompt_lookup_max")) {
    config.prompt_lookup_max = std::max(config.prompt_lookup_min, config.prompt_lookup_max);
  }
  if (config.prompt_lookup_min > config.prompt_lookup_max) {
    return invalid("prompt_lookup_min", "prompt_lookup_min is " + std::to_string(config.prompt_lookup_min) +
                                            " and prompt_lookup_max " + std::to_string(config.prompt_lookup_max) +
                                            ": the minimum must not exceed the maximum");
  }
  return settle_window(given, config);
}

}  // namespace

std::string_view name_of(Method method) { return kNames[static_cast<std::size_t>(method)]; }

std::span<const std::string_view> built_methods() { return kBuilt; }

Result<SpeculativeConfig> parse_speculative_config(std::string_view text, std::span<const std::string_view> built) {
  json::error_code error;
  const json::value parsed = json::parse(text, error);
  if (error || !parsed.is_object()) {
    return invalid("", "expected a JSON object, such as {\"method\": \"ngram\", \"num_speculative_tokens\": 4}");
  }
  const json::object& given = parsed.get_object();
  const Result<Method> method = method_of(given, built);
  if (!method) return method.error();
  Config config;
  config.method = *method;
  for (const auto& [key, value] : given) {
    if (Result<Done> stored = store(key, value, config); !stored) return stored.error();
  }
  if (Result<Done> settled = settle(given, config); !settled) return settled.error();
  return config;
}

}  // namespace quire::speculate
