#include "core/grammar/rules/rules.h"

#include <algorithm>
#include <utility>

#include "core/grammar/rules/code_points.h"

namespace quire::grammar {
namespace {

// The last scalar value of each UTF-8 length. Encodings of one length sort as their scalar values do.
constexpr char32_t kLengthEnds[] = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};

std::string utf8(char32_t c) {
  std::string bytes;
  append_utf8(bytes, c);
  return bytes;
}

ByteSet range(unsigned char first, unsigned char last) {
  ByteSet set;
  for (unsigned c = first; c <= last; ++c) set.set(c);
  return set;
}

}  // namespace

Expr Rules::add(Node node) {
  num_bytes_ += sizeof(Node) + node.bytes.size() + node.parts.size() * sizeof(Expr);
  nodes_.push_back(std::move(node));
  return static_cast<Expr>(nodes_.size() - 1);
}

Expr Rules::bytes(std::string_view text) {
  Node node;
  node.kind = Node::Kind::kBytes;
  node.bytes = text;
  return add(std::move(node));
}

Expr Rules::byte_set(const ByteSet& set) {
  Node node;
  node.kind = Node::Kind::kByteSet;
  node.set = set;
  return add(std::move(node));
}

Expr Rules::code_points(char32_t first, char32_t last) {
  std::vector<Expr> choices;
  // Matches the encodings from `low` to `high`, of one length: split by their first byte.
  const auto span = [this](const auto& self, std::string_view low, std::string_view high) -> Expr {
    const auto a = static_cast<unsigned char>(low[0]);
    const auto b = static_cast<unsigned char>(high[0]);
    if (low.size() == 1) return byte_set(range(a, b));
    if (a == b) {
      const Expr parts[] = {byte_set(range(a, a)), self(self, low.substr(1), high.substr(1))};
      return sequence(parts);
    }
    const std::string lowest(low.size() - 1, '\x80');
    const std::string highest(low.size() - 1, '\xBF');
    std::vector<Expr> pieces;
    const auto piece = [&](unsigned char from, unsigned char to, std::string_view rest_low,
                           std::string_view rest_high) {
      if (from > to) return;
      const Expr parts[] = {byte_set(range(from, to)), self(self, rest_low, rest_high)};
      pieces.push_back(sequence(parts));
    };
    const bool whole_low = low.substr(1) == lowest;
    const bool whole_high = high.substr(1) == highest;
    if (!whole_low) piece(a, a, low.substr(1), highest);
    piece(static_cast<unsigned char>(whole_low ? a : a + 1), static_cast<unsigned char>(whole_high ? b : b - 1), lowest,
          highest);
    if (!whole_high) piece(b, b, lowest, high.substr(1));
    return choice(pieces);
  };
  const auto add_range = [&](char32_t from, char32_t to) {
    for (const char32_t end : kLengthEnds) {
      if (from > to) return;
      if (from > end) continue;
      const char32_t stop = std::min(to, end);
      choices.push_back(span(span, utf8(from), utf8(stop)));
      from = stop + 1;
    }
  };
  last = std::min<char32_t>(last, 0x10FFFF);
  if (first <= 0xD7FF) add_range(first, std::min<char32_t>(last, 0xD7FF));  // surrogates are not scalar values
  if (last >= 0xE000) add_range(std::max<char32_t>(first, 0xE000), last);
  return choices.size() == 1 ? choices.front() : choice(choices);
}

Expr Rules::sequence(std::span<const Expr> parts) {
  Node node;
  node.kind = Node::Kind::kSequence;
  node.parts.assign(parts.begin(), parts.end());
  return add(std::move(node));
}

Expr Rules::choice(std::span<const Expr> parts) {
  Node node;
  node.kind = Node::Kind::kChoice;
  node.parts.assign(parts.begin(), parts.end());
  return add(std::move(node));
}

Expr Rules::repeat(Expr part, std::uint32_t least, std::uint32_t most) {
  Node node;
  node.kind = Node::Kind::kRepeat;
  node.parts = {part};
  node.least = least;
  node.most = most;
  return add(std::move(node));
}

Expr Rules::use(RuleId rule) {
  Node node;
  node.kind = Node::Kind::kRule;
  node.rule = rule;
  return add(std::move(node));
}

RuleId Rules::declare(std::string name) {
  num_bytes_ += sizeof(Rule) + name.size();
  rules_.push_back({std::move(name), false, 0});
  return static_cast<RuleId>(rules_.size() - 1);
}

void Rules::define(RuleId rule, Expr body) {
  rules_[rule].defined = true;
  rules_[rule].body = body;
}

}  // namespace quire::grammar
