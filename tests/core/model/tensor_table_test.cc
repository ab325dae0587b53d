// The tensors of every family, by name and shape. The lists are what transformers 5.24 writes for these configs.
#include "core/model/tensor_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/model/arch/architecture.h"
#include "core/model/arch/config.h"
#include "core/model/source/safetensors.h"
#include "tests/core/model/family_configs.h"

namespace quire::model::tensor_table_test {
namespace {

using ::testing::ElementsAre;
using testing::family;
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

std::string join(std::initializer_list<const char*> lists) {
  std::string all;
  for (const char* list : lists) all += list;
  return all;
}

std::vector<Case> cases() {
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
      // Names as Checkpoint::open_decoder() gives them: without "language_model.".
      {"gemma3_with_images", wrapped("gemma3", family("gemma3_text")), "",
       join({kSandwichNorms, kAttention, kMlp}) + head_norms},
      {"gemma4_with_images", wrapped("gemma4", family("gemma4_text", kFullLayers)), "",
       join({kSandwichNorms, kAttention, kMlp, "layer_scalar [1]; "}) + head_norms},
      {"mistral3_with_images", wrapped("mistral3", family("ministral3"), untied), head, llama},
  };
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
        const std::uint64_t run = part.run != 0 ? part.run : part.num_rows();
        for (std::uint64_t taken = 0; taken < part.num_rows(); taken += run) {
          rows[part.name].emplace_back(part.first_row + taken / run * part.stride, run);
        }
        heights[part.name] = part.all_rows();
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

INSTANTIATE_TEST_SUITE_P(TensorTable, FamilyTensors, ::testing::ValuesIn(cases()),
                         [](const auto& family) { return family.param.name; });

TEST(TensorTable, EveryArchitectureOfTheRegistryIsAmongTheFamiliesOfThisTest) {
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

// Layer 0 slides, and is read by layer 2; layer 1 is full, has its v from k's product, and is read by layer 3.
TEST(TensorTable, OfGemma4HasTheTensorsThatEachLayerHas) {
  const TensorTable table = table_of(family("gemma4_text",
                                            R"("num_hidden_layers": 4,
         "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
         "num_kv_shared_layers": 2, "use_double_wide_mlp": true, "global_head_dim": 20, "attention_k_eq_v": true,
         "num_global_key_value_heads": 1, "hidden_size_per_layer_input": 6, "vocab_size_per_layer_input": 40)"));
  std::map<std::string, std::string> found;
  for (const TensorPart& tensor : table.tensors()) found[tensor.name] = shape_text(tensor.shape);
  EXPECT_EQ(found.at("model.embed_tokens_per_layer.weight"), "[40, 24]");
  EXPECT_EQ(found.at("model.per_layer_model_projection.weight"), "[24, 32]");
  EXPECT_EQ(found.at("model.per_layer_projection_norm.weight"), "[6]");
  EXPECT_EQ(found.at("model.layers.0.self_attn.v_proj.weight"), "[24, 32]");
  EXPECT_EQ(found.at("model.layers.1.self_attn.q_proj.weight"), "[80, 32]");
  EXPECT_EQ(found.at("model.layers.1.self_attn.k_proj.weight"), "[20, 32]");
  EXPECT_FALSE(found.contains("model.layers.1.self_attn.v_proj.weight"));
  EXPECT_EQ(found.at("model.layers.1.mlp.up_proj.weight"), "[28, 32]");
  for (const std::string layer : {"model.layers.2.", "model.layers.3."}) {
    EXPECT_EQ(found.at(layer + "mlp.up_proj.weight"), "[56, 32]");
    EXPECT_EQ(found.at(layer + "per_layer_input_gate.weight"), "[6, 32]");
    EXPECT_EQ(found.at(layer + "per_layer_projection.weight"), "[32, 6]");
    for (const char* unused : {"k_proj.weight", "v_proj.weight", "k_norm.weight"}) {
      EXPECT_FALSE(found.contains(layer + "self_attn." + unused));
      EXPECT_TRUE(table.skips(layer + "self_attn." + unused));
    }
  }
  EXPECT_FALSE(table.skips("model.layers.1.self_attn.v_proj.weight"));
  EXPECT_FALSE(table.skips("model.layers.0.self_attn.k_proj.weight"));
}

// The parts of an entry of layer 1: "name first+rows".
std::vector<std::string> parts_of(const TensorTable& table, Role role) {
  std::vector<std::string> out;
  for (const TensorEntry& entry : table.entries) {
    if (entry.role != role || entry.layer != 1) continue;
    for (const TensorPart& part : entry.parts) {
      out.push_back(part.name.substr(std::string("model.layers.1.").size()) + " " + std::to_string(part.first_row) +
                    "+" + std::to_string(part.num_rows()));
    }
  }
  return out;
}

TEST(TensorTable, PackedTensorsAreCutIntoQThenKThenVAndGateThenUp) {
  const TensorTable phi3 = table_of(family("phi3"));
  EXPECT_THAT(parts_of(phi3, Role::kQkv),
              ElementsAre("self_attn.qkv_proj.weight 0+48", "self_attn.qkv_proj.weight 48+24",
                          "self_attn.qkv_proj.weight 72+24"));
  EXPECT_THAT(parts_of(phi3, Role::kGateUp),
              ElementsAre("mlp.gate_up_proj.weight 0+28", "mlp.gate_up_proj.weight 28+28"));
}

TEST(TensorTable, TensorsOfTheirOwnAreTheSamePartsInTheSameOrder) {
  const TensorTable llama = table_of(family("llama"));
  EXPECT_THAT(parts_of(llama, Role::kQkv), ElementsAre("self_attn.q_proj.weight 0+48", "self_attn.k_proj.weight 0+24",
                                                       "self_attn.v_proj.weight 0+24"));
  EXPECT_THAT(parts_of(llama, Role::kGateUp), ElementsAre("mlp.gate_proj.weight 0+28", "mlp.up_proj.weight 0+28"));
  EXPECT_THAT(parts_of(table_of(family("starcoder2")), Role::kGateUp), ElementsAre("mlp.c_fc.weight 0+28"));
}

std::vector<Role> roles_of_layer(const std::string& config, std::uint32_t layer) {
  std::vector<Role> roles;
  for (const TensorEntry& entry : table_of(config).entries) {
    if (entry.layer == layer) roles.push_back(entry.role);
  }
  return roles;
}

TEST(TensorTable, EntriesOfALayerAreInTheOrderOfTheirUse) {
  using enum Role;
  EXPECT_THAT(roles_of_layer(family("llama"), 1), ElementsAre(kInputNorm, kQkv, kOut, kMlpNorm, kGateUp, kDown));
  EXPECT_THAT(
      roles_of_layer(family("gemma3_text"), 1),
      ElementsAre(kInputNorm, kQkv, kQNorm, kKNorm, kOut, kAttentionNorm, kMlpNorm, kGateUp, kDown, kMlpOutNorm));
  EXPECT_THAT(roles_of_layer(family("olmo2"), 0),
              ElementsAre(kQkv, kQNorm, kKNorm, kOut, kAttentionNorm, kGateUp, kDown, kMlpOutNorm));
  EXPECT_THAT(roles_of_layer(family("cohere"), 0), ElementsAre(kInputNorm, kQkv, kOut, kGateUp, kDown));
  EXPECT_THAT(roles_of_layer(family("starcoder2"), 0),
              ElementsAre(kInputNorm, kInputNorm, kQkv, kOut, kMlpNorm, kMlpNorm, kGateUp, kDown));
}

TEST(TensorTable, LayersAreInOrderBetweenTheEmbeddingAndTheHead) {
  const TensorTable table = table_of(family("stablelm"));
  EXPECT_EQ(table.entries.front().role, Role::kEmbedding);
  EXPECT_EQ(table.entries.back().role, Role::kHead);
  std::vector<std::uint32_t> layers;
  for (const TensorEntry& entry : table.entries) layers.push_back(entry.layer);
  EXPECT_TRUE(std::is_sorted(layers.begin() + 1, layers.end()));
  EXPECT_THAT(roles_of_layer(family("stablelm"), TensorEntry::kTop),
              ElementsAre(Role::kEmbedding, Role::kFinalNorm, Role::kFinalNorm, Role::kHead));
}

TEST(TensorTable, ANormsBiasFollowsItsScaleAndOnlyTheScaleHasAnOffset) {
  const TensorTable table = table_of(family("starcoder2"));
  EXPECT_EQ(table.entries[1].kind, TensorEntry::Kind::kVector);
  EXPECT_EQ(table.entries[2].kind, TensorEntry::Kind::kBias);
  for (const TensorEntry& entry : table_of(family("gemma3_text")).entries) {
    EXPECT_EQ(entry.offset, entry.kind == TensorEntry::Kind::kVector ? 1.0f : 0.0f) << entry.parts[0].name;
  }
}

TEST(TensorTable, ATiedHeadIsNoTensorButMayBeInTheFile) {
  const TensorTable tied = table_of(family("llama", "\"tie_word_embeddings\": true"));
  EXPECT_EQ(tied.entries.back().role, Role::kFinalNorm);
  EXPECT_TRUE(tied.skips("lm_head.weight"));
  EXPECT_FALSE(table_of(family("llama")).skips("lm_head.weight"));
  const TensorTable inner = table_of(wrapped("gemma3", family("gemma3_text")));
  EXPECT_TRUE(inner.skips("lm_head.weight"));
}

TEST(TensorTable, RotaryBuffersAreSkippedWhereverTheyAre) {
  const TensorTable table = table_of(family("llama"));
  EXPECT_TRUE(table.skips("model.layers.0.self_attn.rotary_emb.inv_freq"));
  EXPECT_TRUE(table.skips("model.rotary_emb.inv_freq"));
  EXPECT_FALSE(table.skips("model.layers.0.self_attn.rotary_emb.inv_freq.weight"));
  EXPECT_FALSE(table.skips("model.layers.0.self_attn.q_proj.weight"));
}

TEST(TensorTable, ThePartsOfAModelThatSeeAreSkipped) {
  const TensorTable table = table_of(wrapped("gemma3", family("gemma3_text")));
  for (const char* name : {"vision_tower.embeddings.patch_embedding.weight", "vision_tower.encoder.layers.0.norm.bias",
                           "multi_modal_projector.mm_input_projection_weight", "model.vision_tower.ln_pre.weight",
                           "model.multi_modal_projector.norm.weight"}) {
    EXPECT_TRUE(table.skips(name)) << name;
    EXPECT_FALSE(table_of(family("gemma3_text")).skips(name)) << name;
  }
  EXPECT_FALSE(table.skips("model.norm.weight"));
}

TEST(TensorTable, AStarStandsForAnyCharactersAndAllElseForItself) {
  TensorTable table;
  table.skipped = {"whole.weight", "start.*", "*.end", "a*b*c"};
  for (const char* name : {"whole.weight", "start.", "start.of.it", ".end", "the.end", "abc", "a.b.c", "aabbcc"}) {
    EXPECT_TRUE(table.skips(name)) << name;
  }
  for (const char* name : {"whole.weights", "a.whole.weight", "start", "end", "the.end.", "ab", "acb", "abcd", ""}) {
    EXPECT_FALSE(table.skips(name)) << name;
  }
}

}  // namespace
}  // namespace quire::model::tensor_table_test
