// A Hugging Face config.json as a ModelSpec, by the architecture that it names (core/model/arch); and the values of
// generation_config.json. A key that would change the arithmetic in an unsupported way is refused by name.
// Fails   StartError naming the file, the key, the value found and the value expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/model/source/model_files.h"
#include "core/model/spec.h"

namespace quire::model {

// Reads config.json.
ModelSpec load_config(const ModelFiles& files);
// As load_config(), from text; `name` is the file's name in errors.
ModelSpec parse_config(std::string_view text, const std::string& name);

// Values of generation_config.json; absent keys stay absent. do_sample: false is read as temperature 0.
struct GenerationDefaults {
  std::vector<TokenId> eos;  // config.json's list if generation_config.json has none
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<std::int32_t> top_k;
  std::optional<float> repetition_penalty;
  std::optional<std::uint32_t> max_new_tokens;  // default of requests without max_tokens; no limit for others
};

// Reads generation_config.json. A model without the file has no defaults, and config.json's EOS list.
GenerationDefaults load_generation_defaults(const ModelFiles& files, const ModelSpec& config);
GenerationDefaults parse_generation_defaults(std::string_view text, const std::string& name, const ModelSpec& config);

}  // namespace quire::model
