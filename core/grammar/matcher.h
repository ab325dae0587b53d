// The position of one sequence in its grammar: which tokens may come next.
// Shape   mask [V/32 words; words beyond become 0]: bit t % 32 of word t / 32 is token t. It is set if and only if
//         accept(t) would succeed. The mask is empty
//           if the vocabulary has no token for what the grammar requires next;
//           after a text that can be parsed in more than 2000 ways (kMaxStacks): accept() takes the token that leads
//             there, but follows the text no further;
//           if it would take too long to find (kMaxMaskWork).
//         After the last two, nothing is accepted any more.
// Owner   a sequence; copied when a sequence forks. Memory grows with the nesting depth of the text; copy assignment
//         reuses the memory of its target.
// Thread  one at a time (the engine's), for all Matchers of one Grammar.
// Fails   never: accept() returns false for a token that is not allowed, and then changes nothing.
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

  bool accept(TokenId token);  // a token that ends the answer is accepted if complete(), and changes nothing
  void allowed(std::span<std::uint32_t> mask);  // overwrites the whole mask
  bool complete() const;                        // the text so far matches the grammar
  bool only_ends() const;                       // complete(), and nothing may follow

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quire::grammar
