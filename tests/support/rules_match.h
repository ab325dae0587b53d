// Whether a text is a match of a grammar's rule 0, by trying everything and remembering what was tried: slow, and nothing like
// the automaton that it is compared with.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/grammar/rules/rules.h"

namespace quire::grammar {

class RulesMatch {
 public:
  RulesMatch(const Rules& rules, std::string_view text) : rules_(rules), text_(text) {}

  bool whole() { return rule_ends(0, 0).contains(text_.size()); }
  bool whole(Expr expr) { return ends(expr, 0).contains(text_.size()); }

 private:
  using Ends = std::set<std::size_t>;

  const Ends& rule_ends(RuleId rule, std::size_t at) {
    const auto key = std::pair{rule, at};
    if (const auto found = memo_.find(key); found != memo_.end()) return found->second;
    memo_[key] = {};  // left recursion matches nothing
    Ends found = ends(rules_.rules()[rule].body, at);
    return memo_[key] = std::move(found);
  }

  Ends ends(Expr expr, std::size_t at) {
    const Node& node = rules_.nodes()[expr];
    switch (node.kind) {
      case Node::Kind::kBytes:
        return text_.substr(at).starts_with(node.bytes) ? Ends{at + node.bytes.size()} : Ends{};
      case Node::Kind::kByteSet:
        return at < text_.size() && node.set[static_cast<unsigned char>(text_[at])] ? Ends{at + 1} : Ends{};
      case Node::Kind::kRule:
        return rule_ends(node.rule, at);
      case Node::Kind::kRepeat:
        return repeat_ends(node, at);
      case Node::Kind::kChoice: {
        Ends out;
        for (const Expr part : node.parts) out.merge(ends(part, at));
        return out;
      }
      case Node::Kind::kSequence: {
        Ends now{at};
        for (const Expr part : node.parts) now = after(part, now);
        return now;
      }
    }
    return {};
  }

  Ends after(Expr part, const Ends& from) {
    Ends out;
    for (const std::size_t at : from) out.merge(ends(part, at));
    return out;
  }

  Ends repeat_ends(const Node& node, std::size_t at) {
    Ends now{at};
    Ends out;
    for (std::uint32_t i = 0; i <= node.most && !now.empty(); ++i) {
      if (i >= node.least) {
        const std::size_t before = out.size();
        out.insert(now.begin(), now.end());
        if (out.size() == before) break;
      }
      if (i < node.most) now = after(node.parts[0], now);
    }
    return out;
  }

  const Rules& rules_;
  std::string_view text_;
  std::map<std::pair<RuleId, std::size_t>, Ends> memo_;
};

}  // namespace quire::grammar
