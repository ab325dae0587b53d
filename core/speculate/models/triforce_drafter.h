// Another drafter's guesses, looked through by the target itself over a part of its context before the whole of it is asked: what
// comes out is a chain of what the target would say if it saw no more.
//   guesses of the other, a chain -> one sparse step of the target, a choice behind each of its rows -> as far as these agree
//   with the guesses, and the first choice that does not
// Shape   a chain of 1 + as many nodes as the other guessed right, max_depth at most.
// Owner   owns the other. Ops, Decoder and the target's cache outlive it; that has num_scratch_blocks() more blocks than the pool
//         hands out, behind these. Nothing else of it is written.
// Thread  engine.
// Fails   StartError: a window of nothing, an int4 cache. A sequence of which something was dropped that is looked at gets no
//         guesses.
// Source  TriForce (Sun et al. 2024): small model, sparse self, full. Here one inner round for an outer one, sinks and a window in
//         place of retrieved chunks, and sampler match inside as outside.
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
  void follow(std::span<const flow::BlockOp> ops) override REQUIRES(engine_role) { first_->follow(ops); }

 private:
  // A sequence in the step: its root, and the guesses behind it.
  struct Run {
    std::uint32_t asked;
    std::uint32_t place;
    std::uint32_t num_guesses;
    std::uint32_t first_choice;
  };

  void guess(std::span<const Asked> asked) REQUIRES(engine_role);
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

  // Of the call at hand.
  std::vector<Asked> shallow_;              // what the first is asked: one level less
  std::vector<sample::TokenTree> guesses_;  // by asked, a chain each
  std::vector<Run> runs_;
  std::vector<backend::Choice> choices_;
};

}  // namespace quire::speculate
