#include "core/grammar/automaton/automaton.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/grammar/automaton/nfa.h"
#include "core/grammar/automaton/number_row.h"

namespace quire::grammar {
namespace {

using Subset = NumberRow;  // NFA states of a unit, without splits, ascending

constexpr std::size_t kManyRuns = 4;
constexpr std::size_t kSubsetPerState = 64;  // entries of subsets that may be held, per state that the limits allow
constexpr std::uint32_t kLookAtClock = 64;   // states between two looks at the clock

// A set of bytes that lead to the same NFA states.
struct ByteClass {
  ByteSet set;
  Subset targets;
};

class Builder {
 public:
  Builder(const Rules& rules, const RuleFacts& facts, const CompileBudget& budget)
      : lowering_(rules, facts), budget_(budget) {}

  Result<Automaton> run();

 private:
  Result<std::uint32_t> add_unit(std::uint32_t unit);        // returns its first state
  bool add_runs(std::uint32_t state, const Subset& subset);  // false: beyond the limits
  bool add_calls(const Subset& subset);
  std::uint32_t state_of(const Subset& targets);  // kNone: beyond the limits
  Subset settle(const Subset& targets);
  void find_ends();
  void link(std::span<const std::uint32_t> first_of_unit);

  Lowering lowering_;
  const CompileBudget& budget_;
  Automaton out_;
  Nfa nfa_;
  std::unordered_map<Subset, std::uint32_t, NumberRowHash> known_;  // states of this unit
  std::vector<Subset> pending_;      // still to be expanded, in the order of their states
  std::vector<std::uint32_t> seen_;  // by NFA state: the last closure that visited it
  std::uint32_t num_closures_ = 0;
  std::size_t num_held_ = 0;
};

Result<Automaton> Builder::run() {
  out_.states.push_back({});  // kEnd
  std::vector<std::uint32_t> first_of_unit;
  std::size_t num_nfa_states = 0;
  for (std::uint32_t unit = 0; unit < lowering_.num_units(); ++unit) {
    num_nfa_states += lowering_.size_bound(unit);
    if (num_nfa_states > budget_.max_states()) return budget_.large_error();
    const Result<std::uint32_t> first = add_unit(unit);
    if (!first) return first.error();
    first_of_unit.push_back(*first);
  }
  out_.states.push_back({static_cast<std::uint32_t>(out_.runs.size()), static_cast<std::uint32_t>(out_.calls.size())});
  out_.start = first_of_unit[0];
  find_ends();
  link(first_of_unit);
  out_.alike = alike_states(out_);
  return std::move(out_);
}

Result<std::uint32_t> Builder::add_unit(std::uint32_t unit) {
  nfa_ = lowering_.lower(unit);
  known_.clear();
  pending_.clear();
  seen_.assign(nfa_.states.size(), 0);
  num_closures_ = 0;
  const std::uint32_t first = state_of({nfa_.start});
  if (first == Automaton::kNone) return budget_.large_error();
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Subset subset = std::move(pending_[i]);
    const auto state = static_cast<std::uint32_t>(first + i);
    out_.states[state].first_run = static_cast<std::uint32_t>(out_.runs.size());
    out_.states[state].first_call = static_cast<std::uint32_t>(out_.calls.size());
    for (const std::uint32_t s : subset) out_.states[state].final |= nfa_.states[s].kind == Nfa::Kind::kFinal;
    if (!add_runs(state, subset) || !add_calls(subset)) return budget_.large_error();
    if (i % kLookAtClock == 0 && budget_.late()) return budget_.late_error();
  }
  return first;
}

// Partitions the bytes into classes that lead to the same NFA states, and makes the runs of the state from them.
bool Builder::add_runs(std::uint32_t state, const Subset& subset) {
  std::vector<ByteClass> classes;
  for (const std::uint32_t s : subset) {
    const Nfa::State& from = nfa_.states[s];
    if (from.kind != Nfa::Kind::kBytes) continue;
    ByteSet rest = from.set;
    for (std::size_t i = 0, n = classes.size(); i < n && rest.any(); ++i) {
      const ByteSet common = classes[i].set & rest;
      if (common.none()) continue;
      rest &= ~common;
      if (common != classes[i].set) {
        classes.push_back({classes[i].set & ~common, classes[i].targets});
        classes[i].set = common;
      }
      classes[i].targets.push_back(from.next);
    }
    if (rest.any()) classes.push_back({rest, {from.next}});
  }
  if (classes.empty()) return true;
  std::array<std::uint32_t, 256> row;
  row.fill(Automaton::kNone);
  for (const ByteClass& byte_class : classes) {
    const std::uint32_t target = state_of(byte_class.targets);
    if (target == Automaton::kNone) return false;
    for (std::size_t b = 0; b < 256; ++b) {
      if (byte_class.set[b]) row[b] = target;
    }
  }
  const std::size_t first_run = out_.runs.size();
  for (std::size_t b = 0; b < 256; ++b) {
    if (row[b] == Automaton::kNone) continue;
    const std::size_t first = b;
    while (b < 255 && row[b + 1] == row[first]) ++b;
    out_.runs.push_back({static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(b), row[first]});
  }
  if (out_.runs.size() - first_run > kManyRuns) {
    out_.states[state].row = static_cast<std::uint32_t>(out_.rows.size());
    out_.rows.push_back(row);
  }
  return true;
}

bool Builder::add_calls(const Subset& subset) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> calls;  // unit, NFA state after it
  for (const std::uint32_t s : subset) {
    if (nfa_.states[s].kind == Nfa::Kind::kCall) calls.emplace_back(nfa_.states[s].other, nfa_.states[s].next);
  }
  std::sort(calls.begin(), calls.end());
  for (std::size_t i = 0; i < calls.size();) {
    const std::uint32_t unit = calls[i].first;
    Subset targets;
    for (; i < calls.size() && calls[i].first == unit; ++i) targets.push_back(calls[i].second);
    const std::uint32_t back = state_of(targets);
    if (back == Automaton::kNone) return false;
    out_.calls.push_back({unit, back});  // link() replaces the unit by its first state
  }
  return true;
}

std::uint32_t Builder::state_of(const Subset& targets) {
  Subset subset = settle(targets);
  if (const auto found = known_.find(subset); found != known_.end()) return found->second;
  num_held_ += subset.size();
  if (out_.states.size() > budget_.max_states() || num_held_ / kSubsetPerState > budget_.max_states()) {
    return Automaton::kNone;
  }
  const auto state = static_cast<std::uint32_t>(out_.states.size());
  out_.states.push_back({});
  pending_.push_back(subset);
  known_.emplace(std::move(subset), state);
  return state;
}

Subset Builder::settle(const Subset& targets) {
  ++num_closures_;
  Subset open = targets;
  Subset settled;
  while (!open.empty()) {
    const std::uint32_t s = open.back();
    open.pop_back();
    if (s == Nfa::kNone || seen_[s] == num_closures_) continue;
    seen_[s] = num_closures_;
    if (nfa_.states[s].kind == Nfa::Kind::kSplit) {
      open.push_back(nfa_.states[s].next);
      open.push_back(nfa_.states[s].other);
    } else {
      settled.push_back(s);
    }
  }
  std::sort(settled.begin(), settled.end());
  return settled;
}

void Builder::find_ends() {
  for (Automaton::State& state : out_.states) state.ends = state.final;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t s = static_cast<std::uint32_t>(out_.size()); s-- > 0;) {
      for (const Automaton::Call& call : out_.calls_of(s)) {
        if (out_.states[s].ends || !out_.states[call.back].ends || !lowering_.nullable(call.callee)) continue;
        out_.states[s].ends = true;
        changed = true;
      }
    }
  }
}

void Builder::link(std::span<const std::uint32_t> first_of_unit) {
  for (Automaton::Call& call : out_.calls) {
    call.callee = first_of_unit[call.callee];
    if (out_.states[call.back].final && out_.only_ends(call.back)) call.back = Automaton::kNone;
  }
  for (std::uint32_t s = 0; s < out_.size(); ++s)
    out_.states[s].plain = !out_.states[s].final && out_.calls_of(s).empty();
}

}  // namespace

Result<Automaton> Automaton::build(const Rules& rules, const RuleFacts& facts, const CompileBudget& budget) {
  return Builder(rules, facts, budget).run();
}

}  // namespace quire::grammar
