// Which tokens may come next, and what is remembered so that this is cheap.
// Shape   a token either stays within the rule on top of a stack (or enters others from there), or that rule ends inside the
//         token and what lies below decides. The former depends on the top state alone: it is found once by a walk over the
//         vocabulary's tree and kept; for the latter the walk keeps the nodes at which the rule ended, and goes on from those
//         with the true stack. Short tokens are kept once for all states that are alike (alike.h), long ones are few.
//         Kept tokens are a list where they are few, a mask otherwise. Their room is fixed; when it is full, all are
//         forgotten.
// Owner   Grammar; every sequence that it governs shares it.
// Thread  one at a time: the engine's.
// Source  the split by what tokens depend on is XGrammar's (Dong et al., MLSys 2025); here it is made when a state is first
//         met, not in advance.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/grammar/automaton/automaton.h"
#include "core/grammar/automaton/frontier.h"
#include "core/grammar/automaton/stacks.h"
#include "core/grammar/vocabulary.h"

namespace quire::grammar {

class Masks {
 public:
  Masks(const Automaton& automaton, const Vocabulary& vocabulary);

  // The stacks once `bytes` were read on `tops`. False where the grammar has no such text; then nothing changed. True and none
  // where there are more than kMaxStacks: nothing follows such a text.
  bool advance(Stacks& stacks, std::vector<Stack>& tops, std::string_view bytes);
  // Overwrites `mask` by the tokens that add bytes.
  void allowed(Stacks& stacks, std::span<const Stack> tops, std::span<std::uint32_t> mask);
  Frontier& frontier() { return frontier_; }

 private:
  static constexpr std::uint32_t kIsMask = UINT32_MAX;
  struct Local {
    std::uint32_t round = 0;       // of the room; other than now: forgotten
    std::uint32_t offset = 0;      // into room_: the tokens, then the nodes
    std::uint32_t num_tokens = 0;  // kIsMask: a mask
    std::uint32_t num_nodes = 0;   // of the vocabulary's tree: below these the stack decides
  };

  // Tokens of more than `above` bytes, and up to `upto`.
  struct Lengths {
    std::uint32_t above, upto;
  };

  void add(const Local& known, Stacks& stacks, std::uint32_t below, std::span<std::uint32_t> mask);
  const Local& local(std::vector<Local>& locals, std::uint32_t state, Lengths lengths);
  void keep(Local& local);
  void merge(const Local& local, std::span<std::uint32_t> mask) const;
  // Marks the tokens below `root`, where depth 0 of the frontier is; lists the nodes where the bottom is reached.
  void walk(Stacks& stacks, std::uint32_t root, Lengths lengths, std::span<std::uint32_t> mask,
            std::vector<std::uint32_t>* at_bottom);

  const Automaton& automaton_;
  const Vocabulary& vocabulary_;
  Frontier frontier_;
  Stacks local_stacks_;
  std::vector<Local> short_;  // by state that others are alike to
  std::vector<Local> long_;   // by state
  std::uint32_t round_ = 1;
  std::size_t room_words_;
  std::unique_ptr<std::uint32_t[]> room_;
  std::size_t num_used_ = 0;
  std::vector<std::uint32_t> mask_;   // of the walk that fills a Local
  std::vector<std::uint32_t> nodes_;  // in the same way
};

}  // namespace quire::grammar
