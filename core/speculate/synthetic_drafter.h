// Guesses that are right as often as it is told, at a cost as it is told: to measure what verifying brings, whatever a model
// says. It is given the answers beforehand.
// Shape   chains; a guess is right with chance alpha if all before it are, and nothing is right behind a wrong one.
// Owner   a bench; it outlives what it is given.
// Thread  engine; answers are told while nothing runs.
// Source  the drafting cost and acceptance of Leviathan et al. 2023, section 3.2, as two numbers.
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
  double seconds_per_node = 0;  // of a call: by the most nodes that a sequence asks for
  std::uint32_t vocab = 2;      // wrong guesses are below it
  std::uint64_t seed = 1;
};

class SyntheticDrafter final : public Drafter {
 public:
  // `burn` spends so many seconds; none: it turns in a loop for as long.
  explicit SyntheticDrafter(const SyntheticOptions& options, std::function<void(double)> burn = nullptr);

  // What is said to this prompt without drafts. Sequences with other prompts get no guesses.
  void tell(std::vector<TokenId> prompt, std::vector<TokenId> answer);
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
  void guess(const Known& known, const Asked& asked, sample::TokenTree& tree);

  SyntheticOptions options_;
  const std::function<void(double)> burn_;
  std::mt19937_64 random_;
  std::map<std::vector<TokenId>, std::vector<TokenId>> answers_;  // by prompt
  std::unordered_map<SeqId, Known> sequences_;
};

}  // namespace quire::speculate
