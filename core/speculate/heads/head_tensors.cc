#include "core/speculate/heads/head_tensors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/float_bits.h"
#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::speculate {
namespace {

constexpr std::string_view kModel = "model.";
constexpr std::string_view kMidlayer = "midlayer.";

// Files that the authors' programs write, without their ending.
constexpr std::string_view kHeadFiles[] = {"medusa_lm_head", "hydra_lm_head"};
constexpr std::string_view kInsideAModel = "medusa_head.";

model::Checkpoint open_head(const model::ModelFiles& files) {
  for (const std::string_view name : kHeadFiles) {
    const std::string file = std::string(name) + ".safetensors";
    if (files.find(file)) return model::Checkpoint::open_file(files, file);
  }
  return model::Checkpoint::open(files);
}

std::string canonical(std::string_view name) {
  if (name.starts_with(kInsideAModel)) name.remove_prefix(kInsideAModel.size());
  if (name.starts_with(kModel)) name.remove_prefix(kModel.size());
  if (name.starts_with(kMidlayer)) return "layers.0." + std::string(name.substr(kMidlayer.size()));
  return std::string(name);
}

std::vector<float> widened(const model::Tensor& tensor) {
  std::vector<float> out(tensor.num_elements());
  const std::byte* bytes = tensor.data.data();
  const bool bf16 = tensor.format() == backend::Format::kBF16;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (tensor.format() == backend::Format::kF32) {
      std::memcpy(&out[i], bytes + 4 * i, sizeof(float));
      continue;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes + 2 * i, sizeof(bits));
    out[i] = bf16 ? f32_of_bf16(bits) : f32_of_f16(bits);
  }
  return out;
}

std::vector<std::int64_t> whole_numbers(const model::Tensor& tensor) {
  std::vector<std::int64_t> out(tensor.num_elements());
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (tensor.dtype == "I64") {
      std::memcpy(&out[i], tensor.data.data() + 8 * i, 8);
    } else {
      std::int32_t number = 0;
      std::memcpy(&number, tensor.data.data() + 4 * i, 4);
      out[i] = number;
    }
  }
  return out;
}

std::string called(const model::Tensor& tensor) { return tensor.file + ": tensor '" + log_safe(tensor.name) + "'"; }

}  // namespace

HeadFile::HeadFile(const model::ModelFiles& files) : checkpoint_(open_head(files)) {
  const auto is_inside = [](const std::string& name) { return name.starts_with(kInsideAModel); };
  const bool inside = std::ranges::any_of(checkpoint_.tensors(), [&](const auto& one) { return is_inside(one.first); });
  for (const auto& [name, tensor] : checkpoint_.tensors()) {
    if (inside && !is_inside(name)) continue;
    const auto [at, fresh] = by_name_.emplace(canonical(name), &tensor);
    if (!fresh) throw StartError(called(tensor) + " occurs twice, also as '" + at->second->name + "'");
  }
}

const model::Tensor* HeadFile::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

HeadTensors::HeadTensors(const HeadFile& file, Problems& problems, backend::Ops* ops,
                         std::optional<backend::Format> quantize)
    : file_(file), problems_(problems), ops_(ops), quantize_(quantize) {}

const model::Tensor* HeadTensors::take(const std::string& name, const std::vector<std::uint64_t>& shape) {
  const model::Tensor* tensor = file_.find(name);
  if (tensor == nullptr) {
    problems_.add(file_.name() + ": tensor '" + name + "' is missing; expected shape " + model::shape_text(shape));
    return nullptr;
  }
  taken_.insert(name);
  if (tensor->shape == shape) return tensor;
  problems_.add(called(*tensor) + " has shape " + model::shape_text(tensor->shape) + "; config.json expects " +
                model::shape_text(shape));
  return nullptr;
}

const model::Tensor* HeadTensors::take_number(const std::string& name, const std::vector<std::uint64_t>& shape) {
  const model::Tensor* tensor = take(name, shape);
  if (tensor == nullptr || tensor->format()) return tensor;
  problems_.add(called(*tensor) + " has dtype " + log_safe(tensor->dtype) + "; expected F32, BF16 or F16");
  return nullptr;
}

bool HeadTensors::takes_bias(const Matrices& wanted) const {
  if (wanted.biased != Biased::kMaybe) return wanted.biased == Biased::kAlways;
  return std::ranges::any_of(wanted.names, [&](const std::string& name) { return has(name + ".bias"); });
}

std::unique_ptr<backend::Weight> HeadTensors::weight(const Matrices& wanted) {
  std::vector<backend::HostMatrix> matrices;
  std::vector<std::vector<float>> bias_values;
  const model::Tensor* first = nullptr;
  for (std::size_t i = 0; i < wanted.names.size(); ++i) {
    const model::Tensor* tensor = take_number(wanted.names[i] + ".weight", {wanted.n[i], wanted.k});
    const model::Tensor* bias = takes_bias(wanted) ? take_number(wanted.names[i] + ".bias", {wanted.n[i]}) : nullptr;
    if (tensor == nullptr) continue;
    if (first == nullptr) first = tensor;
    if (tensor->dtype != first->dtype) {
      problems_.add(called(*tensor) + " is " + log_safe(tensor->dtype) + " but '" + first->name + "' is " +
                    log_safe(first->dtype) + "; tensors that are packed together must have one dtype");
    }
    matrices.push_back({tensor->data.data(), *tensor->format(), static_cast<std::uint32_t>(wanted.n[i]),
                        static_cast<std::uint32_t>(wanted.k)});
    if (bias != nullptr) bias_values.push_back(widened(*bias));
  }
  if (ops_ == nullptr) return nullptr;
  const std::vector<std::span<const float>> biases(bias_values.begin(), bias_values.end());
  return ops_->pack(matrices, biases, wanted.as_stored ? std::nullopt : quantize_);
}

std::unique_ptr<backend::Vector> HeadTensors::vector(const std::string& name, std::uint64_t size, float scale) {
  const model::Tensor* tensor = take_number(name, {size});
  if (tensor == nullptr || ops_ == nullptr) return nullptr;
  std::vector<float> values = widened(*tensor);
  for (float& value : values) value *= scale;
  return ops_->upload(values);
}

std::vector<TokenId> HeadTensors::token_ids(std::uint32_t draft_vocab, std::uint32_t vocab, bool required) {
  if (!required && !has("d2t") && !has("t2d")) return {};
  std::vector<std::int64_t> ids = whole_numbers("d2t", draft_vocab);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (__builtin_add_overflow(ids[i], static_cast<std::int64_t>(i), &ids[i])) ids[i] = -1;
  }
  std::vector<TokenId> tokens = checked_ids("d2t", ids, vocab);
  std::vector<TokenId> sorted = tokens;
  std::ranges::sort(sorted);
  if (!tokens.empty()) check_membership(sorted, vocab);
  return tokens;
}

std::vector<TokenId> HeadTensors::token_map(std::uint32_t draft_vocab, std::uint32_t vocab) {
  return checked_ids("token_map", whole_numbers("token_map", draft_vocab), vocab);
}

// Empty if the tensor is not one of `count` integers.
std::vector<std::int64_t> HeadTensors::whole_numbers(const std::string& name, std::uint32_t count) {
  const model::Tensor* tensor = take(name, {count});
  if (tensor == nullptr) return {};
  if (tensor->dtype == "I64" || tensor->dtype == "I32") return speculate::whole_numbers(*tensor);
  problems_.add(called(*tensor) + " has dtype " + log_safe(tensor->dtype) + "; expected I64 or I32");
  return {};
}

// The target's ids by draft id; empty if one of them is outside its vocabulary.
std::vector<TokenId> HeadTensors::checked_ids(const std::string& name, std::span<const std::int64_t> ids,
                                              std::uint32_t vocab) {
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= std::int64_t{vocab}) {
      problems_.add(called(*file_.find(name)) + " maps draft token " + std::to_string(i) +
                    " to a token outside the target's vocabulary");
      return {};
    }
    tokens.push_back(static_cast<TokenId>(ids[i]));
  }
  std::vector<TokenId> sorted = tokens;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    problems_.add(called(*file_.find(name)) + " maps two draft tokens to token " + std::to_string(*twice));
  }
  return tokens;
}

void HeadTensors::check_membership(const std::vector<TokenId>& tokens, std::uint32_t vocab) {
  if (!has("t2d")) return;
  const model::Tensor* members = take("t2d", {vocab});
  if (members == nullptr) return;
  if (members->dtype != "BOOL" && members->dtype != "U8") {
    problems_.add(called(*members) + " has dtype " + log_safe(members->dtype) + "; expected BOOL");
    return;
  }
  for (std::uint32_t token = 0; token < vocab; ++token) {
    const bool is_draft = std::ranges::binary_search(tokens, static_cast<TokenId>(token));
    if ((members->data[token] != std::byte{0}) == is_draft) continue;
    problems_.add(called(*members) + " and d2t differ on token " + std::to_string(token) + ": is it a draft token?");
    return;
  }
}

bool HeadTensors::repeats(const std::string& name, const std::string& first) {
  constexpr std::array kParts = {".weight", ".bias"};
  for (const char* part : kParts) {
    const model::Tensor* one = file_.find(name + part);
    const model::Tensor* other = file_.find(first + part);
    if ((one == nullptr) != (other == nullptr)) return false;
    if (one == nullptr) continue;
    if (one->dtype != other->dtype || one->shape != other->shape) return false;
    if (!std::ranges::equal(one->data, other->data)) return false;
  }
  for (const char* part : kParts) taken_.insert(name + part);
  return true;
}

void HeadTensors::leave_out(const std::string& name, const std::vector<std::uint64_t>& shape) {
  if (has(name)) take_number(name, shape);
}

void HeadTensors::refuse_unused() {
  for (const auto& [name, tensor] : file_.tensors()) {
    if (taken_.contains(name) || name.ends_with("rotary_emb.inv_freq")) continue;
    problems_.add(called(*tensor) + " is not part of a head with this config.json");
  }
}

}  // namespace quire::speculate
