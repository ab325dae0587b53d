#include "core/model/rope_config.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace quire::model {
namespace {

constexpr std::array<std::pair<std::string_view, RopeKind>, 5> kKinds = {{{"default", RopeKind::kDefault},
                                                                          {"linear", RopeKind::kLinear},
                                                                          {"llama3", RopeKind::kLlama3},
                                                                          {"yarn", RopeKind::kYarn},
                                                                          {"dynamic", RopeKind::kDynamic}}};
constexpr double kMaxFactor = 1e6;
constexpr double kMinTheta = 2.0;
constexpr double kMaxTheta = 1e15;
constexpr std::uint64_t kMaxOriginal = (1u << 31) - 1;

// rope_scaling wins where both are there and it is not empty.
std::optional<JsonFields> find_parameters(const JsonFields& config) {
  std::optional<JsonFields> scaling = config.optional_object("rope_scaling");
  if (scaling && !scaling->keys().empty()) return scaling;
  return config.optional_object("rope_parameters");
}

RopeKind read_kind(const JsonFields& parameters) {
  const char* key = parameters.has("rope_type") ? "rope_type" : "type";
  const std::string name = parameters.optional_string(key).value_or("default");
  for (const auto& [known, kind] : kKinds) {
    if (name == known) return kind;
  }
  parameters.mismatch(key, "expected one of default, linear, llama3, yarn, dynamic");
}

void refuse_unsupported(const JsonFields& parameters) {
  for (const char* key : {"full_attention", "sliding_attention"}) {
    if (parameters.has(key)) parameters.refuse(key, "is set; rope settings that differ by layer are not supported");
  }
  for (const char* key : {"mrope_section", "long_factor", "short_factor"}) {
    if (parameters.has(key)) parameters.refuse(key, "is set; it is not supported");
  }
  if (parameters.optional_number("partial_rotary_factor", -1e9, 1e9).value_or(1.0) != 1.0) {
    parameters.mismatch("partial_rotary_factor", "expected 1: heads that are rotated in part are not supported");
  }
}

// Of llama3 and yarn: the config's top level has the first word, its max_position_embeddings the last.
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
  // 0 counts as absent for these four, as it does in the source.
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

RopeConfig read_rope(const JsonFields& config, std::uint32_t max_positions) {
  RopeConfig rope;
  rope.theta = config.optional_number("rope_theta", kMinTheta, kMaxTheta).value_or(rope.theta);
  const std::optional<JsonFields> parameters = find_parameters(config);
  if (!parameters) return rope;

  refuse_unsupported(*parameters);
  rope.theta = parameters->optional_number("rope_theta", kMinTheta, kMaxTheta).value_or(rope.theta);
  rope.kind = read_kind(*parameters);
  switch (rope.kind) {
    case RopeKind::kDefault:
      break;
    case RopeKind::kLinear:
    case RopeKind::kDynamic:
      rope.factor = parameters->require_number("factor", 1.0, kMaxFactor);
      break;
    case RopeKind::kLlama3:
      read_llama3(config, *parameters, max_positions, rope);
      break;
    case RopeKind::kYarn:
      read_yarn(config, *parameters, max_positions, rope);
      break;
  }
  return rope;
}

std::string describe(const RopeConfig& rope) {
  std::string text = std::string(name_of(rope.kind)) + "(theta=" + shortest(rope.theta);
  if (rope.kind == RopeKind::kLinear || rope.kind == RopeKind::kLlama3 || rope.kind == RopeKind::kYarn) {
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
  return text + ")";
}

}  // namespace quire::model
