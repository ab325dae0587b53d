// What a request's rules make of one sequence's tokens so far: a function of the prompt and the answer, kept up to date
// token by token.
// Shape   one Edit for every token that has a bias, or was seen where penalties ask for that; room for all that may come is
//         taken when made. append() costs a look-up, and a comparison for every bad word.
// Owner   a sequence. Edits are good until the next append().
// Thread  one at a time (the engine's). append() does not allocate.
// Source  rules.h. Bad words are looked for in the answer alone, as vLLM does it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/sample/edits.h"
#include "core/sample/rules.h"

namespace quire::sample {

class Adjustment {
 public:
  // `ends`: the tokens that end the answer, forbidden before min_tokens. `answer`: what was said before it is made.
  Adjustment(std::shared_ptr<const Rules> rules, std::span<const TokenId> prompt, std::vector<TokenId> ends,
             std::uint32_t max_tokens, std::span<const TokenId> answer = {});

  // The last token of `answer` has been said.
  void append(std::span<const TokenId> answer);
  // Of the next token.
  Edits edits() const;

 private:
  Edit& edit_of(TokenId token);
  void count(TokenId token);
  void forbid(std::span<const TokenId> answer);

  const std::shared_ptr<const Rules> rules_;
  const std::vector<TokenId> ends_;
  const bool penalises_;    // what was said changes edits
  std::vector<Edit> each_;  // reserved
  std::vector<std::uint32_t>
      places_;  // open addressing: 1 + index into each_, 0 where nothing is; a power of two of them
  std::vector<std::uint32_t> allowed_;  // [up to the highest one]
  std::vector<TokenId> forbidden_;      // reserved
};

}  // namespace quire::sample
