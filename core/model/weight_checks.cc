#include "core/model/weight_checks.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/mixture.h"
#include "core/model/quantized/kv_scales.h"
#include "core/model/source/other_formats.h"

namespace quire::model {
namespace {

constexpr std::size_t kMaxProblemsReported = 20;

class Problems {
 public:
  void add(std::string text) {
    if (++count_ <= kMaxProblemsReported) reported_.push_back(std::move(text));
  }
  void throw_if_any(const Checkpoint& checkpoint) const {
    if (count_ == 0) return;
    std::string text = checkpoint.file() + " does not fit config.json: " + std::to_string(count_) +
                       (count_ == 1 ? " problem" : " problems");
    for (const std::string& problem : reported_) text += "\n  " + problem;
    if (count_ > reported_.size()) text += "\n  and " + std::to_string(count_ - reported_.size()) + " more";
    const bool has_config =
        std::ranges::any_of(checkpoint.tensors(), [](const auto& named) { return named.second.matrix != nullptr; });
    for (const auto& [name, tensor] : checkpoint.tensors()) {
      const std::string known = explain_tensors(name, has_config);
      if (!known.empty()) throw StartError(text + "\n  " + known);
    }
    throw StartError(text);
  }

 private:
  std::size_t count_ = 0;
  std::vector<std::string> reported_;
};

void check_tensor(const TensorPart& expected, const ModelSpec& spec, const Checkpoint& checkpoint, Problems& problems) {
  const Tensor* tensor = checkpoint.find(expected.name);
  if (tensor == nullptr) {
    std::string text =
        checkpoint.file() + ": tensor '" + expected.name + "' is missing; expected shape " + shape_text(expected.shape);
    if (expected.name == spec.names.head + ".weight")
      text += " (config.json's tie_word_embeddings is false: set it to true if the embedding is the output matrix)";
    problems.add(std::move(text));
    return;
  }
  if (!tensor->unread.empty()) return problems.add(tensor->unread);
  if (tensor->shape != expected.shape) {
    problems.add(tensor->file + ": tensor '" + tensor->name + "' has shape " + shape_text(tensor->shape) +
                 "; config.json expects " + shape_text(expected.shape));
  }
  const bool may_be_coded = expected.is_matrix && expected.shape.size() > 1;
  if (!(may_be_coded ? tensor->stored_format() : tensor->format())) {
    problems.add(tensor->file + ": tensor '" + tensor->name + "' has dtype " + log_safe(tensor->dtype) +
                 "; expected F32, BF16 or F16");
  }
}

bool is_same(const Tensor& a, const Tensor& b) {
  const auto equal = [](FileBytes x, FileBytes y) { return std::ranges::equal(x, y); };
  return a.shape == b.shape && a.stored_format() == b.stored_format() &&
         std::ranges::equal(a.parts(), b.parts(), equal);
}

std::string head_name(const ModelSpec& spec) { return spec.names.head + ".weight"; }
std::string embedding_name(const ModelSpec& spec) { return spec.names.prefix + spec.names.embedding + ".weight"; }

void check_tied_head(const ModelSpec& spec, const Checkpoint& checkpoint, Problems& problems) {
  const Tensor* head = checkpoint.find(head_name(spec));
  const Tensor* embedding = checkpoint.find(embedding_name(spec));
  if (head == nullptr || embedding == nullptr || is_same(*head, *embedding)) return;
  problems.add(head->file + ": tensor '" + head->name + "' differs from '" + embedding->name +
               "', but config.json's tie_word_embeddings is true; set it to false if the checkpoint has its own "
               "output matrix");
}

// A bias of zeros beside a quantised matrix: AutoGPTQ wrote one for every module.
bool is_idle_bias(const Tensor& tensor, const Checkpoint& checkpoint) {
  constexpr std::string_view kBias = ".bias";
  if (!tensor.name.ends_with(kBias)) return false;
  const std::string module = tensor.name.substr(0, tensor.name.size() - kBias.size());
  const Tensor* matrix = checkpoint.find(module + ".weight");
  if (matrix == nullptr || matrix->matrix == nullptr) return false;
  return std::ranges::all_of(tensor.data, [](std::byte b) { return b == std::byte{0}; });
}

void add_problems(const ModelSpec& spec, const TensorTable& table, const Checkpoint& checkpoint, Problems& problems) {
  std::set<std::string, std::less<>> known;
  for (const TensorPart& expected : table.tensors()) {
    check_tensor(expected, spec, checkpoint, problems);
    known.insert(expected.name);
  }
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    if (known.contains(name) || table.skips(name) || is_kv_scale(name) || is_idle_bias(tensor, checkpoint)) continue;
    problems.add(tensor.file + ": tensor '" + log_safe(name) + "' is not part of a " + spec.architecture +
                 " with this config.json");
  }
}

// A latent is one row for K and V, and biases of ALiBi in bf16 are scaled with scores: neither has such scales.
void fit_kv_scales(const Checkpoint& checkpoint, ModelSpec& spec) {
  for (std::uint32_t index = 0; index < spec.num_layers(); ++index) {
    AttentionLayer& attention = spec.layers[index].attention;
    if (attention.latent || (attention.alibi && attention.alibi->in_bf16)) continue;
    if (attention.kv_source) {
      attention.kv_scales = spec.layers[*attention.kv_source].attention.kv_scales;
      continue;
    }
    const StoredKvScales stored = kv_scales_of(checkpoint, name_in_layer(spec.names, index, ""));
    attention.kv_scales = {stored.k, stored.v};
  }
}

}  // namespace

void check_headers(const ModelSpec& spec, const TensorTable& table, const Checkpoint& checkpoint) {
  Problems problems;
  add_problems(spec, table, checkpoint, problems);
  problems.throw_if_any(checkpoint);
}

void check_weights(const ModelSpec& spec, const Checkpoint& checkpoint) {
  Problems problems;
  add_problems(spec, tensor_table(spec), checkpoint, problems);
  if (spec.tied_head) check_tied_head(spec, checkpoint, problems);
  problems.throw_if_any(checkpoint);
}

ModelSpec fitted(const ModelSpec& spec, const Checkpoint& checkpoint) {
  ModelSpec out = spec;
  fit_experts(checkpoint, out);
  fit_kv_scales(checkpoint, out);
  const Tensor* head = checkpoint.find(head_name(spec));
  const Tensor* embedding = checkpoint.find(embedding_name(spec));
  if (!spec.tied_head || !spec.tied_by_default || head == nullptr || embedding == nullptr) return out;
  out.tied_head = is_same(*head, *embedding);
  return out;
}

}  // namespace quire::model
