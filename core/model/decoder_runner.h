// Runs step plans on a decoder, one step at a time: plan → batch, forward, choose; then the choices by sequence.
// Shape   at most max_rows rows and max_sequences sequences a step, each up to the decoder's max_model_len.
// Owner   the engine. Ops and Decoder must outlive it; cache and buffers are its own, all made by the constructor.
// Thread  engine, after start; submit() and collect() do not allocate.
// Fails   StartError from the constructor (no memory); a plan beyond the limits is our bug: CHECK.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/backend/ops.h"
#include "core/model/decoder.h"
#include "core/model/runner.h"

namespace quire::model {

struct RunnerLimits {
  std::uint32_t max_rows = 512;
  std::uint32_t max_sequences = 64;
  std::uint32_t block_tokens = 16;  // P, a multiple of 16
  std::uint32_t num_blocks = 0;
  backend::DType kv_dtype = backend::DType::kF32;  // f32 or bf16
};

class DecoderRunner final : public Runner {
 public:
  DecoderRunner(backend::Ops& ops, const Decoder& decoder, const RunnerLimits& limits);

  void submit(const flow::StepPlan& plan) override REQUIRES(engine_role);
  std::span<const flow::StepChoice> collect() override REQUIRES(engine_role);
  bool idle() const override { return !in_flight_; }
  bool full() const override { return in_flight_; }

  // Logits [R,V] of the step collected last, speakers in plan order: for tests and tools.
  void read_logits(std::span<float> out);
  // Blocks copied whole, all layers. Only while idle().
  void copy_blocks(std::span<const backend::BlockCopy> copies);

  const RunnerLimits& limits() const { return limits_; }
  std::size_t kv_bytes() const { return cache_->bytes(); }

 private:
  void check(const flow::StepPlan& plan) const;
  void translate(const flow::StepPlan& plan);

  backend::Ops& ops_;
  const Decoder& decoder_;
  const RunnerLimits limits_;
  std::unique_ptr<backend::KvCache> cache_;
  Workspace workspace_;
  bool in_flight_ = false;

  // The step in flight, copied out of its plan: reserved once, never grown.
  std::vector<TokenId> tokens_;                   // [T]
  std::vector<std::uint32_t> positions_;          // [T]
  std::vector<std::uint32_t> slots_;              // [T]
  std::vector<backend::SequenceRows> sequences_;  // [S]
  std::vector<BlockId> block_tables_;
  std::vector<backend::Speaker> speakers_;  // [R]
  std::vector<flow::StepChoice> answers_;   // [R] seq filled in by submit(), the rest by collect()
  std::vector<backend::Choice> choices_;    // [R]
};

}  // namespace quire::model
