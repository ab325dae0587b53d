// Where one sequence stands in its grammar: which tokens may come next.
// Shape   mask [V/32 words, or more, which become 0]: bit t % 32 of word t / 32 is token t. It holds token t if and only if
//         accept(t) would take it. It holds none where the vocabulary has no token for what the grammar wants next, and behind
//         a text that the grammar can read in more than 2000 ways (kMaxStacks), which accept() takes, but follows no further,
//         nor where it would take too long to find (kMaxMaskWork); then nothing is accepted any more.
// Owner   a sequence; copied where a sequence forks. Memory grows with how deep the text is nested; a Matcher that is assigned
//         to keeps its own.
// Thread  one at a time (the engine's), for all Matchers of one Grammar.
// Fails   nothing: accept() says whether the token was allowed, and changes nothing where it was not.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/base/ids.h"
#include "core/grammar/grammar.h"

namespace quire::grammar {

class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const Grammar> grammar);
  Matcher(const Matcher& other);
  Matcher(Matcher&& other) noexcept;
  Matcher& operator=(const Matcher& other);
  Matcher& operator=(Matcher&& other) noexcept;
  ~Matcher();

  bool accept(TokenId token);                   // a token that ends the answer: where complete(), and changes nothing
  void allowed(std::span<std::uint32_t> mask);  // overwrites all of it
  bool complete() const;                        // the text so far is one of the grammar's
  bool only_ends() const;                       // and nothing may follow

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quire::grammar
