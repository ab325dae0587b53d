// Drafter with Medusa heads: one list of candidates per depth, the same below every node, so a tree costs no more than
// a chain. The tree has the likeliest paths, with the tokens of different depths taken as independent.
// Calls   observe() stores each sequence's last state; propose() runs one head per depth, all sequences together. No
//         draft for a sequence that the last step did not run.
// Owner   app. Ops and the target outlive it.
// Thread  engine. Allocates for more draft tokens than any draft before.
// Fails   StartError from the constructor, with all problems at once.
// Source  Medusa (Cai et al. 2024). Ours: a tree chosen anew from the heads' output in place of a fixed one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/decoder.h"
#include "core/model/source/model_files.h"
#include "core/speculate/children.h"
#include "core/speculate/drafter.h"
#include "core/speculate/growing_tree.h"
#include "core/speculate/heads/last_states.h"
#include "core/speculate/heads/medusa_head.h"
#include "core/speculate/heads/row_mover.h"
#include "core/speculate/heads/silu_adder.h"
#include "core/speculate/row_batch.h"

namespace quire::speculate {

struct MedusaOptions {
  std::uint32_t width = 4;      // children of a node; 1: chains
  std::uint32_t max_depth = 8;  // at most the number of heads
  bool shared_noise = true;
  std::optional<backend::Format> quantize = std::nullopt;
};

class MedusaDrafter final : public Drafter {
 public:
  // max_rows, max_sequences: of the target's runner.
  MedusaDrafter(backend::Ops& ops, const model::Decoder& target, const model::ModelFiles& files,
                const MedusaOptions& options, std::uint32_t max_rows, std::uint32_t max_sequences);

  std::string method() const override { return "medusa"; }
  Needs needs() const override { return {.boundaries = {}, .final_norm = true}; }
  void observe(const ObservedStep& step) override REQUIRES(engine_role);
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  void release(SeqId seq, bool ended) override REQUIRES(engine_role);

  std::uint32_t num_heads() const { return static_cast<std::uint32_t>(heads_.heads.size()); }
  // Logits [rows, Vd] of the head that ran last; for tests.
  void read_logits(std::uint32_t rows, std::span<float> out) const { ops_.read(*logits_, 0, rows, out); }

 private:
  struct Grower {
    std::size_t asked = 0;
    std::uint32_t row = 0;  // in the last states
    std::uint32_t max_depth = 0;
    std::uint32_t width = 0;
    std::vector<std::vector<Child>> lists{};             // by depth
    sample::ProposalDistributions list_distributions{};  // of the lists' tokens, where they are drawn
    sample::ProposalDistributions distributions{};       // of the tree's nodes
  };

  void choose_growers(std::span<const Asked> asked);
  void run_head(std::span<const Asked> asked, std::uint32_t index);
  void grow(Grower& grower, const Asked& asked, sample::TokenTree& tree);

  backend::Ops& ops_;
  const MedusaOptions options_;
  const MedusaHeads heads_;
  const backend::Weight& target_output_;
  const std::uint32_t vocab_;  // Vd
  RowMover mover_;
  LastStates last_;
  SiluAdder blocks_;

  std::unique_ptr<backend::Buffer> x_;       // [S, E]
  std::unique_ptr<backend::Buffer> logits_;  // [S, Vd]

  std::vector<std::uint32_t> picks_;
  std::vector<Grower> growers_;
  std::size_t num_growers_ = 0;
  RowBatch rows_;
  std::vector<backend::Choice> choices_;
  Children children_;
  GrowingTree tree_;
};

}  // namespace quire::speculate
