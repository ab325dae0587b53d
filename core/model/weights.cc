#include "core/model/weights.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <span>

#include "core/base/float_bits.h"
#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/numeric_mode.h"
#include "core/model/other_formats.h"
#include "core/model/packed_file.h"

namespace quire::model {
namespace {

constexpr std::size_t kMaxProblemsTold = 20;
constexpr std::string_view kEmbedding = "model.embed_tokens.weight";
constexpr std::string_view kHead = "lm_head.weight";

std::string layer_prefix(std::uint32_t layer) { return "model.layers." + std::to_string(layer) + "."; }

// Matrices that are packed as one weight: names without ".weight", biases by the same names.
struct PackList {
  std::vector<std::string> names;
  bool bias = false;
};

PackList qkv_list(const Config& config, std::uint32_t layer) {
  const std::string at = layer_prefix(layer) + "self_attn.";
  return {{at + "q_proj", at + "k_proj", at + "v_proj"}, config.qkv_bias};
}
PackList out_list(const Config& config, std::uint32_t layer) {
  return {{layer_prefix(layer) + "self_attn.o_proj"}, config.out_bias};
}
PackList gate_up_list(const Config& config, std::uint32_t layer) {
  return {{layer_prefix(layer) + "mlp.gate_proj", layer_prefix(layer) + "mlp.up_proj"}, config.mlp_bias};
}
PackList down_list(const Config& config, std::uint32_t layer) {
  return {{layer_prefix(layer) + "mlp.down_proj"}, config.mlp_bias};
}

class Problems {
 public:
  void add(std::string text) {
    if (++count_ <= kMaxProblemsTold) told_.push_back(std::move(text));
  }
  void throw_if_any(const Checkpoint& checkpoint) const {
    if (count_ == 0) return;
    std::string text = checkpoint.file() + " does not fit config.json: " + std::to_string(count_) +
                       (count_ == 1 ? " problem" : " problems");
    for (const std::string& problem : told_) text += "\n  " + problem;
    if (count_ > told_.size()) text += "\n  and " + std::to_string(count_ - told_.size()) + " more";
    for (const auto& [name, tensor] : checkpoint.tensors()) {
      const std::string known = explain_tensors(name);
      if (!known.empty()) throw StartError(text + "\n  " + known);
    }
    throw StartError(text);
  }

 private:
  std::size_t count_ = 0;
  std::vector<std::string> told_;
};

void check_tensor(const ExpectedTensor& expected, const Checkpoint& checkpoint, Problems& problems) {
  const Tensor* tensor = checkpoint.find(expected.name);
  if (tensor == nullptr) {
    std::string text =
        checkpoint.file() + ": tensor '" + expected.name + "' is missing; expected shape " + shape_text(expected.shape);
    if (expected.name == kHead)
      text += " (config.json's tie_word_embeddings is false: set it to true if the embedding is the output matrix)";
    problems.add(std::move(text));
    return;
  }
  if (tensor->shape != expected.shape) {
    problems.add(tensor->file + ": tensor '" + tensor->name + "' has shape " + shape_text(tensor->shape) +
                 "; config.json expects " + shape_text(expected.shape));
  }
  if (!tensor->number()) {
    problems.add(tensor->file + ": tensor '" + tensor->name + "' has dtype " + log_safe(tensor->dtype) +
                 "; expected F32, BF16 or F16");
  }
}

// One packed weight has one storage form.
void check_same_dtype(const PackList& list, const Checkpoint& checkpoint, Problems& problems) {
  const Tensor* first = checkpoint.find(list.names.front() + ".weight");
  for (const std::string& name : list.names) {
    const Tensor* tensor = checkpoint.find(name + ".weight");
    if (first != nullptr && tensor != nullptr && tensor->dtype != first->dtype) {
      problems.add(tensor->file + ": tensor '" + tensor->name + "' is " + log_safe(tensor->dtype) + " but '" +
                   first->name + "' is " + log_safe(first->dtype) +
                   "; tensors that are packed together must have one dtype");
    }
  }
}

bool is_rope_buffer(std::string_view name) { return name.ends_with("rotary_emb.inv_freq"); }

void check_tied_head(const Checkpoint& checkpoint, Problems& problems) {
  const Tensor* head = checkpoint.find(kHead);
  const Tensor* embedding = checkpoint.find(kEmbedding);
  if (head == nullptr || embedding == nullptr) return;
  const bool same =
      head->shape == embedding->shape && head->dtype == embedding->dtype &&
      head->data.size() == embedding->data.size() &&
      (head->data.empty() || std::memcmp(head->data.data(), embedding->data.data(), head->data.size()) == 0);
  if (!same) {
    problems.add(head->file + ": tensor '" + head->name + "' differs from '" + embedding->name +
                 "', but config.json's tie_word_embeddings is true; set it to false if the checkpoint has its own "
                 "output matrix");
  }
}

std::vector<float> widened(const Tensor& tensor) {
  std::vector<float> out(tensor.num_elements());
  const std::byte* bytes = tensor.data.data();
  if (tensor.number() == backend::DType::kF32) {
    if (!out.empty()) std::memcpy(out.data(), bytes, tensor.data.size());
    return out;
  }
  const bool bf16 = tensor.number() == backend::DType::kBF16;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes + 2 * i, sizeof(bits));
    out[i] = bf16 ? f32_of_bf16(bits) : f32_of_f16(bits);
  }
  return out;
}

// What load_weights() was given.
struct Loading {
  backend::Ops& ops;
  const Config& config;
  const Checkpoint& checkpoint;
  const ModelFiles& files;
  backend::Quantize quantize;
  bool keeps_packed;  // for who writes them to a file

  backend::Quantize quantize_of(const PackList& list) const {
    return model::quantize_of(list.names.front() + ".weight", config, quantize);
  }
};

// Where weights come from, in the order of gather().
class Source {
 public:
  explicit Source(const Loading& loading) : loading_(loading) {}
  virtual ~Source() = default;

  // Null where there is none that fits.
  virtual std::unique_ptr<backend::Weight> weight(const PackList& list) = 0;
  virtual std::uint64_t digest() const = 0;

  std::unique_ptr<backend::Vector> vector(const std::string& name) { return loading_.ops.upload(floats(name)); }

 protected:
  const Tensor& tensor(const std::string& name) const { return *loading_.checkpoint.find(name); }
  virtual std::vector<float> floats(const std::string& name) {
    std::vector<float> values = widened(tensor(name));
    loading_.files.release(tensor(name).data);
    return values;
  }

  const Loading& loading_;
};

// Turns tensors of a checked checkpoint into what the backend made of them. Each is digested, packed and its pages given
// back before the next: a file is read once, and little of it is in memory at a time.
class Packer final : public Source {
 public:
  using Source::Source;

  std::unique_ptr<backend::Weight> weight(const PackList& list) override {
    std::vector<backend::HostMatrix> matrices;
    std::vector<std::vector<float>> bias_values;
    for (const std::string& name : list.names) {
      const Tensor& source = take(name + ".weight");
      matrices.push_back({source.data.data(), *source.number(), static_cast<std::uint32_t>(source.shape[0]),
                          static_cast<std::uint32_t>(source.shape[1])});
      if (list.bias) bias_values.push_back(floats(name + ".bias"));
    }
    const std::vector<std::span<const float>> biases(bias_values.begin(), bias_values.end());
    std::unique_ptr<backend::Weight> packed = loading_.ops.pack(matrices, biases, loading_.quantize_of(list));
    for (const std::string& name : list.names) loading_.files.release(tensor(name + ".weight").data);
    if (!loading_.keeps_packed) packed->forget_packed();
    return packed;
  }

  std::uint64_t digest() const override { return digest_; }

 private:
  const Tensor& take(const std::string& name) {
    digest_ += tensor_digest(tensor(name));
    return tensor(name);
  }
  std::vector<float> floats(const std::string& name) override {
    take(name);
    return Source::floats(name);
  }

  std::uint64_t digest_ = 0;
};

// What a Packer made in an earlier start. Vectors are small: they come from the checkpoint.
class Adopter final : public Source {
 public:
  Adopter(const Loading& loading, const PackedFile& file) : Source(loading), file_(file) {}

  std::unique_ptr<backend::Weight> weight(const PackList& list) override {
    if (next_ == file_.weights().size()) return nullptr;
    const Tensor& first = tensor(list.names.front() + ".weight");
    backend::WeightShape shape;
    for (const std::string& name : list.names) {
      shape.n += static_cast<std::uint32_t>(tensor(name + ".weight").shape[0]);
    }
    shape.k = static_cast<std::uint32_t>(first.shape[1]);
    shape.type = backend::weight_type(*first.number(), loading_.quantize_of(list));
    shape.has_bias = list.bias;
    return loading_.ops.adopt(shape, file_.weights()[next_++], file_.owner());
  }

  std::uint64_t digest() const override { return file_.checkpoint_digest(); }

 private:
  const PackedFile& file_;
  std::size_t next_ = 0;
};

LayerWeights gather_layer(Source& source, const Config& config, std::uint32_t layer) {
  const std::string at = layer_prefix(layer);
  LayerWeights weights;
  weights.input_norm = source.vector(at + "input_layernorm.weight");
  weights.qkv = source.weight(qkv_list(config, layer));
  if (config.qk_norm) {
    weights.q_norm = source.vector(at + "self_attn.q_norm.weight");
    weights.k_norm = source.vector(at + "self_attn.k_norm.weight");
  }
  weights.out = source.weight(out_list(config, layer));
  weights.post_norm = source.vector(at + "post_attention_layernorm.weight");
  weights.gate_up = source.weight(gate_up_list(config, layer));
  weights.down = source.weight(down_list(config, layer));
  return weights;
}

Weights gather(Source& source, const Config& config) {
  Weights weights;
  weights.embed = source.weight({{"model.embed_tokens"}, false});
  weights.layers.reserve(config.num_layers);
  for (std::uint32_t layer = 0; layer < config.num_layers; ++layer) {
    weights.layers.push_back(gather_layer(source, config, layer));
  }
  weights.norm = source.vector("model.norm.weight");
  if (!config.tied_head) weights.head = source.weight({{"lm_head"}, false});
  weights.digest = source.digest();
  return weights;
}

// In the order of gather().
std::vector<backend::Weight*> matrices_of(const Weights& weights) {
  std::vector<backend::Weight*> out = {weights.embed.get()};
  for (const LayerWeights& layer : weights.layers) {
    for (const auto* weight : {&layer.qkv, &layer.out, &layer.gate_up, &layer.down}) out.push_back(weight->get());
  }
  if (weights.head) out.push_back(weights.head.get());
  return out;
}

// Nothing where the file is not good for this; the log says why.
std::optional<Weights> read_packed(const Loading& loading, const std::string& path, std::uint64_t key) {
  const Result<PackedFile> file = PackedFile::open(path, key, loading.ops);
  if (!file) {
    if (file.error().code != Code::kNotFound) {
      log_info("packed_cache", "{}: {}; packing again", log_safe(path), file.error().message);
    }
    return std::nullopt;
  }
  Adopter adopter(loading, *file);
  Weights weights = gather(adopter, loading.config);
  const std::vector<backend::Weight*> matrices = matrices_of(weights);
  if (matrices.size() != file->weights().size() || std::ranges::count(matrices, nullptr) != 0) {
    log_info("packed_cache", "{}: its weights are not this model's; packing again", log_safe(path));
    return std::nullopt;
  }
  weights.from_packed_file = true;
  for (backend::Weight* weight : matrices) weight->forget_packed();
  return weights;
}

void write_packed(const Weights& weights, const std::string& path, std::uint64_t key) {
  std::vector<FileBytes> packed;
  for (const backend::Weight* weight : matrices_of(weights)) packed.push_back(weight->packed());
  const Result<Done> written = write_packed_file(path, key, weights.digest, packed);
  if (written) {
    log_info("packed_cache", "{}: written, for the next start", log_safe(path));
  } else {
    log_warn("packed_cache", "{}: not written: {}", log_safe(path), written.error().message);
  }
}

// Of headers alone.
void check_headers(const Config& config, const Checkpoint& checkpoint, Problems& problems) {
  std::set<std::string, std::less<>> known;
  for (const ExpectedTensor& expected : expected_tensors(config)) {
    check_tensor(expected, checkpoint, problems);
    known.insert(expected.name);
  }
  for (std::uint32_t layer = 0; layer < config.num_layers; ++layer) {
    check_same_dtype(qkv_list(config, layer), checkpoint, problems);
    check_same_dtype(gate_up_list(config, layer), checkpoint, problems);
  }
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    if (known.contains(name) || is_rope_buffer(name) || (config.tied_head && name == kHead)) continue;
    problems.add(tensor.file + ": tensor '" + log_safe(name) + "' is not part of a " + config.architecture +
                 " with this config.json");
  }
}

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const Config& config) {
  const std::uint64_t hidden = config.hidden;
  const std::uint64_t q = std::uint64_t{config.num_heads} * config.head_dim;
  const std::uint64_t kv = std::uint64_t{config.num_kv_heads} * config.head_dim;
  std::vector<ExpectedTensor> tensors;
  const auto matrix = [&](const std::string& name, std::uint64_t n, std::uint64_t k, bool bias) {
    tensors.push_back({name + ".weight", {n, k}});
    if (bias) tensors.push_back({name + ".bias", {n}});
  };

  tensors.push_back({std::string(kEmbedding), {config.vocab, hidden}});
  for (std::uint32_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string at = layer_prefix(layer);
    tensors.push_back({at + "input_layernorm.weight", {hidden}});
    matrix(at + "self_attn.q_proj", q, hidden, config.qkv_bias);
    matrix(at + "self_attn.k_proj", kv, hidden, config.qkv_bias);
    matrix(at + "self_attn.v_proj", kv, hidden, config.qkv_bias);
    if (config.qk_norm) {
      tensors.push_back({at + "self_attn.q_norm.weight", {config.head_dim}});
      tensors.push_back({at + "self_attn.k_norm.weight", {config.head_dim}});
    }
    matrix(at + "self_attn.o_proj", hidden, q, config.out_bias);
    tensors.push_back({at + "post_attention_layernorm.weight", {hidden}});
    matrix(at + "mlp.gate_proj", config.ffn, hidden, config.mlp_bias);
    matrix(at + "mlp.up_proj", config.ffn, hidden, config.mlp_bias);
    matrix(at + "mlp.down_proj", hidden, config.ffn, config.mlp_bias);
  }
  tensors.push_back({"model.norm.weight", {hidden}});
  if (!config.tied_head) tensors.push_back({std::string(kHead), {config.vocab, hidden}});
  return tensors;
}

void check_weights(const Config& config, const Checkpoint& checkpoint) {
  Problems problems;
  check_headers(config, checkpoint, problems);
  if (config.tied_head) check_tied_head(checkpoint, problems);
  problems.throw_if_any(checkpoint);
}

std::size_t Weights::packed_bytes() const {
  std::size_t bytes = embed->bytes() + (head ? head->bytes() : 0) + norm->size() * sizeof(float);
  for (const LayerWeights& layer : layers) {
    for (const auto* weight : {&layer.qkv, &layer.out, &layer.gate_up, &layer.down}) bytes += (*weight)->bytes();
    for (const auto* vector : {&layer.input_norm, &layer.q_norm, &layer.k_norm, &layer.post_norm}) {
      if (*vector) bytes += (*vector)->size() * sizeof(float);
    }
  }
  return bytes;
}

backend::Quantize quantize_of(std::string_view name, const Config& config, backend::Quantize asked) {
  using enum backend::Quantize;
  if (asked == kNone) return kNone;
  // Types of a scale for each group leave the head in 8 bits.
  const auto head = asked == kInt4 ? kInt8 : asked == kW4A8 ? kW8A8 : asked;
  if (name == kHead) return head;
  if (name == kEmbedding) return config.tied_head ? head : kNone;
  return asked;
}

Weights load_weights(backend::Ops& ops, const Config& config, const ModelFiles& files, backend::Quantize quantize,
                     const std::string& packed_file) {
  const Checkpoint checkpoint = Checkpoint::open_decoder(files);
  const std::optional<std::uint64_t> key =
      packed_file.empty() ? std::nullopt : packed_key(files, checkpoint, quantize, ops.layout());
  const Loading loading{ops, config, checkpoint, files, quantize, key.has_value()};
  if (key) {
    // A copy of the embedding among the tensors was compared with it when the file was written.
    Problems problems;
    check_headers(config, checkpoint, problems);
    problems.throw_if_any(checkpoint);
    if (std::optional<Weights> read = read_packed(loading, packed_file, *key)) return *std::move(read);
  }
  check_weights(config, checkpoint);
  Packer packer(loading);
  Weights weights = gather(packer, config);
  if (!key) return weights;
  write_packed(weights, packed_file, *key);
  for (backend::Weight* weight : matrices_of(weights)) weight->forget_packed();
  return weights;
}

}  // namespace quire::model
