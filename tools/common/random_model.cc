#include "tools/common/random_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>

#include "core/base/check.h"
#include "core/base/float_bits.h"
#include "core/model/arch/config.h"
#include "core/model/weights.h"

namespace quire::tools {
namespace {

struct Shape {
  std::string_view name;
  std::string_view config;
};

// clang-format off
constexpr Shape kShapes[] = {
    {"135m", R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
  "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
  "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 64, "vocab_size": 49152,
  "max_position_embeddings": 8192, "rope_theta": 100000, "rms_norm_eps": 1e-05, "hidden_act": "silu",
  "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": true, "bos_token_id": 0, "eos_token_id": 0
})"},
    {"0.6b", R"({
  "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16",
  "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
  "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
  "max_position_embeddings": 8192, "rope_theta": 1000000, "rms_norm_eps": 1e-06, "hidden_act": "silu",
  "attention_bias": false, "tie_word_embeddings": true, "bos_token_id": 0, "eos_token_id": 0
})"},
    {"1b", R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
  "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
  "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
  "max_position_embeddings": 8192, "rope_theta": 500000, "rms_norm_eps": 1e-05, "hidden_act": "silu",
  "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": true, "bos_token_id": 0, "eos_token_id": 0
})"},
    {"1.2b-a0.4b", R"({
  "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "torch_dtype": "bfloat16",
  "hidden_size": 1024, "intermediate_size": 3072, "moe_intermediate_size": 1088, "num_hidden_layers": 20,
  "num_experts": 16, "num_experts_per_tok": 4, "norm_topk_prob": true,
  "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 49152,
  "max_position_embeddings": 8192, "rope_theta": 1000000, "rms_norm_eps": 1e-06, "hidden_act": "silu",
  "attention_bias": false, "tie_word_embeddings": true, "bos_token_id": 0, "eos_token_id": 0
})"},
    {"1b-mla", R"({
  "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "torch_dtype": "bfloat16",
  "hidden_size": 2048, "intermediate_size": 4096, "num_hidden_layers": 26, "first_k_dense_replace": 26,
  "num_attention_heads": 16, "num_key_value_heads": 16, "q_lora_rank": null, "kv_lora_rank": 512,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 49152,
  "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
  "max_position_embeddings": 8192, "rope_theta": 10000, "rms_norm_eps": 1e-06, "hidden_act": "silu",
  "attention_bias": false, "tie_word_embeddings": true, "bos_token_id": 0, "eos_token_id": 0
})"},
};
// clang-format on

std::string config_of(std::string_view shape) {
  const auto at = std::ranges::find(kShapes, shape, &Shape::name);
  CHECK(at != std::end(kShapes));
  return std::string(at->config);
}

// tokenizer.json with one token per byte, in the letters of byte-level vocabularies, and placeholder names for the
// rest.
// Source  GPT-2's bytes_to_unicode: printable Latin-1 is itself, the other bytes are U+0100 and up.
std::string tokenizer_of(std::uint32_t vocab) {
  std::string json = R"({"added_tokens":[{"id":0,"content":"<|endoftext|>","special":true}],"normalizer":null,
"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},"post_processor":null,
"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"<|endoftext|>":0)";
  std::uint32_t next_letter = 256;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool stands = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    const std::uint32_t letter = stands ? byte : next_letter++;
    json += fmt::format(",\"\\u{:04x}\":{}", letter, byte + 1);
  }
  for (std::uint32_t id = 257; id < vocab; ++id) json += fmt::format(",\"t{}\":{}", id, id);
  return json + R"(},"merges":[]}})";
}

std::uint64_t num_elements(const model::TensorPart& tensor) {
  std::uint64_t count = 1;
  for (const std::uint64_t side : tensor.shape) count *= side;
  return count;
}

std::string header_of(std::span<const model::TensorPart> tensors) {
  std::string json = "{";
  std::uint64_t offset = 0;
  for (const model::TensorPart& tensor : tensors) {
    const std::uint64_t end = offset + 2 * num_elements(tensor);
    const std::string shape = tensor.shape.size() == 1 ? fmt::format("[{}]", tensor.shape[0])
                                                       : fmt::format("[{},{}]", tensor.shape[0], tensor.shape[1]);
    json += fmt::format(R"({}"{}":{{"dtype":"BF16","shape":{},"data_offsets":[{},{}]}})", offset == 0 ? "" : ",",
                        tensor.name, shape, offset, end);
    offset = end;
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  return json;
}

// Norms are 1; matrices are uniform in [-0.04, 0.04): close to a trained model's spread, so that nothing overflows.
// Source  xorshift64 (Marsaglia 2003).
void fill(std::span<const model::TensorPart> tensors, std::byte* out) {
  std::uint64_t state = 0x9e3779b97f4a7c15u;
  for (const model::TensorPart& tensor : tensors) {
    const bool is_norm = tensor.shape.size() == 1;
    for (std::uint64_t i = 0; i < num_elements(tensor); ++i) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      const auto bits = static_cast<std::int32_t>(state >> 32);
      const std::uint16_t value = bf16_of_f32(is_norm ? 1.0f : static_cast<float>(bits) * (0.04f / 0x1p31f));
      std::memcpy(out, &value, sizeof value);
      out += sizeof value;
    }
  }
}

}  // namespace

bool RandomModel::knows(std::string_view shape) {
  return std::ranges::find(kShapes, shape, &Shape::name) != std::end(kShapes);
}

RandomModel::RandomModel(std::string_view shape) : config_(config_of(shape)) {
  const model::ModelSpec config = model::parse_config(config_, "random:config.json");
  const auto tensors = model::tensor_table(config).tensors();
  tokenizer_ = tokenizer_of(config.vocab);
  const std::string header = header_of(tensors);
  std::uint64_t elements = 0;
  for (const model::TensorPart& tensor : tensors) elements += num_elements(tensor);
  const std::uint64_t header_bytes = header.size();
  safetensors_.resize(sizeof header_bytes + header_bytes + 2 * elements);
  std::memcpy(safetensors_.data(), &header_bytes, sizeof header_bytes);
  std::memcpy(safetensors_.data() + sizeof header_bytes, header.data(), header_bytes);
  fill(tensors, safetensors_.data() + sizeof header_bytes + header_bytes);
  files_[0] = {"config.json", std::as_bytes(std::span(config_))};
  files_[1] = {"model.safetensors", safetensors_};
  files_[2] = {"tokenizer.json", std::as_bytes(std::span(tokenizer_))};
}

std::unique_ptr<model::ModelFiles> RandomModel::files() const { return model::ModelFiles::memory(files_); }

}  // namespace quire::tools
