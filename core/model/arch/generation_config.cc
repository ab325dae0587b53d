// generation_config.json: EOS list and sampling defaults.
#include <algorithm>
#include <cmath>

#include "core/model/arch/config.h"
#include "core/model/source/json_fields.h"

namespace quire::model {

GenerationDefaults load_generation_defaults(const ModelFiles& files, const ModelSpec& config) {
  const std::optional<FileBytes> bytes = files.find("generation_config.json");
  if (!bytes) {
    GenerationDefaults defaults;
    defaults.eos = config.eos;
    return defaults;
  }
  return parse_generation_defaults({reinterpret_cast<const char*>(bytes->data()), bytes->size()},
                                   files.describe("generation_config.json"), config);
}

GenerationDefaults parse_generation_defaults(std::string_view text, const std::string& name, const ModelSpec& config) {
  const boost::json::object object = parse_object(text, name);
  const JsonFields fields(object, name);
  const auto number = [&](const char* key, double low, double high) -> std::optional<float> {
    const std::optional<double> value = fields.optional_number(key, low, high);
    return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
  };

  GenerationDefaults defaults;
  defaults.eos = fields.token_ids("eos_token_id", config.vocab);
  if (defaults.eos.empty()) defaults.eos = config.eos;
  defaults.temperature = number("temperature", 0.0, 100.0);
  defaults.top_p = number("top_p", 0.0, 1.0);
  if (defaults.top_p && *defaults.top_p == 0.0f) fields.mismatch("top_p", "expected a number in (0, 1]");
  defaults.min_p = number("min_p", 0.0, 1.0);
  constexpr double kMostCandidates = (1u << 31) - 1;
  if (const auto top_k = fields.optional_number("top_k", -1.0, kMostCandidates)) {
    if (*top_k != std::floor(*top_k)) fields.mismatch("top_k", "expected an integer");
    defaults.top_k = static_cast<std::int32_t>(std::max(*top_k, 0.0));  // -1 means no limit, as 0 does
  }
  defaults.repetition_penalty = number("repetition_penalty", 0.0, 2.0);
  if (defaults.repetition_penalty && *defaults.repetition_penalty == 0.0f) {
    fields.mismatch("repetition_penalty", "expected a number in (0, 2]");
  }
  if (const auto most = fields.optional_uint("max_new_tokens", 1, (1u << 31) - 1)) {
    defaults.max_new_tokens = static_cast<std::uint32_t>(*most);
  }
  const std::optional<bool> do_sample = fields.optional_bool("do_sample");
  if (do_sample && !*do_sample) defaults.temperature = 0.0f;
  return defaults;
}

}  // namespace quire::model
