#include "app/model/embedded_model.h"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

// The symbols that .incbin defines for a file: its C identifier, and the end of its bytes.
#define QUIRE_EMBEDDED(identifier)                          \
  extern "C" const std::byte quire_embedded_##identifier[]; \
  extern "C" const std::byte quire_embedded_##identifier##_end[];

QUIRE_EMBEDDED(config_json)
QUIRE_EMBEDDED(generation_config_json)
QUIRE_EMBEDDED(model_safetensors)
QUIRE_EMBEDDED(tokenizer_json)
QUIRE_EMBEDDED(tokenizer_config_json)
QUIRE_EMBEDDED(draft_config_json)
QUIRE_EMBEDDED(draft_model_safetensors)

namespace quire::app {

std::unique_ptr<model::ModelFiles> embedded_model() {
  using File = std::pair<std::string_view, model::FileBytes>;
  static const std::array<File, 5> files = {
      File{"config.json", {quire_embedded_config_json, quire_embedded_config_json_end}},
      File{"generation_config.json",
           {quire_embedded_generation_config_json, quire_embedded_generation_config_json_end}},
      File{"model.safetensors", {quire_embedded_model_safetensors, quire_embedded_model_safetensors_end}},
      File{"tokenizer.json", {quire_embedded_tokenizer_json, quire_embedded_tokenizer_json_end}},
      File{"tokenizer_config.json", {quire_embedded_tokenizer_config_json, quire_embedded_tokenizer_config_json_end}},
  };
  return model::ModelFiles::memory(files);
}

std::unique_ptr<model::ModelFiles> embedded_head() {
  using File = std::pair<std::string_view, model::FileBytes>;
  static const std::array<File, 2> files = {
      File{"config.json", {quire_embedded_draft_config_json, quire_embedded_draft_config_json_end}},
      File{"model.safetensors", {quire_embedded_draft_model_safetensors, quire_embedded_draft_model_safetensors_end}},
  };
  return model::ModelFiles::memory(files);
}

}  // namespace quire::app
