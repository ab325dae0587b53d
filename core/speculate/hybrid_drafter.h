// Two drafters: the first's guess is taken where it promises enough, the second is asked for the others. The first is meant to cost
// nothing (suffix, ngram) and to be very sure at times; the second to know something always (eagle).
//   expected tokens = Σ likely over the guess's nodes
// Shape   the first's tree where it expects more than min_expected, else the second's, or the first's again where that is empty.
// Owner   owns both.
// Thread  engine. Both observe all steps; the second proposes for the sequences that are left to it alone.
// Fails   making one: StartError where the drafters want different states of the target: a step gives one kind.
// Source  SuffixDecoding (Oliaro et al. 2024), 4: the hybrid with a threshold on the score.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/speculate/drafter.h"

namespace quire::speculate {

struct HybridOptions {
  float min_expected = 3.0f;  // tokens, 0..64: near what the second has taken of its guesses on average
};

class HybridDrafter final : public Drafter {
 public:
  HybridDrafter(std::unique_ptr<Drafter> first, std::unique_ptr<Drafter> second, const HybridOptions& options);

  std::string method() const override { return "hybrid"; }
  Needs needs() const override { return needs_; }
  void admit(const Admitted& sequence) override REQUIRES(engine_role);
  void observe(const ObservedStep& step) override REQUIRES(engine_role);
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  void release(SeqId seq, bool ended) override REQUIRES(engine_role);
  void follow(std::span<const flow::BlockOp> ops) override REQUIRES(engine_role);

 private:
  const std::unique_ptr<Drafter> first_;
  const std::unique_ptr<Drafter> second_;
  const float min_expected_;
  const Needs needs_;
  std::vector<std::size_t> left_;  // scratch: of asked[], for the second
  std::vector<Asked> left_asked_;
  std::vector<sample::TokenTree> left_trees_;
};

}  // namespace quire::speculate
