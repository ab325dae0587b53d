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

std::string canonical(std::string_view name) {
  if (name.starts_with(kModel)) name.remove_prefix(kModel.size());
  if (name.starts_with(kMidlayer)) return "layers.0." + std::string(name.substr(kMidlayer.size()));
  return std::string(name);
}

std::vector<float> widened(const model::Tensor& tensor) {
  std::vector<float> out(tensor.num_elements());
  const std::byte* bytes = tensor.data.data();
  const bool bf16 = tensor.number() == backend::DType::kBF16;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (tensor.number() == backend::DType::kF32) {
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

HeadFile::HeadFile(const model::ModelFiles& files) : checkpoint_(model::Checkpoint::open(files)) {
  for (const auto& [name, tensor] : checkpoint_.tensors()) {
    const auto [at, fresh] = by_name_.emplace(canonical(name), &tensor);
    if (!fresh) throw StartError(called(tensor) + " is there twice, as '" + at->second->name + "', too");
  }
}

const model::Tensor* HeadFile::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

HeadTensors::HeadTensors(const HeadFile& file, Problems& problems, backend::Ops* ops, backend::Quantize quantize)
    : file_(file), problems_(problems), ops_(ops), quantize_(quantize) {}

const model::Tensor* HeadTensors::take(const std::string& name, const std::vector<std::uint64_t>& shape) {
  const model::Tensor* tensor = file_.find(name);
  if (tensor == nullptr) {
    problems_.add(file_.name() + ": tensor '" + name + "' is missing; expected shape " + model::shape_text(shape));
    return nullptr;
  }
  taken_.insert(name);
  if (tensor->shape == shape) return tensor;
  problems_.add(called(*tensor) + " has shape " + model::shape_text(tensor->shape) + "; its config.json expects " +
                model::shape_text(shape));
  return nullptr;
}

const model::Tensor* HeadTensors::take_number(const std::string& name, const std::vector<std::uint64_t>& shape) {
  const model::Tensor* tensor = take(name, shape);
  if (tensor == nullptr || tensor->number()) return tensor;
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
                    log_safe(first->dtype) + "; both are packed as one");
    }
    matrices.push_back({tensor->data.data(), *tensor->number(), static_cast<std::uint32_t>(wanted.n[i]),
                        static_cast<std::uint32_t>(wanted.k)});
    if (bias != nullptr) bias_values.push_back(widened(*bias));
  }
  if (ops_ == nullptr) return nullptr;
  const std::vector<std::span<const float>> biases(bias_values.begin(), bias_values.end());
  return ops_->pack(matrices, biases, wanted.as_stored ? backend::Quantize::kNone : quantize_);
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
  const model::Tensor* offsets = take("d2t", {draft_vocab});
  if (offsets == nullptr) return {};
  if (offsets->dtype != "I64" && offsets->dtype != "I32") {
    problems_.add(called(*offsets) + " has dtype " + log_safe(offsets->dtype) + "; expected I64 or I32");
    return {};
  }
  const std::vector<std::int64_t> apart = whole_numbers(*offsets);
  std::vector<TokenId> tokens(draft_vocab);
  for (std::uint32_t i = 0; i < draft_vocab; ++i) {
    const bool inside = apart[i] >= -std::int64_t{i} && apart[i] < std::int64_t{vocab} - i;
    if (!inside) {
      problems_.add(called(*offsets) + " sends draft token " + std::to_string(i) + " by " + std::to_string(apart[i]) +
                    ", out of the target's vocabulary");
      return {};
    }
    tokens[i] = static_cast<TokenId>(i + apart[i]);
  }
  std::vector<TokenId> sorted = tokens;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    problems_.add(called(*offsets) + " sends two draft tokens to token " + std::to_string(*twice));
  }
  check_membership(sorted, vocab);
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
    problems_.add(called(*members) + " and d2t differ: is token " + std::to_string(token) + " one of the head's?");
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
