// Runs planned steps on a device: translates a StepPlan into a Batch, walks the decoder, gives back choices.
// Submit and collect are apart, so that a device may be several steps behind: depth 1 on a CPU, 2 on a GPU. Steps run
// one after the other as they were submitted, the block operations of each behind the step before.
// Shape   at most limits().max_rows rows and max_sequences sequences a step.
// Owner   the engine; the plan is copied where it must outlive submit(), but for what it says is borrowed.
// Thread  engine.
// Fails   a plan that passes the limits is our bug (CHECK).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/tensors.h"
#include "core/base/thread_role.h"
#include "core/flow/step_choice.h"
#include "core/flow/step_plan.h"

namespace quire::model {

class Runner {
 public:
  virtual ~Runner() = default;
  // Starts the step on the device. Not when full().
  virtual void submit(const flow::StepPlan& plan) REQUIRES(engine_role) = 0;
  // Waits for the oldest submitted step; one choice per logits row, in plan order. Valid until the next submit().
  virtual std::span<const flow::StepChoice> collect() REQUIRES(engine_role) = 0;

  // Of the step collected last, for plan.sequences[planned] with wants_accumulated_scores: how much attention its rows
  // paid to each group of
  // 16 positions, all layers and heads together, as integers, so that the sum over rows has no order. [ceil(length /
  // 16)].
  virtual std::span<const std::uint64_t> accumulated_scores(std::size_t /*planned*/) const { return {}; }

  // Of the step collected last, for plan.sequences[planned]: the hidden states of its num_pooled last rows, as the
  // model's final norm leaves them. [num_pooled, hidden_width()], valid until the next submit().
  virtual std::span<const float> pooled(std::size_t /*planned*/) const { return {}; }
  virtual std::uint32_t hidden_width() const { return 0; }  // E; 0: it tells none

  // Of the step collected last, by row: the states that a drafter asked for (speculate::Needs), or null. Valid until
  // the next submit().
  virtual const backend::Buffer* states() const { return nullptr; }

  virtual bool idle() const = 0;  // nothing submitted and not collected
  virtual bool full() const = 0;  // depth steps are in flight

  // K and V of one row, by slot, all layers: of a draft's path that was taken, to where its position is. Behind every
  // step that was collected, before the next one.
  virtual void copy_row(std::uint32_t /*from*/, std::uint32_t /*to*/) REQUIRES(engine_role) {}

  // A block's content as bytes, all layers and its tail: what saving and swapping move. Only while idle().
  virtual std::size_t block_bytes() const { return 0; }
  virtual void read_block(BlockId /*block*/, std::span<std::byte> /*out*/) REQUIRES(engine_role) {}
  virtual void write_block(BlockId /*block*/, std::span<const std::byte> /*bytes*/) REQUIRES(engine_role) {}
};

}  // namespace quire::model
