// The neighbours of a linear layer as data: a norm of its rows before, and a use of its outputs after the product.
// StepOps::linear() takes both, so that a backend may fuse what it can; else the plain ops run one after another.
// Owner   the caller owns everything pointed to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "core/backend/attention_spec.h"
#include "core/backend/tensors.h"

namespace quire::backend {

// Weights that share their input, of any types; their outputs lie side by side.
class WeightList {
 public:
  WeightList() = default;
  WeightList(const Weight& only) : only_(&only), size_(1) {}  // NOLINT(google-explicit-constructor): a list of one
  explicit WeightList(std::span<const Weight* const> all) : all_(all.data()), size_(all.size()) {}

  std::size_t size() const { return size_; }
  const Weight& operator[](std::size_t i) const { return only_ != nullptr ? *only_ : *all_[i]; }
  std::uint32_t n() const {  // outputs of all of them
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < size_; ++i) n += (*this)[i].n();
    return n;
  }

 private:
  const Weight* only_ = nullptr;
  const Weight* const* all_ = nullptr;
  std::size_t size_ = 0;
};

// The rows are normed first, into a buffer as wide as they are. No norm: they are taken as they are.
struct Before {
  Norm norm{};
  Buffer* normed = nullptr;
};

// The outputs are q | k | v: rope_store().
struct ThenRopeStore {
  const AttentionSpec* attention;
  KvCache* cache;
};
enum class Activation : std::uint8_t { kSilu, kGeluTanh, kRelu2, kGelu, kRelu, kXielu };
// Numbers of kXielu: StepOps::activate().
struct Xielu {
  float positive = 0.0f;  // p
  float negative = 0.0f;  // n
  float linear = 0.0f;    // b
  float most = 0.0f;      // e, not above 0
};
// Of gates and ups that are limited: StepOps::linear_by_expert().
struct Clamp {
  float alpha = 1.0f;
  float limit = 0.0f;
  bool operator==(const Clamp&) const = default;
};
// activate() into `out` [T, F]. Gated: the outputs are gate | up.
struct ThenActivate {
  Buffer* out;
  Activation kind = Activation::kSilu;
  bool gated = true;
  Xielu xielu{};
  std::optional<Clamp> clamp{};  // in place of activate(), of linear_by_expert() alone
};
// The outputs are normed, if there is a norm, and added to x [T, N]: add().
struct ThenAdd {
  Buffer* x;
  float scale = 1.0f;
  Norm norm{};
};
// The outputs are logits [R, V or more]: rescale(), choose().
struct ThenChoose {
  std::uint32_t vocab;
  float scale = 1.0f;
  float softcap = 0.0f;
  bool rescales() const { return scale != 1.0f || softcap != 0.0f; }
};
using After = std::variant<std::monostate, ThenRopeStore, ThenActivate, ThenAdd, ThenChoose>;

}  // namespace quire::backend
