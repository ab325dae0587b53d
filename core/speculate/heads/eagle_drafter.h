// Drafter with an EAGLE head (EAGLE-1 to 3), which reads the target's hidden states: chains and dynamic trees, all
// sequences together.
// Calls   observe() stores the head's rows of committed tokens. propose() runs each sequence's last row for the first
//         level, then one batch per further level of the trees. No draft for a sequence that the last step did not run:
//         its feature is lost, and its next step brings a new one.
// Rows    committed tokens: HeadRows. Nodes: in scratch blocks; each node that grows is a sequence of its own in the
//         batch, and its block table ends with blocks of its own, copied from its parent's.
// Owner   app. Ops and the target outlive it.
// Thread  engine. Allocates only for longer sequences and larger steps than any before.
// Fails   StartError from the constructor, with all problems of config and tensors at once.
// Source  EAGLE-2 (Li et al. 2024), EAGLE-3 (Li et al. 2025).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/decoder.h"
#include "core/model/source/model_files.h"
#include "core/speculate/children.h"
#include "core/speculate/drafter.h"
#include "core/speculate/growing_tree.h"
#include "core/speculate/heads/draft_head.h"
#include "core/speculate/heads/head_rows.h"
#include "core/speculate/row_batch.h"

namespace quire::speculate {

struct EagleOptions {
  std::uint32_t width = 4;  // nodes of a level that grow, and children of each; 1: chains
  std::uint32_t max_depth = 5;
  bool shared_noise = true;  // see Children
  std::optional<backend::Format> quantize = std::nullopt;
  backend::KvType kv_dtype = backend::KvType::kBF16;
};

using EagleLimits = RunnerLimits;

class EagleDrafter final : public Drafter {
 public:
  EagleDrafter(backend::Ops& ops, const model::Decoder& target, const model::ModelFiles& files,
               const EagleOptions& options, const EagleLimits& limits);

  // Scratch blocks in the head's cache, after the pool's.
  static std::uint32_t num_scratch_blocks(const EagleOptions& options, const EagleLimits& limits);

  std::string method() const override { return name_of(head_.config().kind); }
  Needs needs() const override;
  void observe(const ObservedStep& step) override REQUIRES(engine_role);
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  void release(SeqId seq, bool ended) override REQUIRES(engine_role);
  void track(std::span<const flow::BlockOp> ops) override REQUIRES(engine_role);

  const DraftHead& head() const { return head_; }

 private:
  // A growing tree.
  struct Grower {
    std::size_t asked = 0;
    const HeadRows::Last* last = nullptr;
    GrowingTree tree{};
    sample::ProposalDistributions distributions{};  // of its nodes, where they are drawn
    std::vector<int> grown{};                       // candidates that were rows of the last batch
    std::uint32_t first_row = 0;                    // of that batch
    std::uint32_t index = 0;
  };

  void choose_growers(std::span<const Asked> asked);
  void run_roots(std::span<const Asked> asked);
  bool run_level(std::span<const Asked> asked, std::uint32_t depth);
  void add_rows(const Asked& asked, Grower& grower, std::span<const int> frontier, std::uint32_t depth);
  void add_children(const Asked& asked, Grower& grower, int parent, std::uint32_t depth, const backend::Choice& choice);
  std::uint32_t num_candidates_to_request(const sample::Params& params, std::uint32_t num_children) const;
  BlockId scratch_block(const Grower& grower, std::size_t row, std::uint32_t depth, std::uint32_t block) const;

  backend::Ops& ops_;
  const EagleOptions options_;
  const EagleLimits limits_;
  const std::uint32_t max_growing_rows_;  // of a level
  const std::uint32_t scratch_per_row_;   // blocks per node in each of two banks; levels alternate
  DraftHead head_;
  HeadRows committed_;

  std::vector<std::uint32_t> picks_;
  RowBatch rows_;
  std::vector<Grower> growers_;
  std::size_t num_growers_ = 0;
  std::uint32_t width_ = 1;  // of this propose()
  std::vector<backend::BlockCopy> copies_;
  std::vector<backend::Choice> choices_;
  Children children_;
};

}  // namespace quire::speculate
