// Random grammars, texts and vocabularies over the letters a, b and c.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/grammar/rules/rules.h"
#include "core/grammar/rules/vocabulary.h"

namespace quire::grammar::testing {

class RandomGrammar {
 public:
  explicit RandomGrammar(std::uint64_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t n) { return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random_); }

  std::string text(std::uint32_t longest) {
    std::string out;
    for (std::uint32_t n = below(longest + 1); out.size() < n;) out.push_back(static_cast<char>('a' + below(3)));
    return out;
  }

  // The letters, other bytes, random texts (some of them twice, some empty), and two tokens that end.
  std::shared_ptr<const Vocabulary> vocabulary() {
    std::vector<std::string> pieces = {"a", "b", "c", "x", "\xFF"};
    for (int i = 0; i < 40; ++i) pieces.push_back(text(5));
    pieces.push_back("ab");
    const auto end = static_cast<TokenId>(pieces.size());
    pieces.insert(pieces.end(), {"</s>", ""});
    return std::make_shared<const Vocabulary>(std::move(pieces), std::vector<TokenId>{end, end + 1});
  }

  // May be left recursive, empty, ambiguous, anything.
  Rules rules() {
    Rules rules;
    const std::uint32_t num_rules = 1 + below(5);
    for (std::uint32_t r = 0; r < num_rules; ++r) rules.declare("r" + std::to_string(r));
    for (std::uint32_t r = 0; r < num_rules; ++r) rules.define(r, expression(rules, 4));
    return rules;
  }

 private:
  Expr expression(Rules& rules, std::uint32_t depth) {
    const std::uint32_t kind = below(depth == 0 ? 4 : 10);
    if (kind == 0) return rules.bytes(text(3));
    if (kind == 1) {
      ByteSet set;
      for (std::size_t c = 'a'; c <= 'c'; ++c) set[c] = below(2) == 0;
      return rules.byte_set(set);
    }
    if (kind < 4) return rules.use(below(static_cast<std::uint32_t>(rules.rules().size())));
    if (kind < 6) {
      const std::uint32_t least = below(3);
      const Expr part = expression(rules, depth - 1);
      return rules.repeat(part, least, below(3) == 0 ? kUnbounded : least + below(4));
    }
    std::vector<Expr> parts;
    for (std::uint32_t n = below(4); parts.size() < n;) parts.push_back(expression(rules, depth - 1));
    return kind < 8 ? rules.sequence(parts) : rules.choice(parts);
  }

  std::mt19937_64 random_;
};

}  // namespace quire::grammar::testing
