// Test support: small configs of every family, with E 32, F 28, H 4, G 2, D 12, V 30 and two layers.
#pragma once

#include <string>

#include "core/model/tensor_table.h"

namespace quire::model::testing {

inline constexpr const char* kFamilySizes = R"("hidden_size": 32, "intermediate_size": 28, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12, "vocab_size": 30, "max_position_embeddings": 64)";

// Of a mixture.
inline constexpr const char* kExperts = R"("num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 10)";

// Later keys win: `extra` may repeat a size.
inline std::string family(const std::string& model_type, const std::string& extra = "") {
  return "{\"model_type\": \"" + model_type + "\", " + kFamilySizes + (extra.empty() ? "" : ", " + extra) + "}";
}

// An MPT, whose keys are its own, with more of them.
inline std::string mpt(const std::string& extra) {
  return R"({"model_type": "mpt", "d_model": 32, "n_layers": 2, "n_heads": 4, "vocab_size": 30, )" + extra + "}";
}

// The text part of a model with images; `outer` are keys beside text_config.
inline std::string wrapped(const std::string& model_type, const std::string& text, const std::string& outer = "") {
  return "{\"model_type\": \"" + model_type + "\", " + (outer.empty() ? "" : outer + ", ") +
         "\"text_config\": " + text + "}";
}

// The tensor of a part; each of several matrices in one tensor has a name.
inline std::string name_of(const TensorPart& part) {
  return part.name + (part.matrix == TensorPart::kOnly ? "" : "#" + std::to_string(part.matrix));
}

}  // namespace quire::model::testing
