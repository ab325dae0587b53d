// Drafter with a given acceptance rate and a given cost, to measure the speedup of verification independently of a
// model. The right answers are given to it beforehand.
// Shape   chains. A draft token is right with probability alpha if all before it are right; after a wrong one all are
//         wrong.
// Owner   the benchmark; it outlives the engine that borrows it.
// Thread  engine; add_answer() only while no sequence is admitted.
// Source  Leviathan et al. 2023, section 3.2: acceptance rate and drafting cost as two parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/speculate/drafter.h"

namespace quire::speculate {

struct SyntheticOptions {
  double alpha = 0.75;
  double seconds_per_node = 0;  // of a propose() call, times the nodes of its largest draft
  std::uint32_t vocab = 2;      // wrong draft tokens are below it
  std::uint64_t seed = 1;
};

class SyntheticDrafter final : public Drafter {
 public:
  // `burn(s)` spends s seconds; null: a busy loop does.
  explicit SyntheticDrafter(const SyntheticOptions& options, std::function<void(double)> burn = nullptr);

  // Adds the answer that the target gives to this prompt. Sequences with other prompts get no draft.
  void add_answer(std::vector<TokenId> prompt, std::vector<TokenId> answer);
  void set_seconds_per_node(double seconds) { options_.seconds_per_node = seconds; }

  std::string method() const override { return "synthetic"; }
  void admit(const Admitted& sequence) override;
  void observe(const ObservedStep& /*step*/) override {}
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override;
  void release(SeqId seq, bool ended) override;

 private:
  struct Known {
    std::size_t prompt_tokens = 0;
    const std::vector<TokenId>* answer = nullptr;
  };
  void draft(const Known& known, const Asked& asked, sample::TokenTree& tree);

  SyntheticOptions options_;
  const std::function<void(double)> burn_;
  std::mt19937_64 random_;
  std::map<std::vector<TokenId>, std::vector<TokenId>> answers_;  // by prompt
  std::unordered_map<SeqId, Known> sequences_;
};

}  // namespace quire::speculate
