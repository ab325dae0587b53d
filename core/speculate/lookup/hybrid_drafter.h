// Drafter of two: a sequence takes the first drafter's draft if it promises enough, else the second's. The first should
// cost nearly nothing and sometimes be very sure (suffix, ngram); the second should nearly always have a draft (eagle).
//   expected tokens = Σ likely over the draft's nodes
// Shape   the first's tree if it expects more than min_expected tokens; else the second's; if that is empty, the
//         first's.
// Owner   owns both drafters.
// Thread  engine. Both observe every step; the second proposes only for the sequences left to it.
// Fails   construction: StartError if both need states of the target and not the same: a step captures one set.
// Source  SuffixDecoding (Oliaro et al. 2024), section 4: the hybrid with a threshold on the score.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/speculate/drafter.h"

namespace quire::speculate {

struct HybridOptions {
  float min_expected = 3.0f;  // tokens, 0..64: near the second's average number of accepted draft tokens
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
  void track(std::span<const flow::BlockOp> ops) override REQUIRES(engine_role);

 private:
  const std::unique_ptr<Drafter> first_;
  const std::unique_ptr<Drafter> second_;
  const float min_expected_;
  const Needs needs_;
  std::vector<std::size_t> left_;  // scratch: indices into asked[] left to the second drafter
  std::vector<Asked> left_asked_;
  std::vector<sample::TokenTree> left_trees_;
};

}  // namespace quire::speculate
