#include "app/model/known_models.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/answer/calls/call_text.h"

namespace quire::app {
namespace {

using Calls = api::chat::CallFormat;
using Thinks = api::chat::ReasoningFormat;

// clang-format off
constexpr KnownFamily kFamilies[] = {
    {.model_type = "llama",
     .models = "Llama 1 to 3.3, SmolLM2, TinyLlama, Yi 1.5, DeepSeek-R1-Distill-Llama",
     .differs = "nothing; biases where `config.json` asks for them",
     .calls = {Calls::kLlamaJson, Calls::kPythonic, Calls::kHermes}, .reasoning = Thinks::kThinkTags,
     .kv = {"Llama 3.1 8B", 32, 8, 128}},
    {.model_type = "mistral",
     .models = "Mistral 7B, Nemo 12B, Small 24B of 2025-01",
     .differs = "one sliding window for all layers, or none",
     .calls = {Calls::kMistral, Calls::kMistralArgs}, .kv = {"Mistral 7B v0.3", 32, 8, 128}},
    {.model_type = "qwen2",
     .models = "Qwen2, Qwen2.5, QwQ 32B, DeepSeek-R1-Distill-Qwen",
     .differs = "biases of q, k and v; a window in some layers",
     .calls = {Calls::kHermes}, .reasoning = Thinks::kThinkTags, .kv = {"Qwen2.5 7B", 28, 4, 128}},
    {.model_type = "qwen3",
     .models = "Qwen3 0.6B to 32B",
     .differs = "norms of the heads of q and k; a window in some layers",
     .calls = {Calls::kHermes}, .reasoning = Thinks::kThinkTags, .kv = {"Qwen3 8B", 36, 8, 128}},
    {.model_type = "qwen2_vl", .other_type = "qwen2_5_vl",
     .models = "Qwen2-VL, Qwen2.5-VL 3B to 72B",
     .differs = "as `qwen2`, inside a model with images",
     .calls = {Calls::kGeneric}, .kv = {"Qwen2.5-VL 7B", 28, 4, 128}},
    {.model_type = "qwen3_vl",
     .models = "Qwen3-VL 2B to 32B (dense)",
     .differs = "as `qwen3`, inside a model with images",
     .calls = {Calls::kHermes}, .reasoning = Thinks::kThinkTags, .kv = {"Qwen3-VL 8B", 36, 8, 128}},
    {.model_type = "gemma",
     .models = "Gemma 2B, 7B; CodeGemma",
     .differs = "norms that multiply by 1 + w, gelu, scaled embeddings",
     .calls = {Calls::kGeneric}, .kv = {"Gemma 7B", 28, 16, 256}},
    {.model_type = "gemma2",
     .models = "Gemma 2 2B, 9B, 27B",
     .differs = "sandwich norms that multiply by 1 + w, gelu, soft caps of scores and logits; every second layer "
         "has a window",
     .calls = {Calls::kGeneric}, .kv = {"Gemma 2 9B", 42, 8, 256}},
    {.model_type = "vaultgemma",
     .models = "VaultGemma 1B",
     .differs = "as Gemma 2, with norms before attention and MLP alone"},
    {.model_type = "gemma3_text",
     .models = "Gemma 3 270M, 1B",
     .differs = "as Gemma 2, with norms of heads instead of the soft cap of scores; five of six layers have a "
         "window, and RoPE of their own",
     .calls = {Calls::kGeneric, Calls::kFunctionGemma}, .kv = {"Gemma 3 1B", 26, 1, 256}},
    {.model_type = "gemma3",
     .models = "Gemma 3 4B, 12B, 27B",
     .differs = "the same, inside a model with images",
     .calls = {Calls::kGeneric}, .kv = {"Gemma 3 4B", 34, 4, 256}},
    {.model_type = "gemma3n_text",
     .models = "the text part of Gemma 3n",
     .differs = "four residual streams (AltUp), a branch of low rank beside attention (LAUREL), gates of which few are "
         "not 0, embeddings for each layer, K and V that later layers read",
     .calls = {Calls::kGeneric}},
    {.model_type = "gemma3n",
     .models = "Gemma 3n E2B, E4B",
     .differs = "the same, inside a model with images and sound",
     .calls = {Calls::kGeneric}, .kv = {"Gemma 3n E4B", 20, 2, 256}},
    {.model_type = "gemma4_text",
     .models = "the text part of Gemma 4",
     .differs = "as Gemma 3, with heads and widths of their own in layers without a window, K that is V, K and V "
         "that later layers read, embeddings for each layer; in the 26B-A4B experts beside the MLP",
     .calls = {Calls::kGemma4}, .reasoning = Thinks::kGemma4},
    {.model_type = "gemma4",
     .models = "Gemma 4 E2B, E4B, 31B, 26B-A4B",
     .differs = "the same, inside a model with images",
     .calls = {Calls::kGemma4}, .reasoning = Thinks::kGemma4},
    {.model_type = "phi3",
     .models = "Phi-3 mini and medium, Phi-3.5-mini, Phi-4, Phi-4-mini",
     .differs = "q, k and v in one tensor, gate and up in another; longrope; partial rotary; a window",
     .calls = {Calls::kGeneric, Calls::kPhi4Mini}, .reasoning = Thinks::kThinkTags, .kv = {"Phi-4", 40, 10, 128}},
    {.model_type = "granite",
     .models = "Granite 3.0 to 3.3, 2B and 8B",
     .differs = "multipliers of embeddings, scores, residuals and logits",
     .calls = {Calls::kGranite, Calls::kHermes}, .reasoning = Thinks::kThinkTags,
     .kv = {"Granite 3.3 8B", 40, 8, 128}},
    {.model_type = "olmo",
     .models = "OLMo 1B, 7B of 2024",
     .differs = "LayerNorm without scale and bias; 7B clips q, k and v",
     .calls = {Calls::kGeneric}, .kv = {"OLMo 7B", 32, 32, 128}},
    {.model_type = "olmo2",
     .models = "OLMo 2 1B to 32B",
     .differs = "norms after attention and MLP instead of before; one norm over all heads of q, one over those of k",
     .calls = {Calls::kGeneric}, .kv = {"OLMo 2 7B", 32, 32, 128}},
    {.model_type = "olmo3",
     .models = "OLMo 3 7B, 32B",
     .differs = "as OLMo 2; three of four layers have a window, the others RoPE scaled by yarn",
     .calls = {Calls::kOlmo3}, .reasoning = Thinks::kThinkTags, .kv = {"OLMo 3 7B", 32, 32, 128}},
    {.model_type = "cohere",
     .models = "Command R, Command R+",
     .differs = "parallel blocks, LayerNorm, interleaved RoPE, scaled logits; in Command R+ a norm for each head",
     .calls = {Calls::kCommandR}, .kv = {"Command R 08-2024", 40, 8, 128}},
    {.model_type = "cohere2",
     .models = "Command R7B, Command A",
     .differs = "as Command R; three of four layers have a window, the fourth is NoPE",
     .calls = {Calls::kCommand}, .reasoning = Thinks::kCommand, .kv = {"Command R7B", 32, 8, 128}},
    {.model_type = "glm",
     .models = "GLM-4 9B, GLM-Edge 1.5B, 4B (glm)",
     .differs = "half of each head turns, by interleaved RoPE; gate and up in one tensor; biases of q, k and v",
     .calls = {Calls::kGlm4}, .kv = {"GLM-4 9B", 40, 2, 128}},
    {.model_type = "glm4",
     .models = "GLM-4-0414, GLM-Z1-0414",
     .differs = "as `glm`, with sandwich norms",
     .calls = {Calls::kGlm4}, .reasoning = Thinks::kThinkTags, .kv = {"GLM-4-9B-0414", 40, 2, 128}},
    {.model_type = "stablelm",
     .models = "StableLM 2 1.6B, 12B",
     .differs = "LayerNorm with biases; a quarter of each head turns; in the 12B parallel blocks and a norm for "
         "each head",
     .calls = {Calls::kGeneric}, .kv = {"StableLM 2 1.6B", 24, 32, 64}},
    {.model_type = "starcoder2",
     .models = "StarCoder2 3B, 7B, 15B",
     .differs = "LayerNorm with biases, an MLP without a gate, gelu; a window",
     .kv = {"StarCoder2 7B", 32, 4, 128}},
    {.model_type = "ministral",
     .models = "Ministral 8B of 2024-10",
     .differs = "windows by layer",
     .calls = {Calls::kMistral}, .kv = {"Ministral 8B", 36, 8, 128}},
    {.model_type = "ministral3",
     .models = "the text part of Ministral 3 3B, 8B, 14B, in bf16",
     .differs = "yarn; q grows with the position",
     .calls = {Calls::kMistralArgs}, .reasoning = Thinks::kMistral, .kv = {"Ministral 3 8B", 34, 8, 128}},
    {.model_type = "mistral3",
     .models = "Ministral 3; Mistral Small 3.1, 3.2",
     .differs = "`ministral3` or `mistral`, inside a model with images",
     .calls = {Calls::kMistral, Calls::kMistralArgs}, .reasoning = Thinks::kMistral,
     .kv = {"Mistral Small 3.2", 40, 8, 128}},
    {.model_type = "smollm3",
     .models = "SmolLM3 3B",
     .differs = "every fourth layer is NoPE",
     .calls = {Calls::kHermes}, .reasoning = Thinks::kThinkTags, .kv = {"SmolLM3 3B", 36, 4, 128}},
    {.model_type = "llava",
     .models = "LLaVA 1.5 7B, 13B",
     .differs = "`llama`, inside a model with images",
     .calls = {Calls::kGeneric}, .kv = {"LLaVA 1.5 7B", 32, 32, 128}},
    {.model_type = "llava_next",
     .models = "LLaVA-NeXT (1.6) of Vicuna and Mistral",
     .differs = "`llama` or `mistral`, inside a model with images",
     .calls = {Calls::kGeneric}, .kv = {"LLaVA 1.6 Mistral 7B", 32, 8, 128}},
    {.model_type = "llava_onevision",
     .models = "LLaVA-OneVision 0.5B, 7B",
     .differs = "`qwen2`, inside a model with images",
     .calls = {Calls::kGeneric}, .kv = {"LLaVA-OneVision 7B", 28, 4, 128}},
    {.model_type = "idefics3",
     .models = "Idefics3 8B",
     .differs = "`llama`, inside a model with images",
     .calls = {Calls::kGeneric}, .kv = {"Idefics3 8B", 32, 8, 128}},
    {.model_type = "smolvlm",
     .models = "SmolVLM 256M to 2.2B",
     .differs = "`llama`, inside a model with images",
     .calls = {Calls::kGeneric}, .kv = {"SmolVLM 2.2B", 24, 32, 64}},
    {.model_type = "apertus",
     .models = "Apertus 8B, 70B",
     .differs = "ungated MLP with xIELU, norms of the heads of q and k",
     .calls = {Calls::kApertus}, .reasoning = Thinks::kApertus, .kv = {"Apertus 8B", 32, 8, 128}},
    {.model_type = "arcee",
     .models = "AFM 4.5B",
     .differs = "an MLP without a gate, squared relu",
     .calls = {Calls::kHermes}, .kv = {"AFM 4.5B", 36, 4, 128}},
    {.model_type = "bitnet",
     .models = "BitNet b1.58 2B in bf16, without its quantisation",
     .differs = "squared relu; norms before the output matrices of attention and MLP",
     .calls = {Calls::kGeneric}, .kv = {"BitNet b1.58 2B", 30, 5, 128}},
    {.model_type = "nanochat",
     .models = "nanochat d20, d32",
     .differs = "norms without scales, also of embeddings and, after RoPE, of the heads of q and k; an MLP without a "
         "gate, squared relu; a soft cap of logits",
     .calls = {Calls::kGeneric}, .kv = {"nanochat d32", 32, 16, 128}},
    {.model_type = "seed_oss",
     .models = "Seed-OSS 36B",
     .differs = "biases of q, k and v",
     .calls = {Calls::kSeedOss}, .reasoning = Thinks::kSeedOss, .kv = {"Seed-OSS 36B", 64, 8, 128}},
    {.model_type = "ernie4_5",
     .models = "ERNIE 4.5 0.3B",
     .differs = "interleaved RoPE",
     .calls = {Calls::kGeneric}, .kv = {"ERNIE 4.5 0.3B", 18, 2, 128}},
    {.model_type = "exaone4",
     .models = "EXAONE 4.0 1.2B, 32B",
     .differs = "norms after attention and MLP, and of each head of q and k; in the 32B three of four layers have a "
         "window, the fourth is NoPE",
     .calls = {Calls::kHermes}, .reasoning = Thinks::kThinkTags, .kv = {"EXAONE 4.0 32B", 64, 8, 128}},
    {.model_type = "helium",
     .models = "Helium 1 2B",
     .differs = "interleaved RoPE"},
    {.model_type = "nemotron",
     .models = "Nemotron-4 15B (Minitron 4B, 8B)",
     .differs = "LayerNorm that multiplies by 1 + w; half of each head turns; an MLP without a gate, squared relu",
     .calls = {Calls::kGeneric}, .kv = {"Minitron 4B", 32, 8, 128}},
    {.model_type = "internlm2",
     .models = "InternLM2, InternLM2.5 1.8B to 20B",
     .differs = "q, k and v in one tensor, by kv head",
     .calls = {Calls::kInternLm}, .kv = {"InternLM2.5 7B", 32, 8, 128}},
    {.model_type = "internlm3",
     .models = "InternLM3 8B",
     .differs = "nothing; its configuration has names of its own",
     .calls = {Calls::kInternLm}, .kv = {"InternLM3 8B", 48, 2, 128}},
    {.model_type = "hunyuan_v1_dense",
     .models = "Hunyuan 0.5B to 7B, Hunyuan-MT 7B",
     .differs = "norms of the heads of q and k after RoPE",
     .calls = {Calls::kHunyuan}, .reasoning = Thinks::kThinkTags, .kv = {"Hunyuan 7B", 32, 8, 128}},
    {.model_type = "phi",
     .models = "Phi-1, Phi-1.5, Phi-2",
     .differs = "parallel blocks, LayerNorm, biases everywhere, gelu; half of each head turns",
     .kv = {"Phi-2", 32, 32, 80}},
    {.model_type = "gpt_neox",
     .models = "Pythia, GPT-NeoX 20B, Dolly v2, RedPajama-INCITE",
     .differs = "parallel blocks with two LayerNorms, biases, gelu; a quarter of each head turns",
     .kv = {"Pythia 6.9B", 32, 32, 128}},
    {.model_type = "gptj",
     .models = "GPT-J 6B",
     .differs = "parallel blocks, LayerNorm, gelu; interleaved RoPE of the first dimensions",
     .kv = {"GPT-J 6B", 28, 16, 256}},
    {.model_type = "gpt2",
     .models = "GPT-2 124M to 1.5B, DistilGPT-2, Cerebras-GPT",
     .differs = "LayerNorm, biases, gelu, embeddings of positions; q, k and v in one tensor",
     .kv = {"GPT-2 124M", 12, 12, 64}},
    {.model_type = "gpt_bigcode",
     .models = "StarCoder, SantaCoder",
     .differs = "as `gpt2`, with one kv head",
     .kv = {"StarCoder", 40, 1, 128}},
    {.model_type = "opt",
     .models = "OPT 125M to 66B",
     .differs = "LayerNorm, biases, relu, embeddings of positions; the 350M with narrower ones and norms of the sums",
     .kv = {"OPT 6.7B", 32, 32, 128}},
    {.model_type = "bloom",
     .models = "BLOOM and BLOOMZ, 560M to 176B",
     .differs = "ALiBi, LayerNorm, also of the embeddings, biases, gelu; q, k and v in one tensor, by head",
     .kv = {"BLOOM 7B1", 30, 32, 128}},
    {.model_type = "mpt",
     .models = "MPT 7B, 30B with ALiBi",
     .differs = "ALiBi, LayerNorm without biases, gelu; q, k and v in one tensor, clipped in some",
     .kv = {"MPT 7B", 32, 32, 128}},
    {.model_type = "falcon",
     .models = "Falcon 7B, 40B, 180B, Falcon2 11B, Falcon-RW 1B, 7B",
     .differs = "parallel blocks, LayerNorm, gelu; q, k and v in one tensor, by kv head; Falcon-RW: ALiBi, no parallel "
         "blocks",
     .calls = {Calls::kGeneric}, .kv = {"Falcon 7B", 32, 1, 64}},
    {.model_type = "mixtral",
     .models = "Mixtral 8x7B, 8x22B",
     .differs = "experts by softmax, their weights normed",
     .calls = {Calls::kGeneric, Calls::kMistral}, .kv = {"Mixtral 8x7B", 32, 8, 128}},
    {.model_type = "qwen2_moe",
     .models = "Qwen1.5-MoE-A2.7B, Qwen2-57B-A14B",
     .differs = "biases of q, k and v; experts by softmax, and a shared one with a gate",
     .calls = {Calls::kGeneric}, .kv = {"Qwen2-57B-A14B", 28, 4, 128}},
    {.model_type = "qwen3_moe",
     .models = "Qwen3-30B-A3B, 235B-A22B, Qwen3-Coder",
     .differs = "norms of the heads of q and k; experts by softmax",
     .calls = {Calls::kHermes, Calls::kQwen3Coder}, .reasoning = Thinks::kThinkTags,
     .kv = {"Qwen3-30B-A3B", 48, 4, 128}},
    {.model_type = "qwen3_vl_moe",
     .models = "Qwen3-VL 30B-A3B, 235B-A22B",
     .differs = "as `qwen3_moe`, inside a model with images",
     .calls = {Calls::kHermes}, .reasoning = Thinks::kThinkTags, .kv = {"Qwen3-VL 30B-A3B", 48, 4, 128}},
    {.model_type = "gpt_oss",
     .models = "gpt-oss 20b, 120b",
     .differs = "biases of q, k, v and out; sinks; every second layer has a window; yarn; experts by their logits, in MXFP4, "
         "with biases and limited activations",
     .calls = {Calls::kHarmony}, .reasoning = Thinks::kHarmony, .kv = {"gpt-oss-20b", 24, 8, 64}},
    {.model_type = "olmoe",
     .models = "OLMoE 1B-7B",
     .differs = "one norm over all heads of q, one over those of k, clips behind them in some; experts by softmax",
     .calls = {Calls::kGeneric}, .kv = {"OLMoE 1B-7B", 16, 16, 128}},
    {.model_type = "granitemoe",
     .models = "Granite 3.0 and 3.1 1B-A400M, 3B-A800M",
     .differs = "as `granite`; experts by their logits, in tensors of all experts",
     .calls = {Calls::kGranite}, .kv = {"Granite 3.1 3B-A800M", 32, 8, 64}},
    {.model_type = "granitemoeshared",
     .models = "IBM's experimental MoE 7B-A1B",
     .differs = "as `granitemoe`, with a shared expert"},
    {.model_type = "phimoe",
     .models = "Phi-3.5-MoE, Phi-mini-MoE",
     .differs = "LayerNorm with biases, longrope, two experts by sparsemixer",
     .calls = {Calls::kGeneric}, .kv = {"Phi-3.5-MoE", 32, 8, 128}},
    {.model_type = "ernie4_5_moe",
     .models = "ERNIE 4.5 21B-A3B, 21B-A3B-Thinking, 300B-A47B",
     .differs = "interleaved RoPE; experts by softmax with a bias for choosing, and shared ones; the first layers are dense",
     .calls = {Calls::kGeneric, Calls::kHermes}, .reasoning = Thinks::kThinkTags,
     .kv = {"ERNIE 4.5 21B-A3B", 28, 4, 128}},
    {.model_type = "glm4_moe",
     .models = "GLM-4.5, 4.5-Air, 4.6, 4.7",
     .differs = "half of each head turns; experts by sigmoid with a bias for choosing, and shared ones; the first layers are "
         "dense",
     .calls = {Calls::kGlm45, Calls::kGlm47}, .reasoning = Thinks::kThinkTags, .kv = {"GLM-4.5-Air", 46, 8, 128}},
    {.model_type = "dots1",
     .models = "dots.llm1",
     .differs = "norms of the heads of q and k; experts as `glm4_moe`",
     .calls = {Calls::kGeneric}, .kv = {"dots.llm1", 62, 32, 128}},
    {.model_type = "solar_open",
     .models = "Solar Open 100B",
     .differs = "experts as `glm4_moe`, in all layers",
     .calls = {Calls::kSolarOpen}, .reasoning = Thinks::kSolarOpen,
     .kv = {"Solar Open 100B", 48, 8, 128}},
    {.model_type = "exaone_moe",
     .models = "K-EXAONE 236B-A23B",
     .differs = "as `exaone4` with norms before attention and MLP; experts as `glm4_moe`",
     .calls = {Calls::kHermes}, .reasoning = Thinks::kThinkTags, .kv = {"K-EXAONE 236B-A23B", 48, 8, 128}},
    {.model_type = "hunyuan_v1_moe",
     .models = "Hunyuan-A13B",
     .differs = "norms of the heads of q and k after RoPE; experts by softmax, and a shared one",
     .calls = {Calls::kToolCalls}, .reasoning = Thinks::kThinkTags, .kv = {"Hunyuan-A13B", 32, 8, 128}},
    {.model_type = "hy_v3",
     .models = "Hunyuan 3",
     .differs = "norms of the heads of q and k; experts by sigmoid with a bias for choosing, and a shared one",
     .calls = {Calls::kHyV3, Calls::kHyV3Preview}, .reasoning = Thinks::kHyV3,
     .kv = {"Hunyuan 3", 80, 8, 128}},
    {.model_type = "minimax_m2",
     .models = "MiniMax-M2, M2.1",
     .differs = "one norm over all heads of q, one over those of k; half of each head turns; experts by sigmoid with a bias for "
         "choosing",
     .calls = {Calls::kMiniMaxM2}, .reasoning = Thinks::kThinkTags, .kv = {"MiniMax-M2", 62, 8, 128}},
    {.model_type = "deepseek_v2",
     .models = "DeepSeek-V2, V2.5, V2-Lite, DeepSeek-Coder-V2",
     .differs = "latent attention (MLA); experts by softmax, in groups by their best one, and shared ones; the first layer is dense",
     .calls = {Calls::kGeneric}, .kv = {"DeepSeek-V2", 60, 1, 576, true}},
    {.model_type = "deepseek_v3",
     .models = "DeepSeek-V3, V3.1, R1, in bf16",
     .differs = "latent attention (MLA); experts as `glm4_moe`, in groups; the first layers are dense",
     .calls = {Calls::kDeepSeekV3, Calls::kDeepSeekV31}, .reasoning = Thinks::kThinkTags,
     .kv = {"DeepSeek-V3", 61, 1, 576, true}},
    {.model_type = "kimi_k2",
     .models = "Kimi K2, K2 Thinking, in bf16",
     .differs = "as `deepseek_v3`, one group of experts",
     .calls = {Calls::kKimiK2}, .reasoning = Thinks::kThinkTags, .kv = {"Kimi K2", 61, 1, 576, true}},
    {.model_type = "glm4_moe_lite",
     .models = "GLM-4.7-Flash",
     .differs = "as `deepseek_v3`, one group of experts",
     .calls = {Calls::kGlm47}, .reasoning = Thinks::kThinkTags, .kv = {"GLM-4.7-Flash", 47, 1, 576, true}},
    {.model_type = "mistral4",
     .models = "the text part of Mistral Small 4, in bf16",
     .differs = "latent attention (MLA); yarn; q grows with the position; experts by softmax, and a shared one",
     .calls = {Calls::kMistralArgs}, .reasoning = Thinks::kMistral, .kv = {"Mistral Small 4", 36, 1, 320, true}},
};
// clang-format on

std::string types_of(const KnownFamily& family, std::string_view quote) {
  std::string text = fmt::format("{0}{1}{0}", quote, family.model_type);
  if (!family.other_type.empty()) text += fmt::format(", {0}{1}{0}", quote, family.other_type);
  return text;
}

std::string calls_of(const KnownFamily& family) {
  std::string text;
  for (const Calls one : family.calls) {
    if (one == Calls::kNone) break;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", syntax_of(one).parser);
  }
  return text.empty() ? "-" : text;
}

std::string reasoning_of(const KnownFamily& family) {
  return family.reasoning == Thinks::kNone ? "-" : std::string(syntax_of(family.reasoning).parser);
}

std::string kv_of(const KnownFamily& family) {
  if (family.kv.layers == 0) return "-";
  return fmt::format("{} KiB ({})", family.kv.bytes_per_token() / 1024, family.kv.model);
}

// The text in lines of at most `width` columns, the later ones behind `indent` blanks.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (column > 0 && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = 0;
    }
    if (column > 0) out += ' ';
    column += word.size() + (column > 0 ? 1 : 0);
    out += word;
  }
  return out;
}

// A text with line breaks on one line of Markdown code.
std::string on_a_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '|') {
      out += "\\|";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::span<const KnownFamily> known_families() { return kFamilies; }

std::string models_text() {
  constexpr std::size_t kIndent = 22;
  constexpr std::size_t kWidth = 80;
  std::string text = "Families of models that quire serves, by model_type in config.json\n";
  for (const KnownFamily& family : kFamilies) {
    text += fmt::format("\n{:<{}}{}\n", types_of(family, ""), kIndent, wrapped(family.models, kWidth, kIndent));
    const auto add = [&](std::string_view name, const std::string& value) {
      if (value != "-") text += fmt::format("{:{}}{}: {}\n", "", kIndent, name, value);
    };
    add("tool calls", calls_of(family));
    add("reasoning", reasoning_of(family));
    add("KV cache a token, bf16", kv_of(family));
  }
  return text + "\nMore about each: docs/models.md\n";
}

std::string models_markdown() {
  std::string text =
      "| `model_type` | models on the hub, for example | differs from Llama in | tool calls | reasoning | "
      "KV cache a token, bf16 |\n| --- | --- | --- | --- | --- | --- |\n";
  for (const KnownFamily& family : kFamilies) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", types_of(family, "`"), family.models,
                        family.differs.empty() ? "nothing" : family.differs, calls_of(family), reasoning_of(family),
                        kv_of(family));
  }
  return text;
}

std::string formats_markdown() {
  std::string text = "| `--tool-call-parser` | a call of `get_weather` |\n| --- | --- |\n";
  const api::chat::ToolCall call{"get_weather", "{\"city\": \"Oslo\"}"};
  for (const api::chat::CallSyntax& one : api::chat::call_syntaxes()) {
    if (one.format == Calls::kNone || one.format == Calls::kGeneric) continue;
    text += fmt::format("| {} | `` {} `` |\n", one.parser, on_a_line(text_of_calls(one.format, {&call, 1})));
  }
  text += "\n| `--reasoning-parser` | marks |\n| --- | --- |\n";
  for (const api::chat::ReasoningSyntax& one : api::chat::reasoning_syntaxes()) {
    if (one.format == Thinks::kNone) continue;
    text += fmt::format("| {} | `` {} `` … `` {} `` |\n", one.parser, on_a_line(std::string(one.marks.begin)),
                        on_a_line(std::string(one.marks.end)));
  }
  return text;
}

}  // namespace quire::app
