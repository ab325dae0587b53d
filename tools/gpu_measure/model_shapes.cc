#include "tools/gpu_measure/model_shapes.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>

#include "core/base/start_error.h"
#include "core/model/arch/config.h"
#include "core/model/weights.h"

namespace quire::gpu::measure {
namespace {

constexpr std::uint32_t kLongest = 131072;

std::uint64_t num_elements(const model::TensorPart& tensor) {
  std::uint64_t count = 1;
  for (const std::uint64_t side : tensor.shape) count *= side;
  return count;
}

// The safetensors header: offsets of every tensor, in bf16, after it. `end` is set to the end of the last tensor.
std::string header_of(const model::ModelSpec& config, std::uint64_t& end) {
  std::string json = "{";
  end = 0;
  for (const model::TensorPart& tensor : model::tensor_table(config).tensors()) {
    const std::string shape = tensor.shape.size() == 1 ? fmt::format("[{}]", tensor.shape[0])
                                                       : fmt::format("[{},{}]", tensor.shape[0], tensor.shape[1]);
    const std::uint64_t begin = end;
    end += 2 * num_elements(tensor);
    json += fmt::format(R"({}"{}":{{"dtype":"BF16","shape":{},"data_offsets":[{},{}]}})", begin == 0 ? "" : ",",
                        tensor.name, shape, begin, end);
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  return json;
}

}  // namespace

std::vector<MatrixShape> ModelShape::matrices() const {
  return {{"qkv", (num_heads + 2 * num_kv_heads) * head_dim, hidden},
          {"out", hidden, num_heads * head_dim},
          {"gate_up", 2 * ffn, hidden},
          {"down", hidden, ffn},
          {"head", vocab, hidden}};
}

std::string ModelShape::config_json() const {
  return fmt::format(
      R"({{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_size": {},
"intermediate_size": {}, "num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {},
"vocab_size": {}, "max_position_embeddings": {}, "rope_theta": 500000, "rms_norm_eps": 1e-05, "hidden_act": "silu",
"attention_bias": false, "mlp_bias": false, "tie_word_embeddings": {}, "bos_token_id": 0, "eos_token_id": 0}})",
      hidden, ffn, num_layers, num_heads, num_kv_heads, head_dim, vocab, kLongest, tied);
}

ModelShape model_shape(std::string_view name) {
  if (name == "tiny") return {"tiny", 32, 48, 2, 2, 1, 16, 64, true};
  if (name == "1b") return {"1b", 2048, 8192, 16, 32, 8, 64, 128256, true};
  if (name == "8b") return {"8b", 4096, 14336, 32, 32, 8, 128, 128256, false};
  throw StartError(fmt::format("--model {}: expected tiny, 1b or 8b", name));
}

HollowModel::HollowModel(const ModelShape& shape) : config_(shape.config_json()) {
  const model::ModelSpec config = model::parse_config(config_, "a shape to measure");
  std::uint64_t numbers = 0;
  const std::string header = header_of(config, numbers);
  const std::uint64_t header_bytes = header.size();
  bytes_ = sizeof header_bytes + header_bytes + numbers;
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) throw StartError(fmt::format("mmap: no {} bytes of address space", bytes_));
  auto* out = static_cast<std::byte*>(memory_);
  std::memcpy(out, &header_bytes, sizeof header_bytes);
  std::memcpy(out + sizeof header_bytes, header.data(), header_bytes);
  files_ = {{"config.json", std::as_bytes(std::span(config_))}, {"model.safetensors", {out, bytes_}}};
}

HollowModel::~HollowModel() { munmap(memory_, bytes_); }

std::unique_ptr<model::ModelFiles> HollowModel::files() const { return model::ModelFiles::memory(files_); }

}  // namespace quire::gpu::measure
