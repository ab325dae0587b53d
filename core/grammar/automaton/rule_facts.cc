#include "core/grammar/automaton/rule_facts.h"

#include <algorithm>
#include <string>
#include <utility>

namespace quire::grammar {
namespace {

using Kind = Node::Kind;

constexpr std::uint32_t kMaxDepth = 1000;          // of nested expressions: lowering recurses
constexpr std::uint32_t kMaxInlinedDepth = 100;    // of a rule that is inlined
constexpr std::uint32_t kSmallRule = 8;            // states of a rule inlined everywhere
constexpr std::uint32_t kSmallRuleUsedOnce = 200;  // and of one that has a single use
constexpr std::uint32_t kShortRepeat = 512;        // states of a repetition written out
constexpr std::uint32_t kTinyPart = 4;             // states of a part that is always written out
constexpr std::uint32_t kTooMany = 1U << 30;

std::uint32_t add(std::uint32_t a, std::uint32_t b) { return std::min(kTooMany, a + b); }
std::uint32_t times(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(kTooMany, std::uint64_t{a} * b));
}

std::uint32_t copies(const Node& repeat) {
  return repeat.most == kUnbounded ? std::max(repeat.least, 1U) : repeat.most;
}

std::string quoted(const Rule& rule) { return "rule '" + rule.name.substr(0, 100) + "'"; }

class Examination {
 public:
  Examination(const Rules& rules, const CompileBudget& budget)
      : nodes_(rules.nodes()), rules_(rules.rules()), budget_(budget) {}

  Result<RuleFacts> run();

 private:
  // The least fixed point over expressions: a leaf holds if leaf(node) does, a sequence if all its parts do, a choice
  // if any part does. False: out of time.
  template <typename Leaf>
  bool spread(std::vector<std::uint8_t>& holds, const Leaf& leaf) const;
  template <typename Visit>
  void below(Expr body, const Visit& visit);  // visits every productive expression of a rule once, ascending
  Result<Done> find_rules();
  Result<Done> refuse_left_recursion() const;
  std::vector<RuleId> leftmost_rules(RuleId rule, std::vector<std::uint32_t>& seen) const;
  std::vector<RuleId> callees_first();
  Result<Done> measure(RuleId rule);
  std::uint32_t size_of(const Node& node) const;
  std::uint32_t depth_of(const Node& node) const;

  std::span<const Node> nodes_;
  std::span<const Rule> rules_;
  const CompileBudget& budget_;
  RuleFacts facts_;
  std::vector<RuleId> found_;  // rules that can be reached
  std::vector<std::vector<RuleId>> callees_;
  std::vector<std::uint32_t> uses_;      // by rule
  std::vector<std::uint8_t> recursive_;  // by rule: leads to a recursion
  std::vector<std::uint32_t> seen_;      // by Expr: the last below() that visited it
  std::uint32_t num_walks_ = 0;
};

template <typename Leaf>
bool Examination::spread(std::vector<std::uint8_t>& holds, const Leaf& leaf) const {
  holds.assign(nodes_.size(), 0);
  const auto part_holds = [&](Expr part) { return holds[part] != 0; };
  for (bool changed = true; changed;) {
    if (budget_.late()) return false;
    changed = false;
    for (Expr e = 0; e < nodes_.size(); ++e) {  // a part has a lower number than the whole
      if (holds[e]) continue;
      const Node& node = nodes_[e];
      bool now = false;
      switch (node.kind) {
        case Kind::kBytes:
        case Kind::kByteSet:
          now = leaf(node);
          break;
        case Kind::kSequence:
          now = std::all_of(node.parts.begin(), node.parts.end(), part_holds);
          break;
        case Kind::kChoice:
          now = std::any_of(node.parts.begin(), node.parts.end(), part_holds);
          break;
        case Kind::kRepeat:
          now = node.least == 0 || part_holds(node.parts[0]);
          break;
        case Kind::kRule:
          now = rules_[node.rule].defined && part_holds(rules_[node.rule].body);
          break;
      }
      if (now) holds[e] = 1, changed = true;
    }
  }
  return true;
}

template <typename Visit>
void Examination::below(Expr body, const Visit& visit) {
  ++num_walks_;
  std::vector<Expr> found;
  const auto enter = [&](Expr e) {
    if (!facts_.productive[e] || seen_[e] == num_walks_) return;
    seen_[e] = num_walks_;
    found.push_back(e);
  };
  enter(body);
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const Expr part : nodes_[found[i]].parts) enter(part);
  }
  std::sort(found.begin(), found.end());
  for (const Expr e : found) visit(e);
}

Result<Done> Examination::find_rules() {
  std::vector<std::uint8_t> known(rules_.size(), 0);
  seen_.assign(nodes_.size(), 0);
  uses_.assign(rules_.size(), 0);
  callees_.resize(rules_.size());
  found_ = {0};
  known[0] = 1;
  for (std::size_t i = 0; i < found_.size(); ++i) {
    const RuleId rule = found_[i];
    if (budget_.late()) return budget_.late_error();
    below(rules_[rule].body, [&](Expr e) {
      const auto use = [&](Expr part) {
        if (nodes_[part].kind == Kind::kRule && facts_.productive[part]) ++uses_[nodes_[part].rule];
      };
      for (const Expr part : nodes_[e].parts) use(part);
      if (e == rules_[rule].body) use(e);
      if (nodes_[e].kind != Kind::kRule) return;
      const RuleId callee = nodes_[e].rule;
      callees_[rule].push_back(callee);
      if (!known[callee]) known[callee] = 1, found_.push_back(callee);
    });
  }
  return Done{};
}

// The rules that may stand at the very beginning of a match of `rule`.
std::vector<RuleId> Examination::leftmost_rules(RuleId rule, std::vector<std::uint32_t>& seen) const {
  std::vector<RuleId> leftmost;
  std::vector<Expr> open{rules_[rule].body};
  while (!open.empty()) {
    const Expr e = open.back();
    open.pop_back();
    if (!facts_.productive[e] || seen[e] == rule + 1) continue;
    seen[e] = rule + 1;
    const Node& node = nodes_[e];
    if (node.kind == Kind::kRule) leftmost.push_back(node.rule);
    for (const Expr part : node.parts) {
      open.push_back(part);
      if (node.kind == Kind::kSequence && !facts_.nullable[part]) break;
    }
  }
  return leftmost;
}

Result<Done> Examination::refuse_left_recursion() const {
  enum : std::uint8_t { kNew, kOpen, kClosed };
  struct Step {
    RuleId rule;
    std::vector<RuleId> leftmost;
    std::size_t next = 0;
  };
  std::vector<std::uint8_t> state(rules_.size(), kNew);
  std::vector<std::uint32_t> seen(nodes_.size(), 0);
  for (const RuleId root : found_) {
    if (state[root] != kNew) continue;
    std::vector<Step> path;
    const auto enter = [&](RuleId rule) {
      state[rule] = kOpen;
      path.push_back({rule, leftmost_rules(rule, seen)});
    };
    for (enter(root); !path.empty();) {
      Step& step = path.back();
      if (step.next == step.leftmost.size()) {
        state[step.rule] = kClosed;
        path.pop_back();
        continue;
      }
      const RuleId next = step.leftmost[step.next++];
      if (state[next] == kOpen) return invalid({}, quoted(rules_[next]) + " can begin with itself (left recursion)");
      if (state[next] == kNew) enter(next);
    }
    if (budget_.late()) return budget_.late_error();
  }
  return Done{};
}

// First the rules that lead to no recursion, callees before their callers; then the others.
std::vector<RuleId> Examination::callees_first() {
  std::vector<std::uint32_t> waits(rules_.size(), 0);
  std::vector<std::vector<RuleId>> callers(rules_.size());
  std::vector<RuleId> order;
  recursive_.assign(rules_.size(), 1);
  for (const RuleId rule : found_) {
    waits[rule] = static_cast<std::uint32_t>(callees_[rule].size());
    for (const RuleId callee : callees_[rule]) callers[callee].push_back(rule);
    if (waits[rule] == 0) order.push_back(rule);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    recursive_[order[i]] = 0;
    for (const RuleId caller : callers[order[i]]) {
      if (--waits[caller] == 0) order.push_back(caller);
    }
  }
  for (const RuleId rule : found_) {
    if (recursive_[rule]) order.push_back(rule);
  }
  return order;
}

std::uint32_t Examination::size_of(const Node& node) const {
  std::uint32_t size = 0;
  switch (node.kind) {
    case Kind::kBytes:
      return static_cast<std::uint32_t>(node.bytes.size());
    case Kind::kByteSet:
      return 1;
    case Kind::kSequence:
    case Kind::kChoice:
      for (const Expr part : node.parts) {
        if (facts_.productive[part]) size = add(size, add(facts_.size[part], node.kind == Kind::kChoice ? 1 : 0));
      }
      return size;
    case Kind::kRepeat:
      if (!facts_.productive[node.parts[0]]) return 0;
      return times(copies(node), facts_.chained(node) ? 2 : add(facts_.size[node.parts[0]], 1));
    case Kind::kRule:
      return facts_.inlined[node.rule] ? facts_.size[rules_[node.rule].body] : 1;
  }
  return size;
}

std::uint32_t Examination::depth_of(const Node& node) const {
  if (node.kind == Kind::kRule) return facts_.inlined[node.rule] ? facts_.depth[rules_[node.rule].body] + 1 : 1;
  std::uint32_t depth = 0;
  for (const Expr part : node.parts) depth = std::max(depth, facts_.depth[part]);
  return add(depth, 1);
}

Result<Done> Examination::measure(RuleId rule) {
  const Expr body = rules_[rule].body;
  bool too_deep = false;
  bool too_empty = false;
  below(body, [&](Expr e) {
    const Node& node = nodes_[e];
    facts_.size[e] = size_of(node);
    facts_.depth[e] = depth_of(node);
    too_deep |= facts_.depth[e] > kMaxDepth;
    too_empty |= node.kind == Kind::kRepeat && node.most != kUnbounded && node.most > kMaxEmptyRepeats &&
                 facts_.nullable[node.parts[0]];
  });
  if (too_deep) {
    return invalid({}, quoted(rules_[rule]) + " is nested more than " + std::to_string(kMaxDepth) + " deep");
  }
  if (too_empty) {
    return invalid({}, quoted(rules_[rule]) + " repeats a part that may be empty more than " +
                           std::to_string(kMaxEmptyRepeats) + " times");
  }
  const std::uint32_t small = uses_[rule] == 1 ? kSmallRuleUsedOnce : kSmallRule;
  facts_.inlined[rule] = !recursive_[rule] && facts_.size[body] <= small && facts_.depth[body] <= kMaxInlinedDepth;
  return Done{};
}

Result<RuleFacts> Examination::run() {
  if (rules_.empty()) return invalid({}, "the grammar has no rules");
  const auto is_empty = [](const Node& node) { return node.kind == Kind::kBytes && node.bytes.empty(); };
  const auto matches = [](const Node& node) { return node.kind == Kind::kBytes || node.set.any(); };
  if (!spread(facts_.nullable, is_empty) || !spread(facts_.productive, matches)) return budget_.late_error();
  for (const Rule& rule : rules_) {
    if (!rule.defined) return invalid({}, quoted(rule) + " is not defined");
  }
  if (!facts_.productive[rules_[0].body]) return invalid({}, "no text matches the grammar");
  if (const auto found = find_rules(); !found) return found.error();
  if (const auto refused = refuse_left_recursion(); !refused) return refused.error();
  facts_.size.assign(nodes_.size(), 0);
  facts_.depth.assign(nodes_.size(), 0);
  facts_.inlined.assign(rules_.size(), 0);
  for (const RuleId rule : callees_first()) {
    if (const auto measured = measure(rule); !measured) return measured.error();
    if (budget_.late()) return budget_.late_error();
    if (facts_.size[rules_[rule].body] > budget_.max_states()) return budget_.large_error();
  }
  return std::move(facts_);
}

}  // namespace

bool RuleFacts::chained(const Node& repeat) const {
  const std::uint32_t part = size[repeat.parts[0]];
  return part > kTinyPart && times(copies(repeat), part) > kShortRepeat;
}

Result<RuleFacts> examine(const Rules& rules, const CompileBudget& budget) { return Examination(rules, budget).run(); }

}  // namespace quire::grammar
