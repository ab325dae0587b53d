#include "core/grammar/automaton/alike.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/grammar/automaton/automaton.h"
#include "core/grammar/automaton/number_row.h"

namespace quire::grammar {
namespace {

class Refinement {
 public:
  explicit Refinement(const Automaton& automaton);

  bool refine();                                      // one round; false if it split no class: then no later one will
  std::vector<std::uint32_t> first_of_class() const;  // by state

 private:
  bool may_call_nothing(std::uint32_t state) const;
  void find_before();
  NumberRow look(std::uint32_t state) const;
  std::uint32_t new_class() {
    size_.push_back(0);
    return static_cast<std::uint32_t>(size_.size() - 1);
  }

  const Automaton& automaton_;
  std::vector<std::uint32_t> class_of_;
  std::vector<std::uint32_t> size_;          // by class: its number of states
  std::vector<std::uint32_t> num_affected_;  // by class: the number of its states in affected_
  std::vector<std::uint32_t> affected_;      // states whose look() may differ in the next round
  std::vector<std::uint32_t> first_before_;  // by state, and one past the last: index into before_
  std::vector<std::uint32_t> before_;        // states from which one byte, or the return of a call, leads there
};

Refinement::Refinement(const Automaton& automaton)
    : automaton_(automaton), class_of_(automaton.size()), size_(2, 0), num_affected_(2, 0) {
  find_before();
  for (std::uint32_t s = 0; s < class_of_.size(); ++s) {
    const bool alone = s == Automaton::kEnd || may_call_nothing(s);
    class_of_[s] = alone ? new_class() : automaton.states[s].ends;
    ++size_[class_of_[s]];
    if (!alone) affected_.push_back(s);
  }
}

bool Refinement::may_call_nothing(std::uint32_t state) const {
  const auto calls = automaton_.calls_of(state);
  return std::any_of(calls.begin(), calls.end(),
                     [&](const Automaton::Call& call) { return automaton_.states[call.callee].ends; });
}

void Refinement::find_before() {
  const auto for_each_step = [this](const auto& visit) {
    for (std::uint32_t s = 0; s < class_of_.size(); ++s) {
      for (const Automaton::Run& run : automaton_.runs_of(s)) visit(s, run.target);
      for (const Automaton::Call& call : automaton_.calls_of(s)) {
        if (call.back != Automaton::kNone) visit(s, call.back);
      }
    }
  };
  first_before_.assign(class_of_.size() + 1, 0);
  for_each_step([this](std::uint32_t, std::uint32_t to) { ++first_before_[to]; });
  std::uint32_t sum = 0;
  for (std::uint32_t& first : first_before_) first = sum += first;
  before_.resize(sum);
  for_each_step([this](std::uint32_t from, std::uint32_t to) { before_[--first_before_[to]] = from; });
}

// The signature of a state: its class, and the classes that its bytes and calls lead to in one step.
NumberRow Refinement::look(std::uint32_t state) const {
  NumberRow seen{class_of_[state]};
  for (const Automaton::Call& call : automaton_.calls_of(state)) {
    seen.push_back(call.callee);
    seen.push_back(call.back == Automaton::kNone ? call.back : class_of_[call.back]);
  }
  seen.push_back(Automaton::kNone);
  std::uint32_t last = Automaton::kNone;
  for (const Automaton::Run& run : automaton_.runs_of(state)) {
    const std::uint32_t target = class_of_[run.target];
    const bool goes_on = target == last && (seen.back() & 0xFF) + 1U == run.first;
    if (goes_on) {
      seen.back() = (seen.back() & 0xFF00U) | run.last;
    } else {
      seen.push_back(target);
      seen.push_back(run.first * 256U + run.last);
    }
    last = target;
  }
  return seen;
}

bool Refinement::refine() {
  num_affected_.assign(size_.size(), 0);
  for (const std::uint32_t s : affected_) ++num_affected_[class_of_[s]];
  // The states of a class that are not affected look as before, and no affected state looks like them: they keep the
  // class's number. If all are affected, those with the first look keep it.
  std::unordered_map<NumberRow, std::uint32_t, NumberRowHash> class_with_look;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> moved;  // a state, its new class
  for (const std::uint32_t s : affected_) {
    const std::uint32_t old = class_of_[s];
    if (size_[old] == 1) continue;
    const auto [at, is_new] = class_with_look.try_emplace(look(s), old);
    if (is_new && num_affected_[old] < size_[old]) at->second = new_class();
    if (is_new && num_affected_[old] == size_[old]) num_affected_[old] = 0;  // the next new look gets a new class
    if (at->second != old) moved.emplace_back(s, at->second);
  }
  for (const auto& [s, to] : moved) {
    --size_[class_of_[s]];
    ++size_[to];
    class_of_[s] = to;
  }
  affected_.clear();
  for (const auto& [s, to] : moved) {
    affected_.insert(affected_.end(), before_.begin() + first_before_[s], before_.begin() + first_before_[s + 1]);
  }
  std::sort(affected_.begin(), affected_.end());
  affected_.erase(std::unique(affected_.begin(), affected_.end()), affected_.end());
  return !moved.empty();
}

std::vector<std::uint32_t> Refinement::first_of_class() const {
  std::vector<std::uint32_t> first(size_.size(), Automaton::kNone);
  std::vector<std::uint32_t> of_state(class_of_.size());
  for (std::uint32_t s = 0; s < of_state.size(); ++s)
    of_state[s] = first[class_of_[s]] = std::min(first[class_of_[s]], s);
  return of_state;
}

}  // namespace

AlikeStates alike_states(const Automaton& automaton) {
  Refinement refinement(automaton);
  AlikeStates alike;
  std::uint32_t num_rounds = 0;
  for (std::size_t i = 0; i < alike.size(); ++i) {
    while (num_rounds < kAlikeBytes[i] && refinement.refine()) ++num_rounds;
    alike[i] = refinement.first_of_class();
  }
  return alike;
}

}  // namespace quire::grammar
