// Drafter that refines another drafter's chain with the target itself, run over a part of its context. Its draft is
// what the target would generate if it saw only that part.
//   the other's chain -> one sparse target step with a sampled token after each row -> the sampled tokens as far as
//   the chain agrees with them, and the first one that differs
// Shape   a chain of 1 + the number of right draft tokens of the other, at most max_depth.
// Owner   owns the other drafter. Ops, Decoder and the target's cache outlive it; the cache has num_scratch_blocks()
//         blocks after the pool's, and only these are written.
// Thread  engine.
// Fails   StartError: a window of 0 positions, int4 KV. No draft for a sequence that would attend to a dropped block.
// Source  TriForce (Sun et al. 2024): small model, sparse self-draft, full target. Here one inner round per outer
//         round, sinks and a window in place of retrieved chunks, and acceptance by match inside as outside.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/decoder.h"
#include "core/speculate/drafter.h"
#include "core/speculate/models/draft_cache.h"
#include "core/speculate/models/draft_children.h"
#include "core/speculate/models/model_drafter.h"
#include "core/speculate/models/sparse_context.h"
#include "core/speculate/row_batch.h"

namespace quire::speculate {

class TriforceDrafter final : public Drafter {
 public:
  TriforceDrafter(backend::Ops& ops, const model::Decoder& target, backend::KvCache& cache,
                  std::unique_ptr<Drafter> first, const ModelDraftLimits& limits, const SparseContext& context,
                  bool shared_noise = true);

  static std::uint32_t num_scratch_blocks(const ModelDraftLimits& limits);

  std::string method() const override { return "triforce"; }
  Needs needs() const override { return first_->needs(); }
  void admit(const Admitted& sequence) override REQUIRES(engine_role) { first_->admit(sequence); }
  void observe(const ObservedStep& step) override REQUIRES(engine_role) { first_->observe(step); }
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  void release(SeqId seq, bool ended) override REQUIRES(engine_role) { first_->release(seq, ended); }
  void track(std::span<const flow::BlockOp> ops) override REQUIRES(engine_role) { first_->track(ops); }

 private:
  // One sequence in the step: its root row and the draft tokens after it.
  struct Run {
    std::uint32_t asked;
    std::uint32_t branch_slot;
    std::uint32_t num_draft_tokens;
    std::uint32_t first_choice;
  };

  void draft(std::span<const Asked> asked) REQUIRES(engine_role);
  std::size_t look_through(std::span<const Asked> asked, std::span<sample::TokenTree> trees, std::size_t from)
      REQUIRES(engine_role);
  void add_run(const Asked& asked, const sample::TokenTree& chain, Run& run) REQUIRES(engine_role);
  void accept(const Run& run, const Asked& asked, sample::TokenTree& tree);
  sample::Params params_of(const Asked& asked) const;

  backend::Ops& ops_;
  const model::Decoder& target_;
  const std::unique_ptr<Drafter> first_;
  const ModelDraftLimits limits_;
  const SparseContext context_;
  const bool shared_noise_;
  DraftCache cache_;
  std::uint32_t widest_window_;
  model::Workspace workspace_;
  RowBatch batch_;
  Children children_;

  // Scratch of one call.
  std::vector<Asked> shallow_;             // copy of `asked` for the other drafter
  std::vector<sample::TokenTree> drafts_;  // [asked] a chain each
  std::vector<Run> runs_;
  std::vector<backend::Choice> choices_;
};

}  // namespace quire::speculate
