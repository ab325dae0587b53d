// Runs planned steps on a device: translates a StepPlan into a Batch, runs the decoder, returns choices. submit() and
// collect() are separate, so that several steps can be in flight: 1 on a CPU, 2 on a GPU. Steps run in the order of
// submit(); the block operations of each run after the previous step.
// Shape   at most max_rows rows and max_sequences sequences a step (RunnerLimits).
// Owner   the engine. The runner copies what it needs of a plan beyond submit(), but for data that the plan itself
//         borrows (step_plan.h).
// Thread  engine.
// Fails   a plan beyond the limits is our bug (CHECK).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/cache_ops.h"
#include "core/backend/tensors.h"
#include "core/base/thread_role.h"
#include "core/flow/step_choice.h"
#include "core/flow/step_plan.h"

namespace quire::model {

class Runner {
 public:
  virtual ~Runner() = default;
  // Starts the step on the device. Requires !full().
  virtual void submit(const flow::StepPlan& plan) REQUIRES(engine_role) = 0;
  // Waits for the oldest step in flight; returns one choice per logits row, in plan order, valid until the next
  // submit().
  virtual std::span<const flow::StepChoice> collect() REQUIRES(engine_role) = 0;

  // Accumulated attention scores of the step collected last, for plan.sequences[planned] with wants_accumulated_scores:
  // the attention of its rows to each group of 16 positions, summed over layers and heads as integers, so that the sum
  // does not depend on an order. [ceil(length / 16)].
  virtual std::span<const std::uint64_t> accumulated_scores(std::size_t /*planned*/) const { return {}; }

  // Hidden states of the step collected last, for plan.sequences[planned]: those of its num_pooled last rows after the
  // model's final norm, or what the head takes of it. [num_pooled, hidden_width()], valid until the next submit().
  virtual std::span<const float> pooled(std::size_t /*planned*/) const { return {}; }
  virtual std::uint32_t hidden_width() const { return 0; }  // W; 0: pooled() is not supported

  // States of the step collected last, by row, that a drafter requested (speculate::Needs); null if none. Valid until
  // the next submit().
  virtual const backend::Buffer* states() const { return nullptr; }

  virtual bool idle() const = 0;  // nothing submitted and not collected
  virtual bool full() const = 0;  // depth steps are in flight

  // Copies K and V of rows in all layers, by slot, in order: moves accepted draft tokens to their positions' slots.
  // Only while idle().
  virtual void copy_rows(std::span<const backend::RowCopy> /*copies*/) REQUIRES(engine_role) {}

  // A block's content as bytes, all layers, for saving the cache to a file. Only while idle().
  virtual std::size_t block_bytes() const { return 0; }
  virtual void read_block(BlockId /*block*/, std::span<std::byte> /*out*/) REQUIRES(engine_role) {}
  virtual void write_block(BlockId /*block*/, std::span<const std::byte> /*bytes*/) REQUIRES(engine_role) {}
};

}  // namespace quire::model
