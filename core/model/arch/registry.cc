#include <array>

#include "core/model/arch/architecture.h"
#include "core/model/arch/families.h"

namespace quire::model {
namespace {

constexpr std::array kArchitectures = {
    Architecture{"llama", "LlamaForCausalLM", read_llama, "LLaMAForCausalLM"},
    Architecture{"mistral", "MistralForCausalLM", read_mistral},
    Architecture{"qwen2", "Qwen2ForCausalLM", read_qwen2},
    Architecture{"qwen3", "Qwen3ForCausalLM", read_qwen3},
    Architecture{"qwen2_vl_text", "Qwen2VLTextModel", read_qwen2_vl},
    Architecture{"qwen2_5_vl_text", "Qwen2_5_VLTextModel", read_qwen2_5_vl},
    Architecture{"qwen3_vl_text", "Qwen3VLTextModel", read_qwen3_vl},
    Architecture{"gemma", "GemmaForCausalLM", read_gemma},
    Architecture{"gemma2", "Gemma2ForCausalLM", read_gemma2},
    Architecture{"vaultgemma", "VaultGemmaForCausalLM", read_vaultgemma},
    Architecture{"gemma3_text", "Gemma3ForCausalLM", read_gemma3},
    Architecture{"gemma3n_text", "Gemma3nForCausalLM", read_gemma3n},
    Architecture{"gemma4_text", "Gemma4ForCausalLM", read_gemma4},
    Architecture{"phi3", "Phi3ForCausalLM", read_phi3},
    Architecture{"granite", "GraniteForCausalLM", read_granite},
    Architecture{"olmo", "OlmoForCausalLM", read_olmo},
    Architecture{"olmo2", "Olmo2ForCausalLM", read_olmo2},
    Architecture{"olmo3", "Olmo3ForCausalLM", read_olmo3},
    Architecture{"cohere", "CohereForCausalLM", read_cohere},
    Architecture{"cohere2", "Cohere2ForCausalLM", read_cohere2},
    Architecture{"glm", "GlmForCausalLM", read_glm},
    Architecture{"glm4", "Glm4ForCausalLM", read_glm4},
    Architecture{"stablelm", "StableLmForCausalLM", read_stablelm},
    Architecture{"starcoder2", "Starcoder2ForCausalLM", read_starcoder2},
    Architecture{"ministral", "MinistralForCausalLM", read_ministral},
    Architecture{"ministral3", "Ministral3ForCausalLM", read_ministral3},
    Architecture{"smollm3", "SmolLM3ForCausalLM", read_smollm3},
    Architecture{"apertus", "ApertusForCausalLM", read_apertus},
    Architecture{"arcee", "ArceeForCausalLM", read_arcee},
    Architecture{"bitnet", "BitNetForCausalLM", read_bitnet, "BitnetForCausalLM"},
    Architecture{"nanochat", "NanoChatForCausalLM", read_nanochat},
    Architecture{"seed_oss", "SeedOssForCausalLM", read_seed_oss},
    Architecture{"ernie4_5", "Ernie4_5ForCausalLM", read_ernie4_5, "Ernie4_5_ForCausalLM"},
    Architecture{"exaone4", "Exaone4ForCausalLM", read_exaone4},
    Architecture{"helium", "HeliumForCausalLM", read_helium},
    Architecture{"nemotron", "NemotronForCausalLM", read_nemotron},
    Architecture{"internlm2", "InternLM2ForCausalLM", read_internlm2},
    Architecture{"internlm3", "InternLM3ForCausalLM", read_internlm3, "LlamaForCausalLM"},
    Architecture{"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", read_hunyuan},
    Architecture{"phi", "PhiForCausalLM", read_phi},
    Architecture{"gpt_neox", "GPTNeoXForCausalLM", read_gpt_neox},
    Architecture{"gptj", "GPTJForCausalLM", read_gptj},
    Architecture{"falcon", "FalconForCausalLM", read_falcon},
    Architecture{"gpt2", "GPT2LMHeadModel", read_gpt2},
    Architecture{"gpt_bigcode", "GPTBigCodeForCausalLM", read_gpt_bigcode},
    Architecture{"bloom", "BloomForCausalLM", read_bloom},
    Architecture{"mpt", "MptForCausalLM", read_mpt, "MPTForCausalLM"},
    Architecture{"opt", "OPTForCausalLM", read_opt},
    Architecture{"mixtral", "MixtralForCausalLM", read_mixtral},
    Architecture{"qwen2_moe", "Qwen2MoeForCausalLM", read_qwen2_moe},
    Architecture{"qwen3_moe", "Qwen3MoeForCausalLM", read_qwen3_moe},
    Architecture{"olmoe", "OlmoeForCausalLM", read_olmoe},
    Architecture{"granitemoe", "GraniteMoeForCausalLM", read_granitemoe},
    Architecture{"granitemoeshared", "GraniteMoeSharedForCausalLM", read_granitemoeshared},
    Architecture{"phimoe", "PhimoeForCausalLM", read_phimoe, "PhiMoEForCausalLM"},
    Architecture{"ernie4_5_moe", "Ernie4_5_MoeForCausalLM", read_ernie4_5_moe},
    Architecture{"glm4_moe", "Glm4MoeForCausalLM", read_glm4_moe},
    Architecture{"dots1", "Dots1ForCausalLM", read_dots1},
    Architecture{"solar_open", "SolarOpenForCausalLM", read_solar_open},
    Architecture{"gpt_oss", "GptOssForCausalLM", read_gpt_oss},
    Architecture{"hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", read_hunyuan_moe},
    Architecture{"exaone_moe", "ExaoneMoeForCausalLM", read_exaone_moe},
    Architecture{"hy_v3", "HYV3ForCausalLM", read_hy_v3},
    Architecture{"qwen3_vl_moe_text", "Qwen3VLMoeTextModel", read_qwen3_vl_moe},
    Architecture{"minimax_m2", "MiniMaxM2ForCausalLM", read_minimax_m2},
    Architecture{"deepseek_v2", "DeepseekV2ForCausalLM", read_deepseek_v2},
    Architecture{"deepseek_v3", "DeepseekV3ForCausalLM", read_deepseek_v3},
    Architecture{"kimi_k2", "DeepseekV3ForCausalLM", read_kimi_k2, "KimiK2ForCausalLM"},
    Architecture{"glm4_moe_lite", "Glm4MoeLiteForCausalLM", read_glm4_moe_lite},
    Architecture{"mistral4", "Mistral4ForCausalLM", read_mistral4},
};

constexpr std::array kWrappers = {
    Wrapper{"gemma3", "Gemma3ForConditionalGeneration", /*tied=*/true, /*caps_logits=*/false},
    Wrapper{"gemma3n", "Gemma3nForConditionalGeneration", /*tied=*/true},
    Wrapper{"gemma4", "Gemma4ForConditionalGeneration"},
    Wrapper{"idefics3", "Idefics3ForConditionalGeneration", /*tied=*/false},
    Wrapper{"llava", "LlavaForConditionalGeneration", /*tied=*/false},
    Wrapper{"llava_next", "LlavaNextForConditionalGeneration", /*tied=*/false},
    Wrapper{"llava_onevision", "LlavaOnevisionForConditionalGeneration", /*tied=*/false},
    Wrapper{"mistral3", "Mistral3ForConditionalGeneration"},
    Wrapper{"qwen2_vl", "Qwen2VLForConditionalGeneration", /*tied=*/false, /*caps_logits=*/true, "qwen2_vl_text"},
    Wrapper{"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", /*tied=*/false, /*caps_logits=*/true,
            "qwen2_5_vl_text"},
    Wrapper{"qwen3_vl", "Qwen3VLForConditionalGeneration", /*tied=*/false},
    Wrapper{"qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", /*tied=*/false},
    Wrapper{"smolvlm", "SmolVLMForConditionalGeneration", /*tied=*/false},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }
std::span<const Wrapper> wrappers() { return kWrappers; }

}  // namespace quire::model
