// Readers of the architectures, one file each.
#pragma once

#include "core/model/source/json_fields.h"
#include "core/model/spec.h"

namespace quire::model {

ModelSpec read_llama(const JsonFields& fields);
ModelSpec read_mistral(const JsonFields& fields);
ModelSpec read_qwen2(const JsonFields& fields);
ModelSpec read_qwen3(const JsonFields& fields);
ModelSpec read_qwen2_vl(const JsonFields& fields);
ModelSpec read_qwen2_5_vl(const JsonFields& fields);
ModelSpec read_qwen3_vl(const JsonFields& fields);
ModelSpec read_gemma(const JsonFields& fields);
ModelSpec read_gemma2(const JsonFields& fields);
ModelSpec read_vaultgemma(const JsonFields& fields);
ModelSpec read_gemma3(const JsonFields& fields);
ModelSpec read_gemma3n(const JsonFields& fields);
ModelSpec read_gemma4(const JsonFields& fields);
ModelSpec read_phi3(const JsonFields& fields);
ModelSpec read_granite(const JsonFields& fields);
ModelSpec read_olmo2(const JsonFields& fields);
ModelSpec read_olmo3(const JsonFields& fields);
ModelSpec read_cohere(const JsonFields& fields);
ModelSpec read_cohere2(const JsonFields& fields);
ModelSpec read_glm(const JsonFields& fields);
ModelSpec read_glm4(const JsonFields& fields);
ModelSpec read_stablelm(const JsonFields& fields);
ModelSpec read_starcoder2(const JsonFields& fields);
ModelSpec read_ministral(const JsonFields& fields);
ModelSpec read_ministral3(const JsonFields& fields);
ModelSpec read_smollm3(const JsonFields& fields);
ModelSpec read_apertus(const JsonFields& fields);
ModelSpec read_arcee(const JsonFields& fields);
ModelSpec read_bitnet(const JsonFields& fields);
ModelSpec read_nanochat(const JsonFields& fields);
ModelSpec read_olmo(const JsonFields& fields);
ModelSpec read_seed_oss(const JsonFields& fields);
ModelSpec read_ernie4_5(const JsonFields& fields);
ModelSpec read_exaone4(const JsonFields& fields);
ModelSpec read_helium(const JsonFields& fields);
ModelSpec read_nemotron(const JsonFields& fields);
ModelSpec read_internlm2(const JsonFields& fields);
ModelSpec read_internlm3(const JsonFields& fields);
ModelSpec read_hunyuan(const JsonFields& fields);
ModelSpec read_phi(const JsonFields& fields);
ModelSpec read_gpt_neox(const JsonFields& fields);
ModelSpec read_gptj(const JsonFields& fields);
ModelSpec read_falcon(const JsonFields& fields);
ModelSpec read_gpt2(const JsonFields& fields);
ModelSpec read_gpt_bigcode(const JsonFields& fields);
ModelSpec read_bloom(const JsonFields& fields);
ModelSpec read_mpt(const JsonFields& fields);
ModelSpec read_opt(const JsonFields& fields);
ModelSpec read_mixtral(const JsonFields& fields);
ModelSpec read_gpt_oss(const JsonFields& fields);
ModelSpec read_hunyuan_moe(const JsonFields& fields);
ModelSpec read_exaone_moe(const JsonFields& fields);
ModelSpec read_hy_v3(const JsonFields& fields);
ModelSpec read_qwen3_vl_moe(const JsonFields& fields);
ModelSpec read_minimax_m2(const JsonFields& fields);
ModelSpec read_qwen2_moe(const JsonFields& fields);
ModelSpec read_qwen3_moe(const JsonFields& fields);
ModelSpec read_olmoe(const JsonFields& fields);
ModelSpec read_granitemoe(const JsonFields& fields);
ModelSpec read_granitemoeshared(const JsonFields& fields);
ModelSpec read_phimoe(const JsonFields& fields);
ModelSpec read_ernie4_5_moe(const JsonFields& fields);
ModelSpec read_glm4_moe(const JsonFields& fields);
ModelSpec read_dots1(const JsonFields& fields);
ModelSpec read_solar_open(const JsonFields& fields);
ModelSpec read_deepseek_v2(const JsonFields& fields);
ModelSpec read_deepseek_v3(const JsonFields& fields);
ModelSpec read_kimi_k2(const JsonFields& fields);
ModelSpec read_glm4_moe_lite(const JsonFields& fields);
ModelSpec read_mistral4(const JsonFields& fields);

}  // namespace quire::model
