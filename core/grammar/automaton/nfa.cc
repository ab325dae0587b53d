#include "core/grammar/automaton/nfa.h"

#include <utility>

namespace quire::grammar {

Lowering::Lowering(const Rules& rules, const RuleFacts& facts)
    : nodes_(rules.nodes()), rules_(rules.rules()), facts_(facts), unit_of_(nodes_.size(), Nfa::kNone) {
  units_.push_back(rules_[0].body);
  unit_of_[rules_[0].body] = 0;
}

Nfa Lowering::lower(std::uint32_t unit) {
  states_.clear();
  const State final_state = add(Nfa::Kind::kFinal, Nfa::kNone);
  Nfa nfa;
  nfa.start = build(units_[unit], final_state);
  nfa.states = std::move(states_);
  return nfa;
}

Lowering::State Lowering::add(Nfa::Kind kind, State next, std::uint32_t other) {
  states_.push_back({kind, next, other, {}});
  return static_cast<State>(states_.size() - 1);
}

Lowering::State Lowering::call(Expr body, State next) {
  if (unit_of_[body] == Nfa::kNone) {
    unit_of_[body] = static_cast<std::uint32_t>(units_.size());
    units_.push_back(body);
  }
  return add(Nfa::Kind::kCall, next, unit_of_[body]);
}

Lowering::State Lowering::build(Expr e, State next) {
  const Node& node = nodes_[e];
  switch (node.kind) {
    case Node::Kind::kBytes:
      for (std::size_t i = node.bytes.size(); i-- > 0;) {
        next = add(Nfa::Kind::kBytes, next);
        states_.back().set.set(static_cast<unsigned char>(node.bytes[i]));
      }
      return next;
    case Node::Kind::kByteSet:
      next = add(Nfa::Kind::kBytes, next);
      states_.back().set = node.set;
      return next;
    case Node::Kind::kSequence:
      for (std::size_t i = node.parts.size(); i-- > 0;) next = build(node.parts[i], next);
      return next;
    case Node::Kind::kChoice: {
      State ways = Nfa::kNone;
      for (const Expr part : node.parts) {
        if (!facts_.productive[part]) continue;
        const State way = build(part, next);
        ways = ways == Nfa::kNone ? way : add(Nfa::Kind::kSplit, ways, way);
      }
      return ways;
    }
    case Node::Kind::kRepeat:
      return repeat(node, next);
    case Node::Kind::kRule:
      break;
  }
  const Expr body = rules_[node.rule].body;
  return facts_.inlined[node.rule] ? build(body, next) : call(body, next);
}

Lowering::State Lowering::repeat(const Node& node, State next) {
  const Expr part = node.parts[0];
  if (!facts_.productive[part]) return next;
  const bool chained = facts_.chained(node);
  const auto once = [&](State then) { return chained ? call(part, then) : build(part, then); };
  // A part that may be empty makes every count below `least` match the same texts.
  std::uint32_t least = facts_.nullable[part] ? 0 : node.least;
  State entry = next;
  if (node.most == kUnbounded) {
    const State loop = add(Nfa::Kind::kSplit, next);
    const State body = once(loop);
    states_[loop].other = body;
    entry = least == 0 ? loop : body;
    least -= least == 0 ? 0 : 1;
  } else {
    for (std::uint32_t i = least; i < node.most; ++i) entry = add(Nfa::Kind::kSplit, next, once(entry));
  }
  for (std::uint32_t i = 0; i < least; ++i) entry = once(entry);
  return entry;
}

}  // namespace quire::grammar
