// A compiled grammar: an automaton over bytes, the vocabulary that it is matched against, and a cache of token masks.
// compile() already finds the masks of short texts.
// Owner   shared_ptr<const Grammar>, which owns the automaton and the masks and shares the Vocabulary. All sequences
//         that it governs share it.
// Thread  compile() and destruction: any. Matchers of one Grammar: one thread at a time (the engine's), because they
//         share masks(), which is not locked.
// Fails   compile(): kTimeout after max_time of processor time, or if is_dropped() returns true. kInvalidArgument (no
//         param: the caller knows the field) for an undefined rule, left recursion, a grammar that no text matches,
//         expressions nested more than 1000 deep, a repetition of more than 256 of something that may be empty, and
//         beyond max_states. An expression that matches nothing is dropped if there is an alternative to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/result.h"
#include "core/grammar/rules/compile_limits.h"
#include "core/grammar/rules/rules.h"
#include "core/grammar/rules/vocabulary.h"

namespace quire::grammar {

struct Automaton;  // automaton/automaton.h
class Masks;       // automaton/masks.h

class Grammar {
 public:
  static Result<std::shared_ptr<const Grammar>> compile(const Rules& rules,
                                                        std::shared_ptr<const Vocabulary> vocabulary,
                                                        const CompileLimits& limits = {});
  ~Grammar();

  // Its approximate memory: the automaton, and the most that the masks may take.
  std::size_t num_bytes() const;

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const Automaton& automaton() const { return *automaton_; }
  Masks& masks() const { return *masks_; }

 private:
  Grammar(std::shared_ptr<const Vocabulary> vocabulary, std::unique_ptr<const Automaton> automaton);
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::unique_ptr<const Automaton> automaton_;
  std::unique_ptr<Masks> masks_;
};

}  // namespace quire::grammar
