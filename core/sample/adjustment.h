// The logit edits that a request's rules make for one sequence's next token: a function of the prompt and the answer so
// far, updated token by token.
// Shape   one Edit for each token that has a bias, or that was seen and is penalised; the constructor reserves room for
//         all that max_tokens may add. append() costs one hash look-up and one comparison for each bad word.
// Owner   a sequence. The spans of edits() are valid until the next append().
// Thread  one at a time (the engine's). append() does not allocate.
// Source  rules.h. Bad words are matched in the answer only, as in vLLM.
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
  // `ends`: the tokens that end the answer, forbidden before min_tokens. `answer`: the tokens generated so far.
  Adjustment(std::shared_ptr<const Rules> rules, std::span<const TokenId> prompt, std::vector<TokenId> ends,
             std::uint32_t max_tokens, std::span<const TokenId> answer = {});

  // Counts the token just generated, answer.back(); `answer` is the whole answer so far.
  void append(std::span<const TokenId> answer);
  // The edits of the next token's logits.
  Edits edits() const;

 private:
  Edit& edit_of(TokenId token);
  void count(TokenId token);
  void forbid(std::span<const TokenId> answer);

  const std::shared_ptr<const Rules> rules_;
  const std::vector<TokenId> ends_;
  const bool penalises_;    // a penalty is on, so generated tokens change edits
  std::vector<Edit> each_;  // reserved
  // Hash table with open addressing, token -> 1 + index into each_, 0 if free; the size is a power of two.
  std::vector<std::uint32_t> places_;
  std::vector<std::uint32_t> allowed_;  // bits, up to the highest allowed token; empty: all are allowed
  std::vector<TokenId> forbidden_;      // reserved
};

}  // namespace quire::sample
