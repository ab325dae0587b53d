// Runs step plans on a decoder: block ops, plan → batch, forward, choose; then the choices by sequence. As many steps
// at a time as its ops can have in flight; hidden states, logits and accumulated scores can be looked at while nothing
// else is.
// Shape   at most max_rows rows and max_sequences sequences a step, each up to the decoder's max_model_len.
// Owner   the engine. Ops and Decoder must outlive it; cache, host blocks and buffers are its own, all made by the
//         constructor.
// Thread  engine, after start; submit() and collect() do not allocate, but for the longest step yet that wants
//         accumulated scores.
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
#include "core/model/runner.h"

namespace quire::model {

struct RunnerLimits {
  std::uint32_t max_rows = 512;
  std::uint32_t max_sequences = 64;  // also the number of open groups (int4)
  std::uint32_t max_logit_rows = 0;  // logits rows, or whose scores are wanted; 0: max_sequences
  std::uint32_t block_tokens = 16;   // P, a multiple of 16
  std::uint32_t num_blocks = 0;
  backend::KvType kv_dtype = backend::KvType::kF32;
  std::uint32_t num_swap_blocks = 0;     // host blocks for BlockOp::kSwapOut and kSwapIn
  std::uint32_t num_extra_layers = 0;    // of a draft model, in the same blocks
  std::uint32_t tail_bytes = 0;          // of a block
  std::uint32_t num_scratch_blocks = 0;  // of the cache behind those, for who drafts with the target itself
  Captures captures{};                   // Runner::states()
};

class DecoderRunner final : public Runner {
 public:
  DecoderRunner(backend::Ops& ops, const Decoder& decoder, const RunnerLimits& limits);

  void submit(const flow::StepPlan& plan) override REQUIRES(engine_role);
  std::span<const flow::StepChoice> collect() override REQUIRES(engine_role);
  std::span<const std::uint64_t> accumulated_scores(std::size_t planned) const override;
  std::span<const float> pooled(std::size_t planned) const override;
  std::uint32_t hidden_width() const override { return decoder_.config().hidden; }
  const backend::Buffer* states() const override { return workspace_.states.get(); }
  bool idle() const override { return num_in_flight_ == 0; }
  bool full() const override { return num_in_flight_ == flights_.size(); }

  void copy_row(std::uint32_t from, std::uint32_t to) override REQUIRES(engine_role);
  std::size_t block_bytes() const override { return cache_->block_bytes(); }
  void read_block(BlockId block, std::span<std::byte> out) override REQUIRES(engine_role);
  void write_block(BlockId block, std::span<const std::byte> bytes) override REQUIRES(engine_role);

  // Logits [R,V] of the step collected last, logits rows in plan order: for tests and tools.
  void read_logits(std::span<float> out);

  const RunnerLimits& limits() const { return limits_; }
  std::size_t kv_bytes() const { return cache_->bytes(); }
  backend::KvCache& cache() { return *cache_; }

 private:
  void check(const flow::StepPlan& plan) const;
  void check(const flow::StepPlan& plan, const flow::PlannedSequence& sequence) const;
  void check(const flow::BlockOp& op) const;
  bool may_look_at(const flow::StepPlan& plan, const flow::PlannedSequence& sequence, std::uint32_t table_index) const;
  void run(const flow::BlockOp& op);
  void use_open_groups(const flow::StepPlan& plan);
  std::span<std::byte> swap_block(std::uint32_t index);
  struct Flight;
  static void reserve(Flight& flight, const RunnerLimits& limits, const Decoder& decoder);
  void translate(const flow::StepPlan& plan, Flight& to) const;
  static void translate_draft(const flow::PlannedSequence& planned, Flight& to);
  void forward(const Flight& flight);
  void read_pooled(Flight& flight);
  const Flight& collected() const;

  backend::Ops& ops_;
  const Decoder& decoder_;
  const RunnerLimits limits_;
  std::unique_ptr<backend::KvCache> cache_;
  std::unique_ptr<std::byte[]> swap_;  // [num_swap_blocks, block_bytes]
  Workspace workspace_;
  std::uint32_t widest_window_ = 0;  // positions that some layer sees; 0: all

  // int4: what the open groups hold, so that no sequence goes on in one that is not its own.
  struct OpenGroup {
    std::uint32_t plain_end = 0;  // the position after the last row in it that was no guess
    std::uint32_t end = 0;        // and after those
    std::uint64_t step = 0;       // that wrote it last
  };
  std::vector<OpenGroup> open_groups_;
  std::uint64_t step_ = 0;

  struct PooledRows {
    std::uint32_t first_row = 0;  // in the step
    std::uint32_t num_rows = 0;
    std::size_t begin = 0;  // in pooled
  };
  // A step in flight, copied out of its plan: reserved once, never grown.
  struct Flight {
    std::vector<TokenId> tokens;                   // [T]
    std::vector<std::uint32_t> positions;          // [T]
    std::vector<std::uint32_t> slots;              // [T]
    std::vector<backend::SequenceRows> sequences;  // [S]
    std::vector<BlockId> block_tables;
    std::vector<std::uint16_t> kept_groups;
    std::vector<std::uint64_t> ancestors;         // of drafts that are no chains
    std::vector<backend::FedRow> fed;             // rows whose tokens the step before says
    std::vector<backend::LogitsRow> logits_rows;  // [R]
    std::vector<flow::StepChoice> answers;        // [R] seq filled in by submit(), the rest by collect()
    std::vector<backend::Choice> choices;         // [R]
    std::vector<PooledRows> pooled_rows;          // [S]
    std::vector<float> pooled;                    // [rows that are pooled, E]; reserved, untouched until somebody pools
    std::vector<std::uint64_t> accumulated_scores;  // of all sequences that want them; grows with the longest such step
  };
  std::vector<Flight> flights_;  // [depth] in turn
  std::size_t next_flight_ = 0;
  std::size_t num_in_flight_ = 0;
};

}  // namespace quire::model
