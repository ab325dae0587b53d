#include <array>

#include "core/model/arch/architecture.h"
#include "core/model/arch/families.h"

namespace quire::model {
namespace {

constexpr std::array kArchitectures = {
    Architecture{"llama", "LlamaForCausalLM", read_llama},
    Architecture{"mistral", "MistralForCausalLM", read_mistral},
    Architecture{"qwen2", "Qwen2ForCausalLM", read_qwen2},
    Architecture{"qwen3", "Qwen3ForCausalLM", read_qwen3},
    Architecture{"gemma2", "Gemma2ForCausalLM", read_gemma2},
    Architecture{"gemma3_text", "Gemma3ForCausalLM", read_gemma3},
    Architecture{"gemma4_text", "Gemma4ForCausalLM", read_gemma4},
    Architecture{"phi3", "Phi3ForCausalLM", read_phi3},
    Architecture{"granite", "GraniteForCausalLM", read_granite},
    Architecture{"olmo2", "Olmo2ForCausalLM", read_olmo2},
    Architecture{"olmo3", "Olmo3ForCausalLM", read_olmo3},
    Architecture{"cohere", "CohereForCausalLM", read_cohere},
    Architecture{"cohere2", "Cohere2ForCausalLM", read_cohere2},
    Architecture{"glm4", "Glm4ForCausalLM", read_glm4},
    Architecture{"stablelm", "StableLmForCausalLM", read_stablelm},
    Architecture{"starcoder2", "Starcoder2ForCausalLM", read_starcoder2},
    Architecture{"ministral3", "Ministral3ForCausalLM", read_ministral3},
    Architecture{"smollm3", "SmolLM3ForCausalLM", read_smollm3},
};

constexpr std::array kWrappers = {
    Wrapper{"gemma3", "Gemma3ForConditionalGeneration", /*caps_logits=*/false},
    Wrapper{"gemma4", "Gemma4ForConditionalGeneration"},
    Wrapper{"mistral3", "Mistral3ForConditionalGeneration"},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }
std::span<const Wrapper> wrappers() { return kWrappers; }

}  // namespace quire::model
