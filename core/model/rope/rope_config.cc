#include "core/model/rope/rope_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace quire::model {
namespace {

constexpr std::array<std::pair<std::string_view, RopeKind>, 7> kKinds = {{{"default", RopeKind::kDefault},
                                                                          {"linear", RopeKind::kLinear},
                                                                          {"llama3", RopeKind::kLlama3},
                                                                          {"yarn", RopeKind::kYarn},
                                                                          {"dynamic", RopeKind::kDynamic},
                                                                          {"longrope", RopeKind::kLongRope},
                                                                          {"proportional", RopeKind::kProportional}}};
constexpr double kMaxFactor = 1e6;
constexpr double kMinTheta = 2.0;
constexpr double kMaxTheta = 1e15;
constexpr std::uint64_t kMaxOriginal = (1u << 31) - 1;

// rope_scaling takes precedence if both are present and it is not empty.
std::optional<JsonFields> find_parameters(const JsonFields& config) {
  std::optional<JsonFields> scaling = config.optional_object("rope_scaling");
  if (scaling && !scaling->keys().empty()) return scaling;
  return config.optional_object("rope_parameters");
}

RopeKind read_kind(const JsonFields& parameters, const RopeDefaults& defaults) {
  const char* key = parameters.has("rope_type") ? "rope_type" : "type";
  const std::string name = parameters.optional_string(key).value_or(name_of(defaults.kind));
  if (defaults.sections && name == "mrope") return RopeKind::kDefault;
  if (defaults.longrope && (name == "su" || name == "yarn")) return RopeKind::kLongRope;
  for (const auto& [known, kind] : kKinds) {
    if (name != known) continue;
    if (kind == RopeKind::kLongRope && !defaults.longrope) break;
    if (kind == RopeKind::kProportional && defaults.kind != kind) break;
    return kind;
  }
  parameters.mismatch(key, std::string("expected one of default, linear, llama3, yarn, dynamic") +
                               (defaults.longrope ? ", longrope" : ""));
}

void refuse_unsupported(const JsonFields& parameters, const RopeDefaults& defaults) {
  for (const char* key : {"full_attention", "sliding_attention"}) {
    if (parameters.has(key)) parameters.refuse(key, "is set; rope settings per layer are not supported");
  }
  if (parameters.has("mrope_section") && !defaults.sections)
    parameters.refuse("mrope_section", "is set, but is not supported");
  if (defaults.longrope) return;
  for (const char* key : {"long_factor", "short_factor"}) {
    if (parameters.has(key)) parameters.refuse(key, "is set, but is not supported");
  }
}

// The fraction of a head that turns, from either place.
double read_fraction(const JsonFields& config, const JsonFields* parameters, const RopeDefaults& defaults) {
  constexpr std::string_view kKey = "partial_rotary_factor";
  for (const JsonFields* fields : {parameters, &config}) {
    if (fields == nullptr || !fields->has(kKey)) continue;
    const double low = defaults.partial ? 1e-3 : -1e9;
    const double fraction = *fields->optional_number(kKey, low, defaults.partial ? 1.0 : 1e9);
    if (!defaults.partial && fraction != 1.0) {
      fields->mismatch(kKey, "expected 1: partly rotated heads are not supported");
    }
    return fraction;
  }
  return defaults.rotary_fraction;
}

// For llama3 and yarn: the key at the config's top level, else the key in `parameters`, else max_position_embeddings.
std::uint32_t read_original(const JsonFields& config, const JsonFields& parameters, std::uint32_t max_positions) {
  constexpr std::string_view kKey = "original_max_position_embeddings";
  const auto top = config.optional_uint(kKey, 1, kMaxOriginal);
  const auto inner = parameters.optional_uint(kKey, 1, kMaxOriginal);
  return static_cast<std::uint32_t>(top ? *top : inner.value_or(max_positions));
}

void read_llama3(const JsonFields& config, const JsonFields& parameters, std::uint32_t max_positions,
                 RopeConfig& rope) {
  rope.factor = parameters.require_number("factor", 1.0, kMaxFactor);
  rope.low_freq_factor = parameters.require_number("low_freq_factor", 1e-6, kMaxFactor);
  rope.high_freq_factor = parameters.require_number("high_freq_factor", 1e-6, kMaxFactor);
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    parameters.mismatch("high_freq_factor", "expected more than low_freq_factor = " + shortest(rope.low_freq_factor));
  }
  rope.original_positions = read_original(config, parameters, max_positions);
}

void read_yarn(const JsonFields& config, const JsonFields& parameters, std::uint32_t max_positions, RopeConfig& rope) {
  rope.original_positions = read_original(config, parameters, max_positions);
  const double implied = static_cast<double>(max_positions) / rope.original_positions;
  rope.factor = parameters.optional_number("factor", 1.0, kMaxFactor).value_or(implied);
  rope.attention_factor = parameters.optional_number("attention_factor", 1e-6, kMaxFactor);
  // 0 counts as absent for these four keys, as in transformers.
  const auto or_default = [&](const char* key, double otherwise) {
    const double number = parameters.optional_number(key, 0.0, kMaxFactor).value_or(0.0);
    return number == 0.0 ? otherwise : number;
  };
  rope.beta_fast = or_default("beta_fast", 32.0);
  rope.beta_slow = or_default("beta_slow", 1.0);
  if (rope.beta_fast < rope.beta_slow) {
    parameters.mismatch("beta_fast", "expected at least beta_slow = " + shortest(rope.beta_slow));
  }
  rope.mscale = or_default("mscale", 0.0);
  rope.mscale_all_dim = or_default("mscale_all_dim", 0.0);
  rope.truncate = parameters.optional_bool("truncate").value_or(true);
}

void read_longrope(const JsonFields& config, const JsonFields& parameters, std::uint32_t max_positions,
                   const RopeDefaults& defaults, RopeConfig& rope) {
  constexpr std::string_view kOriginal = "original_max_position_embeddings";
  const auto top = config.optional_uint(kOriginal, 2, kMaxOriginal);
  const auto inner = parameters.optional_uint(kOriginal, 2, kMaxOriginal);
  rope.original_positions = static_cast<std::uint32_t>(top ? *top : inner.value_or(defaults.original_positions));
  const double implied = std::max(1.0, static_cast<double>(max_positions) / rope.original_positions);
  rope.factor = parameters.optional_number("factor", 1.0, kMaxFactor).value_or(implied);
  rope.attention_factor = parameters.optional_number("attention_factor", 1e-6, kMaxFactor);
  rope.short_mscale = parameters.optional_number("short_mscale", 1e-6, kMaxFactor).value_or(0.0);
  rope.long_mscale = parameters.optional_number("long_mscale", 1e-6, kMaxFactor).value_or(0.0);
  rope.short_factors = parameters.numbers("short_factor", 1e-6, kMaxFactor);
  rope.long_factors = parameters.numbers("long_factor", 1e-6, kMaxFactor);
  for (const char* key : {"short_factor", "long_factor"}) {
    if (!parameters.has(key)) parameters.refuse(key, "is missing; expected a number for each pair of dimensions");
  }
  rope.is_long = max_positions > rope.original_positions;
}

template <typename Number>
std::string shortest_text(Number value) {
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return std::string(text.data(), end);
}

}  // namespace

const char* name_of(RopeKind kind) {
  for (const auto& [name, known] : kKinds) {
    if (known == kind) return name.data();
  }
  return "?";
}

std::string shortest(double value) { return shortest_text(value); }
std::string shortest(float value) { return shortest_text(value); }

RopeConfig read_rope(const JsonFields& config, std::uint32_t max_positions, const RopeDefaults& defaults) {
  const std::optional<JsonFields> parameters = find_parameters(config);
  if (parameters) return read_rope_parameters(config, *parameters, max_positions, defaults);
  RopeConfig rope;
  rope.kind = defaults.kind;
  rope.theta = config.optional_number("rope_theta", kMinTheta, kMaxTheta).value_or(defaults.theta);
  rope.rotary_fraction = read_fraction(config, nullptr, defaults);
  return rope;
}

RopeConfig read_rope_parameters(const JsonFields& config, const JsonFields& parameters, std::uint32_t max_positions,
                                const RopeDefaults& defaults) {
  refuse_unsupported(parameters, defaults);
  RopeConfig rope;
  const double outer = config.optional_number("rope_theta", kMinTheta, kMaxTheta).value_or(defaults.theta);
  rope.theta = parameters.optional_number("rope_theta", kMinTheta, kMaxTheta).value_or(outer);
  rope.rotary_fraction = read_fraction(config, &parameters, defaults);
  rope.kind = read_kind(parameters, defaults);
  switch (rope.kind) {
    case RopeKind::kDefault:
      break;
    case RopeKind::kLinear:
    case RopeKind::kDynamic:
      rope.factor = parameters.require_number("factor", 1.0, kMaxFactor);
      break;
    case RopeKind::kProportional:
      rope.factor = parameters.optional_number("factor", 1.0, kMaxFactor).value_or(1.0);
      break;
    case RopeKind::kLlama3:
      read_llama3(config, parameters, max_positions, rope);
      break;
    case RopeKind::kYarn:
      read_yarn(config, parameters, max_positions, rope);
      break;
    case RopeKind::kLongRope:
      read_longrope(config, parameters, max_positions, defaults, rope);
      break;
  }
  return rope;
}

std::string describe(const RopeConfig& rope) {
  std::string text = std::string(name_of(rope.kind)) + "(theta=" + shortest(rope.theta);
  if (rope.kind == RopeKind::kLinear || rope.kind == RopeKind::kLlama3 || rope.kind == RopeKind::kYarn ||
      rope.kind == RopeKind::kProportional) {
    text += ",factor=" + shortest(rope.factor);
  }
  if (rope.kind == RopeKind::kLlama3) {
    text += ",low=" + shortest(rope.low_freq_factor) + ",high=" + shortest(rope.high_freq_factor);
  }
  if (rope.kind == RopeKind::kLlama3 || rope.kind == RopeKind::kYarn) {
    text += ",original=" + std::to_string(rope.original_positions);
  }
  if (rope.kind == RopeKind::kYarn) {
    text += ",beta=" + shortest(rope.beta_fast) + ":" + shortest(rope.beta_slow);
    if (rope.attention_factor) text += ",attention=" + shortest(*rope.attention_factor);
    if (rope.mscale != 0.0) text += ",mscale=" + shortest(rope.mscale);
    if (rope.mscale_all_dim != 0.0) text += ",mscale_all_dim=" + shortest(rope.mscale_all_dim);
    if (!rope.truncate) text += ",untruncated";
  }
  if (rope.kind == RopeKind::kLongRope) {
    text += ",factor=" + shortest(rope.factor) + ",original=" + std::to_string(rope.original_positions);
    if (rope.attention_factor) text += ",attention=" + shortest(*rope.attention_factor);
    const double mscale = rope.is_long ? rope.long_mscale : rope.short_mscale;
    if (mscale != 0.0) text += ",mscale=" + shortest(mscale);
    text += rope.is_long ? ",long=" : ",short=";
    for (const double factor : rope.is_long ? rope.long_factors : rope.short_factors) text += shortest(factor) + ":";
    text.pop_back();
  }
  if (rope.rotary_fraction != 1.0) text += ",rotary=" + shortest(rope.rotary_fraction);
  if (rope.negated) text += ",negated";
  return text + ")";
}

}  // namespace quire::model
