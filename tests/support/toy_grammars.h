// Grammars small enough to be told by hand, over a vocabulary of strings of a and b: as rules for the compiler, and as
// predicates of a text, which is what the matcher is compared with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "core/grammar/grammar.h"
#include "tests/support/patient.h"
#include "tests/support/toy_model.h"

namespace quire::testing {

// Token 0 is a, 1 is b; of the others most are longer, and a few say nothing. With three tokens and more the last one ends.
inline std::shared_ptr<const grammar::Vocabulary> toy_vocabulary(std::uint32_t vocab) {
  std::vector<std::string> pieces(vocab);
  for (std::uint32_t token = 0; token < vocab; ++token) {
    const std::uint64_t bits = toy_mix(17, token);
    for (std::uint64_t i = 0; token > 1 && i < bits % 5; ++i) pieces[token] += (bits >> (8 + i) & 1) != 0 ? 'a' : 'b';
  }
  pieces[0] = "a";
  pieces[1] = "b";
  std::vector<TokenId> ends;
  if (vocab >= 3) {
    ends.push_back(static_cast<TokenId>(vocab - 1));
    pieces.back().clear();
  }
  return std::make_shared<const grammar::Vocabulary>(std::move(pieces), std::move(ends));
}

inline constexpr int kNumToyGrammars = 3;

struct ToyText {
  bool begins = false;    // it is a text of the grammar, or the beginning of one
  bool complete = false;  // a text
  bool ends = false;      // and the beginning of no other
};

// 1: three to eight letters. 2: ab, any number of times. 3: a^n b^n.
inline ToyText toy_text(int number, std::string_view text) {
  const std::size_t length = text.size();
  const std::size_t num_a = std::min(text.find('b'), length);
  switch (number) {
    case 1:
      return {length <= 8, length >= 3 && length <= 8, length == 8};
    case 2: {
      bool alternates = true;
      for (std::size_t i = 0; i < length; ++i) alternates = alternates && text[i] == (i % 2 == 0 ? 'a' : 'b');
      return {alternates, alternates && length % 2 == 0, false};
    }
    default: {
      const bool begins = text.find('a', num_a) == std::string_view::npos && length - num_a <= num_a;
      return {begins, begins && length == 2 * num_a, begins && length == 2 * num_a && length > 0};
    }
  }
}

inline std::shared_ptr<const grammar::Grammar> toy_grammar(int number,
                                                           std::shared_ptr<const grammar::Vocabulary> vocabulary) {
  grammar::Rules rules;
  const grammar::RuleId root = rules.declare("root");
  if (number == 1) {
    const grammar::Expr letters[] = {rules.bytes("a"), rules.bytes("b")};
    rules.define(root, rules.repeat(rules.choice(letters), 3, 8));
  } else if (number == 2) {
    rules.define(root, rules.repeat(rules.bytes("ab"), 0, grammar::kUnbounded));
  } else {
    const grammar::Expr nested[] = {rules.bytes("a"), rules.use(root), rules.bytes("b")};
    const grammar::Expr either[] = {rules.sequence(nested), rules.bytes("")};
    rules.define(root, rules.choice(either));
  }
  auto compiled = grammar::Grammar::compile(rules, std::move(vocabulary), kPatient);
  CHECK(compiled.ok());
  return *compiled;
}

// As a request's grammar would have it: whether the token may come behind the text.
inline bool toy_allows(int number, const grammar::Vocabulary& vocabulary, const std::string& text, TokenId token) {
  for (const TokenId end : vocabulary.ends()) {
    if (token == end) return toy_text(number, text).complete;
  }
  const std::string_view piece = vocabulary.piece(token);
  return !piece.empty() && toy_text(number, text + std::string(piece)).begins;
}

}  // namespace quire::testing
