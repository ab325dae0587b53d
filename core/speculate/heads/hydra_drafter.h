// Drafter with Hydra heads, which see the tokens of a node's path: a tree grows level by level, one head per level, all
// sequences together.
// Calls   observe() stores each sequence's last state, or the prefix layer's rows. propose() starts each tree from that
//         state, or from the prefix layer's output for it, and runs one head per level; a node's input is its parent's
//         input followed by the embedding of its own token. No draft for a sequence that the last step did not run.
// Shape   R growing nodes of a level, of all trees; head i reads [R, (i+2)E].
// Owner   app. Ops and the target outlive it.
// Thread  engine. Allocates for more draft tokens and longer sequences than any before, not for steps.
// Fails   StartError from the constructor, with all problems at once.
// Source  Hydra (Ankner et al. 2024). Ours: dynamic trees as in EAGLE-2 (Li et al. 2024) in place of a fixed tree.
#pragma once

#include <memory>
#include <optional>
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
#include "core/speculate/heads/hydra_head.h"
#include "core/speculate/heads/last_states.h"
#include "core/speculate/heads/row_mover.h"
#include "core/speculate/heads/silu_adder.h"
#include "core/speculate/row_batch.h"

namespace quire::speculate {

struct HydraOptions {
  std::uint32_t width = 4;      // nodes of a level that grow, and children of each; 1: chains
  std::uint32_t max_depth = 4;  // at most the number of heads
  bool shared_noise = true;     // see Children
  std::optional<backend::Format> quantize = std::nullopt;
  backend::KvType kv_dtype = backend::KvType::kBF16;  // of the prefix layer
};

class HydraDrafter final : public Drafter {
 public:
  HydraDrafter(backend::Ops& ops, const model::Decoder& target, const model::ModelFiles& files,
               const HydraOptions& options, const RunnerLimits& limits);

  std::string method() const override { return "hydra"; }
  Needs needs() const override;
  void observe(const ObservedStep& step) override REQUIRES(engine_role);
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  void release(SeqId seq, bool ended) override REQUIRES(engine_role);
  void track(std::span<const flow::BlockOp> ops) override REQUIRES(engine_role);

  std::uint32_t num_heads() const { return static_cast<std::uint32_t>(heads_.size()); }
  // Logits [rows, V] of the head that ran last; for tests.
  void read_logits(std::uint32_t rows, std::span<float> out) const { ops_.read(*logits_, 0, rows, out); }

 private:
  // The Hydra++ layer before the heads.
  struct Prefix {
    Prefix(backend::Ops& ops, const model::Decoder& target, const HeadConfig& config, HeadWeights weights,
           const HeadLimits& head_limits, const RunnerLimits& limits)
        : head(ops, target, config, std::move(weights), head_limits), rows(ops, head, limits) {}
    DraftHead head;
    HeadRows rows;
  };
  // A growing tree.
  struct Grower {
    std::size_t asked = 0;
    std::uint32_t source = 0;  // its row in the last states, or in the prefix's features
    GrowingTree tree{};
    sample::ProposalDistributions distributions{};  // of its nodes, where they are drawn
    std::vector<int> grown{};                       // candidates that are rows of this level
    std::uint32_t first_row = 0;                    // of this level's rows
  };

  HydraDrafter(backend::Ops& ops, const model::Decoder& target, HydraHeads loaded, const HydraOptions& options,
               const RunnerLimits& limits);
  void choose_growers(std::span<const Asked> asked);
  std::optional<std::uint32_t> source_of(const Asked& asked) const;
  const backend::Buffer& run_roots(std::span<const Asked> asked);
  bool add_level(std::span<const Asked> asked, std::uint32_t depth);
  void run_head(const backend::Buffer& before, std::uint32_t index);
  void add_children(std::span<const Asked> asked, std::uint32_t depth);

  backend::Ops& ops_;
  const HydraOptions options_;
  const std::optional<std::uint32_t> boundary_;
  const std::vector<HydraHead> heads_;
  const backend::Weight& embed_;
  const std::uint32_t hidden_;
  const std::uint32_t vocab_;
  const std::uint32_t max_growing_rows_;  // R
  RowMover mover_;
  LastStates last_;
  std::unique_ptr<Prefix> prefix_;  // null: heads read the states themselves
  SiluAdder blocks_;

  std::unique_ptr<backend::Buffer> roots_;                // [R, E] states
  std::vector<std::unique_ptr<backend::Buffer>> inputs_;  // [R, (i+2)E] by head
  // [R, (i+2)E] by head: inputs of the parents, by row of the next head.
  std::vector<std::unique_ptr<backend::Buffer>> parents_;
  std::unique_ptr<backend::Buffer> embedded_;  // [R, E]
  std::unique_ptr<backend::Buffer> x_;         // [R, E]
  std::unique_ptr<backend::Buffer> logits_;    // [R, V]

  std::vector<Grower> growers_;
  std::size_t num_growers_ = 0;
  std::vector<std::uint32_t> picks_;
  RowBatch rows_;
  std::vector<backend::Choice> choices_;
  Children children_;
};

}  // namespace quire::speculate
