// Runs step plans on a decoder: block ops, plan → batch, forward, then the choices by sequence. As many steps are in
// flight as StepOps::depth() allows. Hidden states, logits and accumulated attention scores can be read while none is.
// Shape   N groups of layers. At most max_rows rows and max_sequences sequences a step, each sequence up to the
//         decoder's max_model_len.
// Owner   the engine. Ops and Decoder must outlive it. Owns the cache, host blocks and buffers; the constructor makes
//         all.
// Thread  engine, after start. submit() and collect() do not allocate, except for accumulated attention scores when a
//         step needs more of them than any before.
// Fails   StartError from the constructor (no memory); a plan beyond the limits is our bug: CHECK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/backend/ops.h"
#include "core/model/decoder.h"
#include "core/model/run/kv_groups.h"
#include "core/model/run/runner.h"

namespace quire::model {

struct RunnerLimits {
  std::uint32_t max_rows = 512;
  std::uint32_t max_sequences = 64;   // also the number of residual groups (int4)
  std::uint32_t max_logits_rows = 0;  // logits rows, rows that score a given token included; 0: max_sequences
  std::uint32_t block_tokens = 16;    // P, a multiple of 16
  std::uint32_t num_blocks = 0;
  backend::KvType kv_dtype = backend::KvType::kF32;
  std::uint32_t num_swap_blocks = 0;     // host blocks for BlockOp::kSwapOut and kSwapIn
  std::uint32_t num_scratch_blocks = 0;  // cache blocks after num_blocks, for drafters that run the target model
  Captures captures{};                   // Runner::states()
  KvGroups groups{};                     // of the decoder's layers; without any: one group of all layers
};

class DecoderRunner final : public Runner {
 public:
  DecoderRunner(backend::Ops& ops, const Decoder& decoder, const RunnerLimits& limits);

  void submit(const flow::StepPlan& plan) override REQUIRES(engine_role);
  std::span<const flow::StepChoice> collect() override REQUIRES(engine_role);
  std::span<const std::uint64_t> accumulated_scores(std::size_t planned) const override;
  std::span<const float> pooled(std::size_t planned) const override;
  std::uint32_t hidden_width() const override { return decoder_.config().embedding; }
  const backend::Buffer* states() const override { return workspace_.states.get(); }
  bool idle() const override { return num_in_flight_ == 0; }
  bool full() const override { return num_in_flight_ == flights_.size(); }

  void copy_rows(std::span<const backend::RowCopy> copies) override REQUIRES(engine_role);
  std::size_t block_bytes() const override { return cache_->block_bytes(); }
  void read_block(BlockId block, std::span<std::byte> out) override REQUIRES(engine_role);
  void write_block(BlockId block, std::span<const std::byte> bytes) override REQUIRES(engine_role);

  // Logits [R,V] of the step collected last, logits rows in plan order. For tests and tools.
  void read_logits(std::span<float> out);

  const RunnerLimits& limits() const { return limits_; }
  std::size_t kv_bytes() const { return cache_->bytes(); }
  backend::KvCache& cache() { return *cache_; }

 private:
  void check(const flow::StepPlan& plan) const;
  void check(const flow::StepPlan& plan, const flow::PlannedSequence& sequence) const;
  void check(const flow::BlockOp& op) const;
  bool may_look_at(const flow::StepPlan& plan, const flow::PlannedSequence& sequence, std::uint32_t group,
                   std::uint32_t table_index) const;
  void run(std::span<const flow::BlockOp> ops);
  void run(const flow::BlockOp& op);
  void use_residual_groups(const flow::StepPlan& plan);
  std::span<std::byte> swap_block(std::uint32_t index);
  struct Flight;
  static void reserve(Flight& flight, const RunnerLimits& limits, const Decoder& decoder);
  void translate_tables(const flow::StepPlan& plan, Flight& to) const;
  void translate(const flow::StepPlan& plan, Flight& to) const;
  static void translate_draft(const flow::PlannedSequence& planned, Flight& to);
  void forward(const Flight& flight);
  void read_pooled(Flight& flight);
  const Flight& collected() const;

  backend::Ops& ops_;
  const Decoder& decoder_;
  const RunnerLimits limits_;
  std::unique_ptr<backend::KvCache> cache_;
  std::unique_ptr<std::byte[]> swap_;       // [num_swap_blocks, block_bytes]
  std::vector<backend::BlockCopy> copies_;  // of block operations that follow each other
  Workspace workspace_;

  // int4: the state of the residual groups, to CHECK that no sequence continues in another sequence's group.
  struct ResidualGroup {
    std::uint32_t plain_end = 0;  // end of its positions, draft nodes not counted
    std::uint32_t end = 0;        // end of its positions with draft nodes
    std::uint64_t step = 0;       // last step that wrote it
  };
  std::vector<ResidualGroup> residual_groups_;
  std::uint64_t step_ = 0;

  struct PooledRows {
    std::uint32_t first_row = 0;  // in the step
    std::uint32_t num_rows = 0;
    std::size_t begin = 0;  // index in Flight::pooled
  };
  // A step in flight, copied from its plan. Vectors are reserved once and do not grow, but for accumulated_scores.
  struct Flight {
    std::vector<TokenId> tokens;                   // [T]
    std::vector<std::uint32_t> positions;          // [T]
    std::vector<std::uint32_t> slots;              // [N, T]
    std::vector<backend::SequenceRows> sequences;  // [S]
    std::vector<BlockId> block_tables;             // [N, tables of all sequences]
    std::vector<std::uint16_t> kept_groups;
    std::vector<std::uint64_t> ancestors;         // of draft trees that are not chains
    std::vector<backend::FedRow> fed;             // rows that take a token sampled in the previous step
    std::vector<backend::LogitsRow> logits_rows;  // [R]
    std::vector<flow::StepChoice> answers;        // [R] submit() sets seq, collect() the rest
    std::vector<backend::Choice> choices;         // [R]
    std::vector<PooledRows> pooled_rows;          // [S]
    std::vector<float> pooled;                    // [pooled rows, W]; reserved, no memory used until rows are pooled
    // Those of all sequences that request them; grows to the longest such step.
    std::vector<std::uint64_t> accumulated_scores;
  };
  std::vector<Flight> flights_;  // [depth] used as a ring
  std::size_t next_flight_ = 0;
  std::size_t num_in_flight_ = 0;
};

}  // namespace quire::model
