// A model with random weights on the device, and plans for steps of sequences of equal shape.
// Owner   owns files, ops and decoder; the caller owns a runner over it, and destroys it first.
// Thread  main, in the engine's role.
// Fails   StartError: no device, no memory.
#pragma once

#include <cstdint>
#include <memory>

#include "core/flow/step_plan.h"
#include "core/model/decoder.h"
#include "core/model/run/decoder_runner.h"
#include "tools/gpu_measure/measured_ops.h"
#include "tools/gpu_measure/model_shapes.h"
#include "tools/gpu_measure/stages.h"

namespace quire::gpu::measure {

class MeasuredModel {
 public:
  MeasuredModel(const Setup& setup, std::uint32_t max_rows, std::uint32_t max_positions,
                std::uint32_t max_table_entries, std::uint32_t capture = 0);

  Device& device() { return *device_; }
  MeasuredOps& ops() { return *ops_; }
  const ModelShape& shape() const { return shape_; }
  // A runner with room for `sequences` sequences of `length` tokens, its cache filled with random numbers.
  std::unique_ptr<model::DecoderRunner> runner(std::uint32_t sequences, std::uint32_t length);
  // Bytes of that runner's KV cache.
  std::uint64_t kv_bytes(std::uint32_t sequences, std::uint32_t length) const;
  // Minimum bytes and flops of a step: all weights that it reads, K and V of its sequences.
  Cost cost_of_step(std::uint32_t sequences, std::uint32_t rows_each, std::uint32_t positions) const;

 private:
  Setup setup_;
  ModelShape shape_;
  std::uint32_t max_rows_;
  Device* device_ = nullptr;
  std::unique_ptr<MeasuredOps> ops_;
  std::unique_ptr<model::Decoder> decoder_;
};

// Rows of one sequence in a plan: the last `num_rows` of `positions`. Sequence s has its own blocks for `length`
// tokens.
struct PlannedRows {
  std::uint32_t sequence = 0;
  std::uint32_t num_rows = 1;
  std::uint32_t positions = 1;
};
flow::StepPlan plan_of(std::span<const PlannedRows> rows, std::uint32_t length, std::uint32_t vocab);
flow::StepPlan plan_alike(std::uint32_t sequences, std::uint32_t rows_each, std::uint32_t positions,
                          std::uint32_t length, std::uint32_t vocab);

// Seconds of a step on the wall clock.
double seconds_of_step(model::DecoderRunner& runner, const flow::StepPlan& plan) REQUIRES(engine_role);

}  // namespace quire::gpu::measure
