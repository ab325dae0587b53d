// GPU ops that forward every call, make random weights on the device instead of reading them, and record on the device
// when each op of a step begins and ends.
// Owner   the measuring stage; owns `inner`, which owns the device.
// Thread  the engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/gpu_measure/random_numbers.h"
#include "tools/ops/forwarding_ops.h"

namespace quire::gpu::measure {

class MeasuredOps final : public tools::ForwardingOps {
 public:
  enum Part : std::uint8_t { kBegin, kEmbed, kQkv, kAttend, kProject, kGateUp, kNorm, kHead, kOther, kNumParts };
  static constexpr std::string_view kNames[kNumParts] = {"begin",     "embed",        "norm, qkv, rope, store",
                                                         "attend",    "project, add", "norm, gate_up, act_mul",
                                                         "last norm", "head, choose", "other"};

  MeasuredOps(std::unique_ptr<backend::Ops> inner, Device& device)
      : ForwardingOps(std::move(inner)), device_(device), random_(device) {}

  // One op since watch(): its begin and end on the device, in seconds after the first op's begin.
  struct Seen {
    Part part = kOther;
    double begin_s = 0;
    double end_s = 0;
  };
  void watch() {
    parts_.clear();
    watches_ = true;
  }
  std::vector<Seen> seen() {
    watches_ = false;
    std::vector<Seen> out;
    for (unsigned i = 0; i < parts_.size(); ++i) {
      out.push_back({parts_[i], device_.seconds_between(0, 2 * i), device_.seconds_between(0, 2 * i + 1)});
    }
    return out;
  }
  RandomNumbers& random() { return random_; }

  std::unique_ptr<backend::Weight> pack(std::span<const backend::HostMatrix> matrices,
                                        std::span<const std::span<const float>> biases,
                                        std::optional<backend::Format> quantize) override {
    backend::WeightShape shape;
    shape.k = matrices.front().k;
    shape.format = quantize.value_or(matrices.front().format);
    for (const backend::HostMatrix& matrix : matrices) shape.n += matrix.n;
    for (const auto& bias : biases) shape.has_bias = shape.has_bias || !bias.empty();
    return random_.weight(inner(), shape);
  }
  std::unique_ptr<backend::Vector> upload(std::span<const float> values) override {
    return inner().upload(std::vector<float>(values.size(), 1.0f));
  }

 private:
  static Part part_of(Op op) {
    switch (op) {
      case Op::kBegin:
        return kBegin;
      case Op::kEmbed:
        return kEmbed;
      case Op::kQkv:
        return kQkv;
      case Op::kAttend:
        return kAttend;
      case Op::kAdd:
        return kProject;
      case Op::kGateUp:
        return kGateUp;
      case Op::kRows:
        return kNorm;
      case Op::kChoose:
        return kHead;
      default:
        return kOther;
    }
  }
  void op_begins(Op op) override {
    marks_ = watches_ && 2 * parts_.size() + 1 < Device::kMarks;
    if (!marks_) return;
    parts_.push_back(part_of(op));
    device_.mark(static_cast<unsigned>(2 * parts_.size() - 2));
  }
  void op_ends(Op) override {
    if (marks_) device_.mark(static_cast<unsigned>(2 * parts_.size() - 1));
  }

  Device& device_;
  RandomNumbers random_;
  bool watches_ = false;
  bool marks_ = false;  // the op that runs now
  std::vector<Part> parts_;
};

}  // namespace quire::gpu::measure
