#include "core/grammar/text/left_recursion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace quire::grammar {
namespace {

constexpr std::size_t kMaxCircle = 24;
constexpr std::size_t kMaxParts = 128;  // of a sequence that begins with a rule of the cycle

using Kind = Node::Kind;
using MaybeExpr = std::optional<Expr>;  // none: matches no text

// The rules that may be empty, and the rules that an expression can begin with.
class Facts {
 public:
  explicit Facts(const Rules& rules) : rules_(rules), nullable_(rules.rules().size()) {
    for (bool changed = true; changed;) {
      changed = false;
      for (RuleId rule = 0; rule < nullable_.size(); ++rule) {
        if (nullable_[rule] || !rules.rules()[rule].defined || !nullable(rules.rules()[rule].body)) continue;
        changed = nullable_[rule] = true;
      }
    }
  }

  bool nullable(Expr e) const {
    const Node& node = rules_.nodes()[e];
    const auto part_is = [this](Expr part) { return nullable(part); };
    switch (node.kind) {
      case Kind::kBytes:
        return node.bytes.empty();
      case Kind::kByteSet:
        return false;
      case Kind::kSequence:
        return std::ranges::all_of(node.parts, part_is);
      case Kind::kChoice:
        return std::ranges::any_of(node.parts, part_is);
      case Kind::kRepeat:
        return node.least == 0 || nullable(node.parts.front());
      case Kind::kRule:
        return node.rule < nullable_.size() && nullable_[node.rule];
    }
    return false;
  }

  // Calls body(rule) for every rule that `e` can begin with, without looking into those rules.
  template <typename Body>
  void for_first_rules(Expr e, const Body& body) const {
    const Node& node = rules_.nodes()[e];
    if (node.kind == Kind::kRule) return body(node.rule);
    if (node.kind == Kind::kRepeat && node.most == 0) return;
    for (const Expr part : node.parts) {
      for_first_rules(part, body);
      if (node.kind == Kind::kSequence && !nullable(part)) return;
    }
  }

 private:
  const Rules& rules_;
  std::vector<bool> nullable_;
};

// The cycles of rules that can begin with each other: strongly connected components (Tarjan 1972).
class Circles {
 public:
  Circles(const Rules& rules, const Facts& facts, RuleId first)
      : rules_(rules), facts_(facts), first_(first), states_(rules.rules().size()) {
    for (RuleId rule = first; rule < states_.size(); ++rule) {
      if (states_[rule].number == 0) visit(rule);
    }
  }
  std::vector<std::vector<RuleId>> take() { return std::move(circles_); }

 private:
  struct State {
    std::uint32_t number = 0;  // 0: not visited
    std::uint32_t lowest = 0;
    bool open = false;
    bool begins_with_itself = false;
  };
  struct Visit {
    RuleId rule;
    std::vector<RuleId> next;
  };

  void open(RuleId rule, std::vector<Visit>& visits) {
    State& state = states_[rule];
    state.number = state.lowest = ++last_number_;
    state.open = true;
    stack_.push_back(rule);
    visits.push_back({rule, {}});
    if (!rules_.rules()[rule].defined) return;
    facts_.for_first_rules(rules_.rules()[rule].body, [&](RuleId other) {
      if (other == rule) state.begins_with_itself = true;
      if (other >= first_) visits.back().next.push_back(other);
    });
  }

  void visit(RuleId root) {
    std::vector<Visit> visits;
    open(root, visits);
    while (!visits.empty()) {
      Visit& top = visits.back();
      if (!top.next.empty()) {
        const RuleId other = top.next.back();
        top.next.pop_back();
        if (states_[other].number == 0) {
          open(other, visits);
        } else if (states_[other].open) {
          states_[top.rule].lowest = std::min(states_[top.rule].lowest, states_[other].number);
        }
        continue;
      }
      const RuleId done = top.rule;
      visits.pop_back();
      if (!visits.empty()) {
        State& before = states_[visits.back().rule];
        before.lowest = std::min(before.lowest, states_[done].lowest);
      }
      if (states_[done].lowest == states_[done].number) close(done);
    }
  }

  void close(RuleId root) {
    std::vector<RuleId> circle;
    RuleId rule = 0;
    do {
      rule = stack_.back();
      stack_.pop_back();
      states_[rule].open = false;
      circle.push_back(rule);
    } while (rule != root);
    if (circle.size() > 1 || states_[root].begins_with_itself) circles_.push_back(std::move(circle));
  }

  const Rules& rules_;
  const Facts& facts_;
  RuleId first_;
  std::vector<State> states_;
  std::vector<RuleId> stack_;
  std::uint32_t last_number_ = 0;
  std::vector<std::vector<RuleId>> circles_;
};

// Removes left recursion from one cycle. Its rule i is  own_i | rule_0 behind_i0 | rule_1 behind_i1 | ...  where own_i
// begins with no rule of the cycle.
class Elimination {
 public:
  Elimination(Rules& rules, const Facts& facts, std::vector<RuleId> circle)
      : rules_(rules),
        facts_(facts),
        circle_(std::move(circle)),
        own_(circle_.size()),
        behind_(circle_.size(), std::vector<MaybeExpr>(circle_.size())) {
    for (std::size_t i = 0; i < circle_.size(); ++i) places_[circle_[i]] = i;
  }

  void run() {
    const std::size_t n = circle_.size();
    for (std::size_t i = 0; i < n; ++i) {
      Split split = split_of(rules_.rules()[circle_[i]].body);
      if (!possible_) return;
      own_[i] = one_of(split.own);
      for (std::size_t j = 0; j < n; ++j) behind_[i][j] = one_of(split.behind[j]);
    }
    for (std::size_t last = n; last-- > 0;) put_into_those_before(last);
    for (std::size_t i = 0; i < n; ++i) define(i);
  }

 private:
  using Ways = std::vector<Expr>;  // empty: matches no text
  struct Split {
    explicit Split(std::size_t n) : behind(n) {}
    Ways own;
    std::vector<Ways> behind;  // [rule of the cycle]
  };

  Expr nothing() { return rules_.bytes(""); }
  bool is_nothing(Expr e) const {
    const Node& node = rules_.nodes()[e];
    return node.kind == Kind::kBytes && node.bytes.empty();
  }
  Expr both(Expr first, Expr second) {
    if (is_nothing(first)) return second;
    if (is_nothing(second)) return first;
    const Expr parts[] = {first, second};
    return rules_.sequence(parts);
  }
  MaybeExpr both(MaybeExpr first, MaybeExpr second) {
    return first && second ? MaybeExpr(both(*first, *second)) : std::nullopt;
  }
  MaybeExpr either(MaybeExpr one, MaybeExpr other) {
    if (!one || !other) return one ? one : other;
    const Expr ways[] = {*one, *other};
    return rules_.choice(ways);
  }
  MaybeExpr one_of(const Ways& ways) {
    if (ways.empty()) return std::nullopt;
    return ways.size() == 1 ? ways.front() : rules_.choice(ways);
  }
  Expr any_number(MaybeExpr e) { return !e || is_nothing(*e) ? nothing() : rules_.repeat(*e, 0, kUnbounded); }

  bool begins_with_circle(Expr e) const {
    bool begins = false;
    facts_.for_first_rules(e, [&](RuleId rule) { begins = begins || places_.contains(rule); });
    return begins;
  }

  Split split_of(Expr e) {
    Split split(circle_.size());
    if (!begins_with_circle(e)) {
      split.own = {e};
      return split;
    }
    const Node node = rules_.nodes()[e];  // a copy, since making nodes moves them
    if (node.kind == Kind::kRule) {
      split.behind[places_.at(node.rule)] = {nothing()};
    } else if (node.kind == Kind::kChoice) {
      for (const Expr part : node.parts) add(split, split_of(part));
    } else if (node.kind == Kind::kSequence) {
      split = split_of_sequence(node.parts);
    } else {
      const Expr part = node.parts.front();
      // A part that may be empty would let the rest of the repetition begin with the cycle, too.
      possible_ = possible_ && (node.most == 1 || !facts_.nullable(part));
      if (possible_) split = split_of_sequence({part, less(node)});
      if (node.least == 0) split.own.push_back(nothing());
    }
    return split;
  }

  // The rest of a repetition after one of its parts.
  Expr less(const Node& repeat) {
    const std::uint32_t most = repeat.most == kUnbounded ? kUnbounded : repeat.most - 1;
    if (most == 0) return nothing();
    return rules_.repeat(repeat.parts.front(), repeat.least == 0 ? 0 : repeat.least - 1, most);
  }

  static void add(Ways& to, const Ways& more) { to.insert(to.end(), more.begin(), more.end()); }
  void add(Split& to, const Split& more) const {
    add(to.own, more.own);
    for (std::size_t i = 0; i < circle_.size(); ++i) add(to.behind[i], more.behind[i]);
  }
  void put_behind(Ways& ways, Expr rest) {
    for (Expr& way : ways) way = both(way, rest);
  }

  Split split_of_sequence(const std::vector<Expr>& parts) {
    Split split(circle_.size());
    if (parts.size() > kMaxParts) {
      possible_ = false;
      return split;
    }
    const std::vector<Expr> rests = rests_of(parts);
    for (std::size_t i = 0; i < parts.size() && possible_; ++i) {
      Split first = split_of(parts[i]);
      const bool goes_on = facts_.nullable(parts[i]) && begins_with_circle(rests[i]);
      if (goes_on) leave_out_empty(first.own);
      put_behind(first.own, rests[i]);
      for (Ways& behind : first.behind) put_behind(behind, rests[i]);
      add(split, first);
      if (!goes_on) break;
    }
    return split;
  }

  void leave_out_empty(Ways& ways) {
    Ways left;
    for (const Expr way : ways) {
      if (const MaybeExpr rest = not_empty(way)) left.push_back(*rest);
    }
    ways = std::move(left);
  }

  // [part] the sequence of the parts after it.
  std::vector<Expr> rests_of(const std::vector<Expr>& parts) {
    std::vector<Expr> rests(parts.size());
    Expr rest = nothing();
    for (std::size_t i = parts.size(); i-- > 0;) {
      rests[i] = rest;
      rest = both(parts[i], rest);
    }
    return rests;
  }

  // Matches the texts of `e` except the empty one.
  MaybeExpr not_empty(Expr e) {
    if (!facts_.nullable(e)) return e;
    const Node node = rules_.nodes()[e];
    MaybeExpr out;
    switch (node.kind) {
      case Kind::kBytes:
      case Kind::kByteSet:
        return std::nullopt;
      case Kind::kRule:
        return not_empty_rule(node.rule);
      case Kind::kChoice:
        for (const Expr part : node.parts) out = either(out, not_empty(part));
        return out;
      case Kind::kRepeat:
        if (node.most == 0) return std::nullopt;
        return both(not_empty(node.parts.front()), less(node));
      case Kind::kSequence: {
        const std::vector<Expr> rests = rests_of(node.parts);
        for (std::size_t i = 0; i < node.parts.size(); ++i) {
          out = either(out, both(not_empty(node.parts[i]), rests[i]));
        }
        return out;
      }
    }
    return out;
  }

  MaybeExpr not_empty_rule(RuleId rule) {
    if (places_.contains(rule)) {
      possible_ = false;
      return std::nullopt;
    }
    const auto [found, is_new] = not_empty_.try_emplace(rule);
    if (is_new) {
      const RuleId made = found->second = rules_.declare(rules_.rules()[rule].name);
      const MaybeExpr body = not_empty(rules_.rules()[rule].body);
      rules_.define(made, body ? *body : rules_.choice({}));
    }
    return rules_.use(not_empty_.at(rule));
  }

  // Rewrites rule `last` without recursion to itself, and substitutes it into the rules before it that begin with it.
  void put_into_those_before(std::size_t last) {
    if (behind_[last][last] && is_nothing(*behind_[last][last])) behind_[last][last].reset();
    const Expr again = any_number(behind_[last][last]);
    own_[last] = both(own_[last], again);
    for (std::size_t j = 0; j < last; ++j) behind_[last][j] = both(behind_[last][j], again);
    own_[last] = named(last, own_[last]);
    for (std::size_t j = 0; j < last; ++j) behind_[last][j] = named(last, behind_[last][j]);
    for (std::size_t i = 0; i < last; ++i) {
      const MaybeExpr behind = std::exchange(behind_[i][last], std::nullopt);
      if (!behind) continue;
      own_[i] = either(own_[i], both(own_[last], behind));
      for (std::size_t j = 0; j < last; ++j) behind_[i][j] = either(behind_[i][j], both(behind_[last][j], behind));
    }
  }

  // Makes `e` a rule of its own, so that many places can use it without copies.
  MaybeExpr named(std::size_t part_of, MaybeExpr e) {
    if (!e || circle_.size() == 1) return e;
    const Kind kind = rules_.nodes()[*e].kind;
    if (kind == Kind::kRule || kind == Kind::kBytes || kind == Kind::kByteSet) return e;
    const RuleId rule = rules_.declare(rules_.rules()[circle_[part_of]].name);
    rules_.define(rule, *e);
    return rules_.use(rule);
  }

  void define(std::size_t i) {
    MaybeExpr body = own_[i];
    for (std::size_t j = 0; j < i; ++j) {
      if (behind_[i][j]) body = either(body, both(rules_.use(circle_[j]), *behind_[i][j]));
    }
    rules_.define(circle_[i], body ? *body : rules_.choice({}));
  }

  Rules& rules_;
  const Facts& facts_;
  std::vector<RuleId> circle_;
  std::map<RuleId, std::size_t> places_;
  std::vector<MaybeExpr> own_;
  std::vector<std::vector<MaybeExpr>> behind_;
  std::map<RuleId, RuleId> not_empty_;  // by rule that may be empty: the rule of its other texts
  bool possible_ = true;
};

}  // namespace

void remove_left_recursion(Rules& rules, RuleId first) {
  const Facts facts(rules);
  for (std::vector<RuleId>& circle : Circles(rules, facts, first).take()) {
    if (circle.size() <= kMaxCircle) Elimination(rules, facts, std::move(circle)).run();
  }
}

}  // namespace quire::grammar
