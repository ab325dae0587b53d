// A context-free grammar over bytes under construction: the front ends (json_schema.h, regex.h, ebnf.h, lark.h) write
// it, and grammar.h compiles it.
// Shape   an expression is a number, made once and usable any number of times; a rule may be used before it is defined.
//         A text must match rule 0.
// Owner   values. Thread  any one at a time.
// Fails   never here; compile() finds undefined rules, left recursion and grammars that are too large.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quire::grammar {

using Expr = std::uint32_t;
using RuleId = std::uint32_t;
using ByteSet = std::bitset<256>;

inline constexpr std::uint32_t kUnbounded = std::numeric_limits<std::uint32_t>::max();

struct Node {
  enum class Kind : std::uint8_t { kBytes, kByteSet, kSequence, kChoice, kRepeat, kRule };
  Kind kind = Kind::kSequence;
  std::string bytes;        // kBytes; empty: matches the empty text
  ByteSet set;              // kByteSet; empty: matches nothing
  std::vector<Expr> parts;  // kSequence, kChoice; kRepeat: one
  std::uint32_t least = 0;  // kRepeat
  std::uint32_t most = 0;   // kRepeat: >= least, or kUnbounded
  RuleId rule = 0;          // kRule
};

struct Rule {
  std::string name;  // for messages
  bool defined = false;
  Expr body = 0;
};

class Rules {
 public:
  Expr bytes(std::string_view text);
  Expr byte_set(const ByteSet& set);
  // The UTF-8 bytes of a Unicode scalar value from first to last, both included.
  Expr code_points(char32_t first, char32_t last);
  Expr sequence(std::span<const Expr> parts);
  Expr choice(std::span<const Expr> parts);  // no parts: matches nothing
  Expr repeat(Expr part, std::uint32_t least, std::uint32_t most);
  Expr use(RuleId rule);

  RuleId declare(std::string name);
  void define(RuleId rule, Expr body);

  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Rule> rules() const { return rules_; }
  std::size_t num_bytes() const { return num_bytes_; }  // approximate memory of nodes and rules

 private:
  Expr add(Node node);
  std::vector<Node> nodes_;
  std::vector<Rule> rules_;
  std::size_t num_bytes_ = 0;
};

}  // namespace quire::grammar
