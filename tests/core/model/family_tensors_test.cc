// The tensors of every family, by name and shape. The lists are what transformers 5.24 writes for these configs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/model/arch/architecture.h"
#include "core/model/arch/config.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/source/safetensors.h"
#include "core/model/tensor_table.h"
#include "core/model/weights.h"
#include "tests/core/model/fake_ops.h"
#include "tests/core/model/family_configs.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::family_tensors_test {
namespace {

using testing::family;
using testing::kExperts;
using testing::name_of;
using ::testing::UnorderedElementsAreArray;
using testing::wrapped;

TensorTable table_of(const std::string& config) { return tensor_table(parse_config(config, "config.json")); }

struct Case {
  std::string name;
  std::string config;
  std::string head;   // "": tied
  std::string layer;  // below "layers.N.": "name shape; name shape"
  bool final_bias = false;
  std::string embedding = "embed_tokens";
  std::string layers = "layers";
  std::string final_norm = "norm";
  bool head_bias = false;
  std::string positions{};
  std::uint32_t embedding_width = 32;
};

const char* const kNorms = "input_layernorm.weight [32]; post_attention_layernorm.weight [32]; ";
const char* const kSandwichNorms =
    "input_layernorm.weight [32]; post_attention_layernorm.weight [32]; "
    "pre_feedforward_layernorm.weight [32]; post_feedforward_layernorm.weight [32]; ";
const char* const kPostNorms = "post_attention_layernorm.weight [32]; post_feedforward_layernorm.weight [32]; ";
const char* const kBiasedNorms =
    "input_layernorm.weight [32]; input_layernorm.bias [32]; "
    "post_attention_layernorm.weight [32]; post_attention_layernorm.bias [32]; ";
const char* const kAttention =
    "self_attn.q_proj.weight [48, 32]; self_attn.k_proj.weight [24, 32]; self_attn.v_proj.weight [24, 32]; "
    "self_attn.o_proj.weight [32, 48]; ";
const char* const kAttentionOfEight =  // D = E / H
    "self_attn.q_proj.weight [32, 32]; self_attn.k_proj.weight [16, 32]; self_attn.v_proj.weight [16, 32]; "
    "self_attn.o_proj.weight [32, 32]; ";
const char* const kQkvBiases = "self_attn.q_proj.bias [48]; self_attn.k_proj.bias [24]; self_attn.v_proj.bias [24]; ";
const char* const kMlp = "mlp.gate_proj.weight [28, 32]; mlp.up_proj.weight [28, 32]; mlp.down_proj.weight [32, 28]; ";
const char* const kMlpBiases = "mlp.gate_proj.bias [28]; mlp.up_proj.bias [28]; mlp.down_proj.bias [32]; ";
const char* const kPlainMlp = "mlp.up_proj.weight [28, 32]; mlp.down_proj.weight [32, 28]; ";
const char* const kGptNorms = "ln_1.weight [32]; ln_1.bias [32]; ln_2.weight [32]; ln_2.bias [32]; ";
const char* const kTinyGpt2 = R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 30,
  "n_positions": 64})";
const char* const kNeoxMlp = "mlp.dense_h_to_4h.weight [28, 32]; mlp.dense_4h_to_h.weight [32, 28]; ";
const char* const kPackedMlp = "mlp.gate_up_proj.weight [56, 32]; mlp.down_proj.weight [32, 28]; ";

const char* const kFullLayers =
    R"("layer_types": ["full_attention", "full_attention"], "global_head_dim": 12, "hidden_size_per_layer_input": 0)";

const char* const kGemma3n = R"("layer_types": ["full_attention", "full_attention"], "num_kv_shared_layers": 0,
    "hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 28, "altup_num_inputs": 3, "laurel_rank": 5)";
const char* const kAltUp =
    "altup.correct_output_scale [32]; altup.correction_coefs.weight [3, 3]; altup.prediction_coefs.weight [9, 3]; "
    "altup.modality_router.weight [3, 32]; altup.router_norm.weight [32]; laurel.linear_left.weight [5, 32]; "
    "laurel.linear_right.weight [32, 5]; laurel.post_laurel_norm.weight [32]; "
    "per_layer_input_gate.weight [4, 32]; per_layer_projection.weight [32, 4]; post_per_layer_input_norm.weight [32]; ";
const char* const kGemma3nTop =
    "embed_tokens_per_layer.weight [28, 8]; per_layer_model_projection.weight [8, 32]; "
    "per_layer_projection_norm.weight [4]; altup_projections.0.weight [32, 32]; altup_projections.1.weight [32, 32]; "
    "altup_unembed_projections.0.weight [32, 32]; altup_unembed_projections.1.weight [32, 32]; ";

const char* const kLatent = R"("kv_lora_rank": 10, "qk_rope_head_dim": 4, "qk_nope_head_dim": 5, "v_head_dim": 3)";
const char* const kLowQuery =
    "self_attn.q_a_proj.weight [6, 32]; self_attn.q_a_layernorm.weight [6]; self_attn.q_b_proj.weight [36, 6]; ";
const char* const kLatentTensors =
    "self_attn.kv_a_proj_with_mqa.weight [14, 32]; self_attn.kv_a_layernorm.weight [10]; "
    "self_attn.kv_b_proj.weight [32, 10]; self_attn.o_proj.weight [32, 12]; ";

std::string join(std::initializer_list<const char*> lists) {
  std::string all;
  for (const char* list : lists) all += list;
  return all;
}

// Three experts of 10 below `block`, and their router.
std::string experts(const std::string& block, const std::string& router = ".gate",
                    const std::vector<std::string>& names = {"gate_proj", "up_proj", "down_proj"}) {
  std::string list = block + router + ".weight [3, 32]; ";
  for (const char* expert : {".experts.0.", ".experts.1.", ".experts.2."}) {
    list += block + expert + names[0] + ".weight [10, 32]; " + block + expert + names[1] + ".weight [10, 32]; " +
            block + expert + names[2] + ".weight [32, 10]; ";
  }
  return list;
}
std::string shared(const std::string& name, std::uint32_t width) {
  const std::string size = std::to_string(width);
  return name + ".gate_proj.weight [" + size + ", 32]; " + name + ".up_proj.weight [" + size + ", 32]; " + name +
         ".down_proj.weight [32, " + size + "]; ";
}
const char* const kGraniteExperts =
    "block_sparse_moe.router.layer.weight [3, 32]; block_sparse_moe.input_linear.weight [3, 20, 32]; "
    "block_sparse_moe.output_linear.weight [3, 32, 10]; ";
const char* const kExpertsOfMlp = R"("num_local_experts": 3, "num_experts_per_tok": 2, "intermediate_size": 10)";
const char* const kRoutedExperts = R"("n_routed_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 10,
  "n_shared_experts": 2, "first_k_dense_replace": 0, "sliding_window": null)";

std::vector<Case> mixtures() {
  const std::string head = "lm_head.weight";
  const std::string attention = join({kNorms, kAttention});
  const std::string head_norms = "self_attn.q_norm.weight [12]; self_attn.k_norm.weight [12]; ";
  const std::string row_norms = "self_attn.q_norm.weight [48]; self_attn.k_norm.weight [24]; ";
  const std::vector<std::string> numbered = {"w1", "w3", "w2"};
  const std::string choice = "mlp.gate.e_score_correction_bias [3]; ";
  return {
      {"mixtral", family("mixtral", kExpertsOfMlp), head, attention + experts("block_sparse_moe", ".gate", numbered)},
      {"phimoe", family("phimoe", kExpertsOfMlp), head,
       join({kBiasedNorms, kAttention}) + experts("block_sparse_moe", ".gate", numbered), true},
      {"minimax_m2", family("minimax_m2", kExpertsOfMlp), head,
       attention + row_norms + experts("block_sparse_moe", ".gate", numbered) +
           "block_sparse_moe.e_score_correction_bias [3]; "},
      {"qwen2_moe",
       family("qwen2_moe", std::string(kExperts) + ", \"head_dim\": 8, \"shared_expert_intermediate_size\": 12"), head,
       join({kNorms, kAttentionOfEight}) +
           "self_attn.q_proj.bias [32]; self_attn.k_proj.bias [16]; self_attn.v_proj.bias [16]; " + experts("mlp") +
           shared("mlp.shared_expert", 12) + "mlp.shared_expert_gate.weight [1, 32]; "},
      {"qwen3_moe", family("qwen3_moe", kExperts), head, attention + head_norms + experts("mlp")},
      {"olmoe", family("olmoe", kExpertsOfMlp), head, attention + row_norms + experts("mlp")},
      {"gpt_oss", family("gpt_oss", std::string(kExpertsOfMlp) + ", \"sliding_window\": 4"), head,
       attention + kQkvBiases +
           "self_attn.o_proj.bias [32]; self_attn.sinks [4]; mlp.router.weight [3, 32]; mlp.router.bias [3]; "
           "mlp.experts.gate_up_proj [3, 32, 20]; mlp.experts.gate_up_proj_bias [3, 20]; "
           "mlp.experts.down_proj [3, 10, 32]; mlp.experts.down_proj_bias [3, 32]; "},
      {"granitemoe", family("granitemoe", kExpertsOfMlp), head, attention + kGraniteExperts},
      {"granitemoeshared",
       family("granitemoeshared", std::string(kExpertsOfMlp) + ", \"shared_intermediate_size\": 12"), head,
       attention + kGraniteExperts +
           "shared_mlp.input_linear.weight [24, 32]; shared_mlp.output_linear.weight [32, 12]; "},
      {"hunyuan_v1_moe",
       family("hunyuan_v1_moe", "\"num_experts\": 3, \"moe_topk\": [2, 2], \"intermediate_size\": 10"), head,
       attention + "self_attn.query_layernorm.weight [12]; self_attn.key_layernorm.weight [12]; " +
           experts("mlp", ".gate.wg") + shared("mlp.shared_mlp", 10)},
      {"exaone_moe",
       family("exaone_moe",
              std::string(kExperts) + R"(, "num_shared_experts": 2, "mlp_layer_types": ["sparse", "sparse"])"),
       head,
       attention + head_norms + experts("mlp") + shared("mlp.shared_experts", 20) +
           "mlp.e_score_correction_bias [3]; "},
      {"hy_v3", family("hy_v3", std::string(kExperts) + R"(, "mlp_layer_types": ["sparse", "sparse"])"), head,
       attention + head_norms + experts("mlp", ".router.gate") + shared("mlp.shared_mlp", 10) +
           "mlp.expert_bias [3]; "},
      {"qwen3_vl_moe", wrapped("qwen3_vl_moe", family("qwen3_vl_moe_text", kExperts)), head,
       attention + head_norms + "mlp.gate.weight [3, 32]; mlp.experts.gate_up_proj [3, 32, 20]; " +
           "mlp.experts.down_proj [3, 10, 32]; "},
      {"gemma4_text_with_experts",
       family("gemma4_text", std::string(kFullLayers) + R"(, "enable_moe_block": true, "num_experts": 3,
         "top_k_experts": 2, "moe_intermediate_size": 10)"),
       "",
       join({kSandwichNorms, kAttention, kMlp, "layer_scalar [1]; "}) + head_norms +
           "router.proj.weight [3, 32]; router.scale [32]; router.per_expert_scale [3]; " +
           "pre_feedforward_layernorm_2.weight [32]; post_feedforward_layernorm_1.weight [32]; " +
           "post_feedforward_layernorm_2.weight [32]; experts.gate_up_proj [3, 20, 32]; experts.down_proj [3, 32, "
           "10]; "},
      {"ernie4_5_moe", family("ernie4_5_moe", R"("moe_num_experts": 3, "moe_k": 2, "moe_intermediate_size": 10,
         "moe_num_shared_experts": 2, "moe_layer_start_index": 0)"),
       "",
       attention + experts("mlp") + shared("mlp.shared_experts", 20) +
           "mlp.moe_statics.e_score_correction_bias [1, 3]; "},
      {"deepseek_v2", family("deepseek_v2", kRoutedExperts + std::string(R"(, "q_lora_rank": null, )") + kLatent), head,
       join({kNorms, "self_attn.q_proj.weight [36, 32]; ", kLatentTensors}) + experts("mlp") +
           shared("mlp.shared_experts", 20)},
      {"deepseek_v3",
       family("deepseek_v3", kRoutedExperts + std::string(R"(, "q_lora_rank": 6, "n_group": 1, )") + kLatent), head,
       join({kNorms, kLowQuery, kLatentTensors}) + experts("mlp") + shared("mlp.shared_experts", 20) + choice},
      {"kimi_k2", family("kimi_k2", kRoutedExperts + std::string(R"(, "q_lora_rank": 6, )") + kLatent), head,
       join({kNorms, kLowQuery, kLatentTensors}) + experts("mlp") + shared("mlp.shared_experts", 20) + choice},
      {"glm4_moe_lite", family("glm4_moe_lite", kRoutedExperts + std::string(R"(, "q_lora_rank": 6, )") + kLatent),
       head, join({kNorms, kLowQuery, kLatentTensors}) + experts("mlp") + shared("mlp.shared_experts", 20) + choice},
      {"mistral4",
       family("mistral4", kRoutedExperts + std::string(R"(, "q_lora_rank": 6, "rope_theta": 1e4,
         "rope_scaling": {"type": "default"}, )") +
                              kLatent),
       head,
       join({kNorms, kLowQuery, kLatentTensors}) + shared("mlp.shared_experts", 20) +
           "mlp.gate.weight [3, 32]; mlp.experts.gate_up_proj [3, 20, 32]; mlp.experts.down_proj [3, 32, 10]; "},
      {"glm4_moe", family("glm4_moe", kRoutedExperts), head,
       attention + experts("mlp") + shared("mlp.shared_experts", 20) + choice},
      {"dots1", family("dots1", kRoutedExperts), head,
       attention + head_norms + experts("mlp") + shared("mlp.shared_experts", 20) + choice},
      {"solar_open", family("solar_open", kRoutedExperts), head,
       attention + experts("mlp") + shared("mlp.shared_experts", 20) + choice},
  };
}

std::vector<Case> dense_cases() {
  const std::string llama = join({kNorms, kAttention, kMlp});
  const std::string biased = llama + kQkvBiases + "self_attn.o_proj.bias [32]; " + kMlpBiases;
  const std::string head_norms = "self_attn.q_norm.weight [12]; self_attn.k_norm.weight [12]; ";
  const std::string row_norms = "self_attn.q_norm.weight [48]; self_attn.k_norm.weight [24]; ";
  const std::string parallel = join({"input_layernorm.weight [32]; ", kAttention, kMlp});
  const std::string stablelm =
      "self_attn.q_layernorm.norms.0.weight [8]; self_attn.q_layernorm.norms.1.weight [8]; "
      "self_attn.q_layernorm.norms.2.weight [8]; self_attn.q_layernorm.norms.3.weight [8]; "
      "self_attn.k_layernorm.norms.0.weight [8]; self_attn.k_layernorm.norms.1.weight [8]; "
      "self_attn.q_proj.bias [32]; self_attn.k_proj.bias [16]; self_attn.v_proj.bias [16]; ";
  const std::string qkv_biases_of_eight =
      "self_attn.q_proj.bias [32]; self_attn.k_proj.bias [16]; self_attn.v_proj.bias [16]; ";
  const std::string starcoder2 =
      join({kBiasedNorms, kAttention, kQkvBiases, "self_attn.o_proj.bias [32]; mlp.c_fc.weight [28, 32]; ",
            "mlp.c_fc.bias [28]; mlp.c_proj.weight [32, 28]; mlp.c_proj.bias [32]; "});
  const std::string all_biases = "\"attention_bias\": true, \"mlp_bias\": true";
  const std::string untied = "\"tie_word_embeddings\": false";
  const std::string head = "lm_head.weight";
  return {
      {"llama", family("llama"), head, llama},
      {"llama_with_biases", family("llama", all_biases), head, biased},
      {"mistral", family("mistral"), head, llama},
      {"qwen2", family("qwen2"), head, llama + kQkvBiases},
      {"qwen3", family("qwen3"), head, llama + head_norms},
      {"gemma2", family("gemma2"), "", join({kSandwichNorms, kAttention, kMlp})},
      {"gemma3_text", family("gemma3_text"), "", join({kSandwichNorms, kAttention, kMlp}) + head_norms},
      {"gemma4_text", family("gemma4_text", kFullLayers), "",
       join({kSandwichNorms, kAttention, kMlp, "layer_scalar [1]; "}) + head_norms},
      {"gemma3n_text", family("gemma3n_text", kGemma3n), "",
       join({kSandwichNorms, kAttention, kMlp, kAltUp}) + head_norms, false, "embed_tokens", "layers", "norm", false,
       kGemma3nTop},
      {"gemma3n_with_images", wrapped("gemma3n", family("gemma3n_text", kGemma3n)), "",
       join({kSandwichNorms, kAttention, kMlp, kAltUp}) + head_norms, false, "embed_tokens", "layers", "norm", false,
       kGemma3nTop},
      {"phi3", family("phi3"), head,
       join({kNorms, "self_attn.qkv_proj.weight [96, 32]; self_attn.o_proj.weight [32, 48]; ", kPackedMlp})},
      {"granite", family("granite"), head, llama},
      {"granite_with_biases", family("granite", all_biases), head, biased},
      {"olmo", family("olmo"), head, join({kAttention, kMlp}), false, "embed_tokens", "layers", ""},
      {"nanochat", family("nanochat"), head, join({kAttention, "mlp.fc1.weight [28, 32]; mlp.fc2.weight [32, 28]; "}),
       false, "embed_tokens", "layers", ""},
      {"bitnet", family("bitnet", "\"head_dim\": 8"), head,
       join({kNorms, kAttentionOfEight, kMlp}) + "self_attn.attn_sub_norm.weight [32]; mlp.ffn_sub_norm.weight [28]; "},
      {"olmo2", family("olmo2"), head, join({kPostNorms, kAttention, kMlp}) + row_norms},
      {"olmo3", family("olmo3"), head, join({kPostNorms, kAttention, kMlp}) + row_norms},
      {"cohere", family("cohere"), "", parallel},
      {"cohere_with_norms_of_heads", family("cohere", "\"use_qk_norm\": true"), "",
       parallel + "self_attn.q_norm.weight [4, 12]; self_attn.k_norm.weight [2, 12]; "},
      {"cohere2", family("cohere2"), "", parallel},
      {"glm4", family("glm4"), head,
       join({kNorms, "post_self_attn_layernorm.weight [32]; post_mlp_layernorm.weight [32]; ", kAttention, kQkvBiases,
             kPackedMlp})},
      {"stablelm", family("stablelm"), head, join({kBiasedNorms, kAttentionOfEight, kMlp}), true},
      {"stablelm_with_norms_of_heads", family("stablelm", "\"qk_layernorm\": true, \"use_qkv_bias\": true"), head,
       join({kBiasedNorms, kAttentionOfEight, kMlp}) + stablelm, true},
      {"stablelm_parallel", family("stablelm", "\"use_parallel_residual\": true"), head,
       join({"input_layernorm.weight [32]; input_layernorm.bias [32]; ", kAttentionOfEight, kMlp}), true},
      {"starcoder2", family("starcoder2"), "", starcoder2, true},
      {"starcoder2_without_biases", family("starcoder2", "\"use_bias\": false"), "",
       join({kBiasedNorms, kAttention, "mlp.c_fc.weight [28, 32]; mlp.c_proj.weight [32, 28]; "}), true},
      {"ministral3", family("ministral3"), head, llama},
      {"smollm3", family("smollm3"), "", llama},
      {"smollm3_with_biases", family("smollm3", all_biases), "", biased},
      {"arcee", family("arcee"), head, join({kNorms, kAttention, kPlainMlp})},
      {"ministral", family("ministral"), head, llama},
      {"seed_oss", family("seed_oss"), head, join({kNorms, kAttention, kQkvBiases, kMlp})},
      {"ernie4_5", family("ernie4_5"), "", llama},
      {"ernie4_5_with_biases", family("ernie4_5", "\"use_bias\": true"), "", biased},
      {"exaone4", family("exaone4"), head, join({kPostNorms, kAttention, kMlp}) + head_norms},
      {"helium", family("helium"), head, llama},
      {"glm", family("glm"), head, join({kNorms, kAttention, kQkvBiases, kPackedMlp})},
      {"nemotron", family("nemotron"), head, join({kBiasedNorms, kAttention, kPlainMlp}), true},
      {"internlm3", family("internlm3"), head, llama},
      {"internlm3_with_biases", family("internlm3", "\"qkv_bias\": true, \"bias\": true"), head, biased},
      {"gemma", family("gemma"), "", llama},
      {"vaultgemma", family("vaultgemma"), "",
       join({"input_layernorm.weight [32]; pre_feedforward_layernorm.weight [32]; ", kAttention, kMlp})},
      {"idefics3", wrapped("idefics3", family("llama")), head, llama},
      {"llava", wrapped("llava", family("llama")), head, llama},
      {"llava_next", wrapped("llava_next", family("mistral")), head, llama},
      {"llava_onevision", wrapped("llava_onevision", family("qwen2")), head, llama + kQkvBiases},
      {"smolvlm", wrapped("smolvlm", family("llama")), head, llama},
      {"qwen2_vl", wrapped("qwen2_vl", family("qwen2_vl_text")), head,
       join({kNorms, kAttentionOfEight, kMlp}) + qkv_biases_of_eight},
      {"qwen2_5_vl", wrapped("qwen2_5_vl", family("qwen2_5_vl_text")), head,
       join({kNorms, kAttentionOfEight, kMlp}) + qkv_biases_of_eight},
      {"qwen3_vl", wrapped("qwen3_vl", family("qwen3_vl_text")), head, llama + head_norms},
      {"internlm2", family("internlm2"), "output.weight",
       join({"attention_norm.weight [32]; ffn_norm.weight [32]; attention.wqkv.weight [96, 32]; ",
             "attention.wqkv.bias [96]; attention.wo.weight [32, 48]; attention.wo.bias [32]; ",
             "feed_forward.w1.weight [28, 32]; feed_forward.w3.weight [28, 32]; feed_forward.w2.weight [32, 28]; "}),
       false, "tok_embeddings"},
      {"hunyuan", family("hunyuan_v1_dense"), head,
       llama + "self_attn.query_layernorm.weight [12]; self_attn.key_layernorm.weight [12]; "},
      {"phi", family("phi"), head,
       join({"input_layernorm.weight [32]; input_layernorm.bias [32]; self_attn.q_proj.weight [32, 32]; ",
             "self_attn.k_proj.weight [16, 32]; self_attn.v_proj.weight [16, 32]; self_attn.q_proj.bias [32]; ",
             "self_attn.k_proj.bias [16]; self_attn.v_proj.bias [16]; self_attn.dense.weight [32, 32]; ",
             "self_attn.dense.bias [32]; mlp.fc1.weight [28, 32]; mlp.fc1.bias [28]; mlp.fc2.weight [32, 28]; ",
             "mlp.fc2.bias [32]; "}),
       true, "embed_tokens", "layers", "final_layernorm", true},
      {"gpt_neox", family("gpt_neox"), head,
       join({kBiasedNorms, "attention.query_key_value.weight [96, 32]; attention.query_key_value.bias [96]; ",
             "attention.dense.weight [32, 32]; attention.dense.bias [32]; ", kNeoxMlp,
             "mlp.dense_h_to_4h.bias [28]; mlp.dense_4h_to_h.bias [32]; "}),
       true, "embed_in", "layers", "final_layer_norm"},
      {"gptj",
       "{\"model_type\": \"gptj\", \"n_embd\": 32, \"n_layer\": 2, \"n_head\": 2, \"vocab_size\": 30, "
       "\"rotary_dim\": 8}",
       head,
       join({"ln_1.weight [32]; ln_1.bias [32]; attn.q_proj.weight [32, 32]; attn.k_proj.weight [32, 32]; ",
             "attn.v_proj.weight [32, 32]; attn.out_proj.weight [32, 32]; mlp.fc_in.weight [128, 32]; ",
             "mlp.fc_in.bias [128]; mlp.fc_out.weight [32, 128]; mlp.fc_out.bias [32]; "}),
       true, "wte", "h", "ln_f", true},
      {"falcon", family("falcon", "\"ffn_hidden_size\": 28"), "",
       join({"input_layernorm.weight [32]; input_layernorm.bias [32]; ",
             "self_attention.query_key_value.weight [48, 32]; self_attention.dense.weight [32, 32]; ", kNeoxMlp}),
       true, "word_embeddings", "h", "ln_f"},
      {"falcon_new", family("falcon", R"("ffn_hidden_size": 28, "new_decoder_architecture": true, "num_kv_heads": 2)"),
       "",
       join({"ln_attn.weight [32]; ln_attn.bias [32]; ln_mlp.weight [32]; ln_mlp.bias [32]; ",
             "self_attention.query_key_value.weight [64, 32]; self_attention.dense.weight [32, 32]; ", kNeoxMlp}),
       true, "word_embeddings", "h", "ln_f"},
      {"bloom", family("bloom"), "",
       join({kBiasedNorms, "self_attention.query_key_value.weight [96, 32]; self_attention.query_key_value.bias [96]; ",
             "self_attention.dense.weight [32, 32]; self_attention.dense.bias [32]; ",
             "mlp.dense_h_to_4h.weight [128, 32]; mlp.dense_h_to_4h.bias [128]; mlp.dense_4h_to_h.weight [32, 128]; ",
             "mlp.dense_4h_to_h.bias [32]; "}),
       true, "word_embeddings", "h", "ln_f", false,
       "word_embeddings_layernorm.weight [32]; word_embeddings_layernorm.bias [32]; "},
      {"mpt", R"({"model_type": "mpt", "d_model": 32, "n_layers": 2, "n_heads": 4, "vocab_size": 30})", "",
       join({"norm_1.weight [32]; norm_2.weight [32]; attn.Wqkv.weight [96, 32]; attn.out_proj.weight [32, 32]; ",
             "ffn.up_proj.weight [128, 32]; ffn.down_proj.weight [32, 128]; "}),
       false, "wte", "blocks", "norm_f"},
      {"apertus", family("apertus"), head,
       join({"attention_layernorm.weight [32]; feedforward_layernorm.weight [32]; ", kAttention, kPlainMlp}) +
           head_norms + "mlp.act_fn.alpha_p [1]; mlp.act_fn.alpha_n [1]; mlp.act_fn.beta []; mlp.act_fn.eps []; "},
      {"gpt2", kTinyGpt2, "",
       join({kGptNorms, "attn.c_attn.weight [32, 96]; attn.c_attn.bias [96]; attn.c_proj.weight [32, 32]; ",
             "attn.c_proj.bias [32]; mlp.c_fc.weight [32, 128]; mlp.c_fc.bias [128]; mlp.c_proj.weight [128, 32]; ",
             "mlp.c_proj.bias [32]; "}),
       true, "wte", "h", "ln_f", false, "wpe.weight [64, 32]; "},
      {"gpt_bigcode", testing::replaced(kTinyGpt2, "gpt2", "gpt_bigcode"), "",
       join({kGptNorms, "attn.c_attn.weight [64, 32]; attn.c_attn.bias [64]; attn.c_proj.weight [32, 32]; ",
             "attn.c_proj.bias [32]; mlp.c_fc.weight [128, 32]; mlp.c_fc.bias [128]; mlp.c_proj.weight [32, 128]; ",
             "mlp.c_proj.bias [32]; "}),
       true, "wte", "h", "ln_f", false, "wpe.weight [64, 32]; "},
      {"opt", family("opt", "\"ffn_dim\": 28, \"num_attention_heads\": 2, \"enable_bias\": false"), "",
       join({"self_attn_layer_norm.weight [32]; self_attn_layer_norm.bias [32]; final_layer_norm.weight [32]; ",
             "final_layer_norm.bias [32]; self_attn.q_proj.weight [32, 32]; self_attn.k_proj.weight [32, 32]; ",
             "self_attn.v_proj.weight [32, 32]; self_attn.out_proj.weight [32, 32]; fc1.weight [28, 32]; ",
             "fc2.weight [32, 28]; "}),
       true, "embed_tokens", "layers", "final_layer_norm", false, "embed_positions.weight [66, 32]; "},
      {"opt_350m",
       family("opt", R"("ffn_dim": 28, "num_attention_heads": 2, "enable_bias": false, "do_layer_norm_before": false,
                        "word_embed_proj_dim": 16)"),
       "",
       join({"self_attn_layer_norm.weight [32]; self_attn_layer_norm.bias [32]; final_layer_norm.weight [32]; ",
             "final_layer_norm.bias [32]; self_attn.q_proj.weight [32, 32]; self_attn.k_proj.weight [32, 32]; ",
             "self_attn.v_proj.weight [32, 32]; self_attn.out_proj.weight [32, 32]; fc1.weight [28, 32]; ",
             "fc2.weight [32, 28]; "}),
       false, "embed_tokens", "layers", "", false,
       "embed_positions.weight [66, 32]; project_in.weight [32, 16]; project_out.weight [16, 32]; ", 16},
      // Names as open_decoder() gives them: without "language_model.".
      {"gemma3_with_images", wrapped("gemma3", family("gemma3_text")), "",
       join({kSandwichNorms, kAttention, kMlp}) + head_norms},
      {"gemma4_with_images", wrapped("gemma4", family("gemma4_text", kFullLayers)), "",
       join({kSandwichNorms, kAttention, kMlp, "layer_scalar [1]; "}) + head_norms},
      {"mistral3_with_images", wrapped("mistral3", family("ministral3"), untied), head, llama},
  };
}

std::vector<Case> cases() {
  std::vector<Case> all = dense_cases();
  for (Case& one : mixtures()) all.push_back(std::move(one));
  return all;
}

// "a [1]; b [2, 3]; " with a prefix for each.
void add_list(const std::string& prefix, const std::string& list, std::vector<std::string>& out) {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = list.find(';', at);
    out.push_back(prefix + list.substr(at, end - at));
    at = end + 2;
  }
}

class FamilyTensors : public ::testing::TestWithParam<Case> {};

TEST_P(FamilyTensors, HaveTheNamesAndShapesThatTransformersWrites) {
  const Case& one = GetParam();
  std::vector<std::string> expected;
  add_list("model.", one.embedding + ".weight [30, " + std::to_string(one.embedding_width) + "]; ", expected);
  if (!one.final_norm.empty()) add_list("model.", one.final_norm + ".weight [32]; ", expected);
  if (one.final_bias) add_list("model.", one.final_norm + ".bias [32]; ", expected);
  for (const char* index : {".0.", ".1."}) add_list("model." + one.layers + index, one.layer, expected);
  if (!one.head.empty()) add_list("", one.head + " [30, 32]; ", expected);
  add_list("model.", one.positions, expected);
  if (one.head_bias) add_list("", "lm_head.bias [30]; ", expected);

  std::vector<std::string> found;
  for (const TensorPart& tensor : table_of(one.config).tensors()) {
    found.push_back(tensor.name + " " + shape_text(tensor.shape));
  }
  EXPECT_THAT(found, UnorderedElementsAreArray(expected));
}

// Every row of every tensor of the table belongs to one part.
TEST_P(FamilyTensors, AreCoveredByPartsWithoutGapsOrOverlaps) {
  std::map<std::string, std::vector<std::pair<std::uint64_t, std::uint64_t>>> rows;
  std::map<std::string, std::uint64_t> heights;
  const TensorTable table = table_of(GetParam().config);
  for (const TensorEntry& entry : table.entries) {
    for (const auto* list : {&entry.parts, &entry.biases}) {
      for (const TensorPart& part : *list) {
        if (part.num_inputs != 0) {  // some of the file's rows are its inputs
          rows[name_of(part)].emplace_back(part.first_input, part.num_inputs);
          heights[name_of(part)] = part.shape.front();
          continue;
        }
        const std::uint64_t run = part.run != 0 ? part.run : part.num_rows();
        for (std::uint64_t taken = 0; taken < part.num_rows(); taken += run) {
          rows[name_of(part)].emplace_back(part.first_row + taken / run * part.stride, run);
        }
        heights[name_of(part)] = part.all_rows();
      }
    }
  }
  for (auto& [name, parts] : rows) {
    std::ranges::sort(parts);
    std::uint64_t next = 0;
    for (const auto& [first, count] : parts) {
      EXPECT_EQ(first, next) << name;
      next = first + count;
    }
    EXPECT_EQ(next, heights[name]) << name;
  }
}

TEST_P(FamilyTensors, AreNamedOnceEach) {
  std::set<std::string> names;
  for (const TensorPart& tensor : table_of(GetParam().config).tensors()) {
    EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
    EXPECT_TRUE(tensor.first_row == 0 && tensor.rows == 0) << tensor.name;
  }
}

TEST_P(FamilyTensors, AreLoadedFromACheckpointThatFits) {
  for (const std::string dtype : {"F32", "BF16"}) {
    const ModelSpec spec = parse_config(GetParam().config, "config.json");
    const testing::TempDir dir;
    dir.write("model.safetensors", testing::safetensors_file(testing::fitting_tensors(spec, dtype)));
    testing::FakeOps ops;
    const Weights weights = load_weights(ops, spec, *ModelFiles::directory(dir.path()));
    EXPECT_FALSE(ops.packs.empty());
    EXPECT_FALSE(weights.matrices().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(TensorTable, FamilyTensors, ::testing::ValuesIn(cases()),
                         [](const auto& family) { return family.param.name; });

TEST(FamilyTensorsOfTheRegistry, EveryArchitectureOfTheRegistryIsAmongTheFamiliesOfThisTest) {
  std::set<std::string_view> tested;
  std::vector<std::string> configs;
  for (const Case& one : cases()) configs.push_back(one.config);
  const auto expect_tested = [&](std::string_view model_type) {
    const std::string key = "\"model_type\": \"" + std::string(model_type) + "\"";
    EXPECT_TRUE(std::ranges::any_of(configs, [&](const auto& text) { return text.find(key) != text.npos; })) << key;
  };
  for (const Architecture& one : architectures()) expect_tested(one.model_type);
  for (const Wrapper& one : wrappers()) expect_tested(one.model_type);
}

}  // namespace
}  // namespace quire::model::family_tensors_test
