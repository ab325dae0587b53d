// Architectures: each is a file that reads a config.json into a ModelSpec, and one line in the registry.
// Thread  start.
// Fails   StartError naming file, key, the value found and the value expected.
// Source  transformers 5.24 configuration_*.py and modeling_*.py of each family.
#pragma once

#include <span>
#include <string_view>

#include "core/model/source/json_fields.h"
#include "core/model/spec.h"

namespace quire::model {

struct Architecture {
  std::string_view model_type;  // "llama"
  std::string_view class_name;  // "LlamaForCausalLM"
  ModelSpec (*read)(const JsonFields& fields);
  std::string_view other_class{};  // that a config.json may name instead
};

// A model with images whose text part is one of the architectures: its config is in "text_config".
struct Wrapper {
  std::string_view model_type;
  std::string_view class_name;
  bool tied = true;             // without tie_word_embeddings
  bool caps_logits = true;      // false: final_logit_softcapping is not applied
  std::string_view own_text{};  // without text_config the keys of such a text model are beside those of the images
};

std::span<const Architecture> architectures();
std::span<const Wrapper> wrappers();

}  // namespace quire::model
