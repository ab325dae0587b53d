// Whether a short text is a match of an expression, by trying everything: what automata are compared with.
// Shape   for every expression and every place of the text, the set of places where a match ends, as bits; grown until
//         nothing changes, so that recursion of any kind is understood.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "core/grammar/rules/rules.h"

namespace quire::grammar::testing {

class BruteForce {
 public:
  BruteForce(const Rules& rules, std::string_view text)
      : rules_(rules), text_(text), places_(static_cast<std::uint32_t>(text.size()) + 1) {
    CHECK_LT(text.size(), 32u);
    ends_.assign(rules.nodes().size() * places_, 0);
    for (bool changed = true; changed;) {
      changed = false;
      for (Expr e = 0; e < rules.nodes().size(); ++e) {
        for (std::uint32_t at = 0; at < places_; ++at) {
          const std::uint32_t now = find(e, at);
          changed |= now != ends(e, at);
          ends_[e * places_ + at] = now;
        }
      }
    }
  }

  bool matches(Expr e) const { return (ends(e, 0) >> text_.size() & 1) != 0; }
  bool matches() const { return matches(rules_.rules()[0].body); }

 private:
  std::uint32_t ends(Expr e, std::uint32_t at) const { return ends_[e * places_ + at]; }

  std::uint32_t after(Expr part, std::uint32_t places) const {
    std::uint32_t out = 0;
    for (std::uint32_t at = 0; at < places_; ++at) {
      if (places >> at & 1) out |= ends(part, at);
    }
    return out;
  }

  std::uint32_t find(Expr e, std::uint32_t at) const {
    const Node& node = rules_.nodes()[e];
    std::uint32_t out = 0;
    switch (node.kind) {
      case Node::Kind::kBytes:
        return text_.substr(at).starts_with(node.bytes) ? 1U << (at + node.bytes.size()) : 0;
      case Node::Kind::kByteSet:
        return at < text_.size() && node.set[static_cast<unsigned char>(text_[at])] ? 1U << (at + 1) : 0;
      case Node::Kind::kSequence:
        out = 1U << at;
        for (const Expr part : node.parts) out = after(part, out);
        return out;
      case Node::Kind::kChoice:
        for (const Expr part : node.parts) out |= ends(part, at);
        return out;
      case Node::Kind::kRepeat: {
        std::uint32_t places = 1U << at;
        // Behind `least` and one more for every place, nothing new is found.
        for (std::uint32_t i = 0; i <= node.most && i <= node.least + places_; ++i) {
          if (i >= node.least) out |= places;
          places = after(node.parts[0], places);
        }
        return out;
      }
      case Node::Kind::kRule:
        return ends(rules_.rules()[node.rule].body, at);
    }
    return out;
  }

  const Rules& rules_;
  std::string_view text_;
  std::uint32_t places_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace quire::grammar::testing
