// Ops that add up the time of each kind of op.
// Owner   the model; owns `inner`.
// Thread  the engine's.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "tools/ops/forwarding_ops.h"

namespace quire::tools {

class TimedOps final : public ForwardingOps {
 public:
  // The kinds of op that a decoder calls in one step, in their order.
  enum Part : std::uint8_t { kEmbed, kQkv, kAttend, kOut, kGateUp, kDown, kLastNorm, kHead, kNumParts };
  static constexpr std::string_view kNames[kNumParts] = {"embedding",
                                                         "norm, q|k|v, rope, store",
                                                         "attention",
                                                         "output projection, add",
                                                         "norm, gate|up, activation",
                                                         "down projection, add",
                                                         "last norm, logits rows",
                                                         "head, sampling"};

  using ForwardingOps::ForwardingOps;

  // Seconds since the last clear().
  const std::array<double, kNumParts>& seconds() const { return seconds_; }
  void clear() { seconds_.fill(0); }

 private:
  // Projections are told apart by what came before them.
  Part part_of(Op op) {
    switch (op) {
      case Op::kEmbed:
        return kEmbed;
      case Op::kQkv:
        next_projection_ = kOut;
        return kQkv;
      case Op::kAttend:
        return kAttend;
      case Op::kAdd:
        return next_projection_;
      case Op::kGateUp:
        next_projection_ = kDown;
        return kGateUp;
      case Op::kRows:
        return kLastNorm;
      case Op::kChoose:
        return kHead;
      default:
        return kNumParts;
    }
  }
  void op_begins(Op) override { start_ = std::chrono::steady_clock::now(); }
  void op_ends(Op op) override {
    const Part part = part_of(op);
    if (part == kNumParts) return;
    seconds_[part] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  Part next_projection_ = kOut;
  std::chrono::steady_clock::time_point start_;
  std::array<double, kNumParts> seconds_{};
};

}  // namespace quire::tools
