// Mixtures of experts in GGUF files: what their keys say of each architecture's experts, and their tensors.
// Thread  start.
// Fails   StartError naming the key or tensor.
// Source  llama.cpp's converter, and the rules of the models themselves where llama.cpp has another.
#pragma once

#include <boost/json.hpp>

#include "core/model/gguf/gguf_source.h"
#include "core/model/spec.h"

namespace quire::model {

// Each adds to a config what config.json of that family has of experts.
void describe_mixtral(const GgufSource& source, boost::json::object& config);
void describe_qwen2_moe(const GgufSource& source, boost::json::object& config);
void describe_qwen3_moe(const GgufSource& source, boost::json::object& config);
void describe_olmoe(const GgufSource& source, boost::json::object& config);
void describe_granitemoe(const GgufSource& source, boost::json::object& config);
void describe_phimoe(const GgufSource& source, boost::json::object& config);
void describe_ernie4_5_moe(const GgufSource& source, boost::json::object& config);
void describe_glm4_moe(const GgufSource& source, boost::json::object& config);
void describe_dots1(const GgufSource& source, boost::json::object& config);
void describe_minimax_m2(const GgufSource& source, boost::json::object& config);
void describe_gpt_oss(const GgufSource& source, boost::json::object& config);
void describe_hunyuan_moe(const GgufSource& source, boost::json::object& config);
void describe_hy_v3(const GgufSource& source, boost::json::object& config);
void describe_deepseek(const GgufSource& source, boost::json::object& config);  // and its latents
void describe_gemma4_experts(const GgufSource& source, boost::json::object& config);

// Tensors that these architectures call otherwise than most.
void rename_gpt_oss(const GgufSource& source, TensorNames& names);
void rename_deepseek(const GgufSource& source, TensorNames& names);

// Names of the tensors of experts that most architectures have.
ExpertNames gguf_expert_names(const GgufSource& source);

}  // namespace quire::model
