// A grammar ready to be matched against a vocabulary: an automaton over bytes, and the token masks found so far: compile() finds
// those of short texts.
// Owner   shared_ptr<const Grammar>, which holds its Vocabulary. Every sequence that it governs shares it.
// Thread  compile(): any, and the end of its last owner. Matchers of one Grammar: one thread at a time (the engine's), for they
//         share masks(), which is not locked.
// Fails   compile(): kTimeout beyond max_time of the processor. kInvalidArgument (no param: the caller knows the field) for an undefined rule, left recursion, a grammar
//         that no text matches, a repetition of more than 256 of what may be empty, and beyond the other limit. What
//         matches nothing is dropped where something else does.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/result.h"
#include "core/grammar/rules.h"
#include "core/grammar/vocabulary.h"

namespace quire::grammar {

struct CompileLimits {
  std::uint32_t max_states = 200'000;
  std::chrono::milliseconds max_time{2'000};
  std::function<bool()> is_dropped{};  // nobody waits for it any more: it ends as where its time is over
};

struct Automaton;  // automaton/automaton.h
class Masks;       // automaton/masks.h

class Grammar {
 public:
  static Result<std::shared_ptr<const Grammar>> compile(const Rules& rules,
                                                        std::shared_ptr<const Vocabulary> vocabulary,
                                                        const CompileLimits& limits = {});
  ~Grammar();

  // About what it holds: its automaton, and the most that its masks may become.
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
