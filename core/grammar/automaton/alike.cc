#include "core/grammar/automaton/alike.h"

#include <algorithm>
#include <unordered_map>

#include "core/grammar/automaton/number_row.h"

namespace quire::grammar {
namespace {

bool may_call_nothing(const Automaton& automaton, std::uint32_t state) {
  const auto calls = automaton.calls_of(state);
  return std::any_of(calls.begin(), calls.end(),
                     [&](const Automaton::Call& call) { return automaton.states[call.callee].ends; });
}

// What is seen of a state in one step, where states of one class look the same.
NumberRow look(const Automaton& automaton, std::uint32_t state, const std::vector<std::uint32_t>& class_of) {
  NumberRow seen{automaton.states[state].ends};
  for (const Automaton::Call& call : automaton.calls_of(state)) {
    seen.push_back(call.callee);
    seen.push_back(call.back == Automaton::kNone ? call.back : class_of[call.back]);
  }
  seen.push_back(Automaton::kNone);
  std::uint32_t last = Automaton::kNone;
  for (const Automaton::Run& run : automaton.runs_of(state)) {
    const std::uint32_t target = class_of[run.target];
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

}  // namespace

std::vector<std::uint32_t> alike_states(const Automaton& automaton) {
  const auto num_states = static_cast<std::uint32_t>(automaton.size());
  std::vector<std::uint32_t> class_of(num_states);  // the first state of the class
  std::vector<std::uint32_t> class_size(num_states, 0);
  std::vector<std::uint8_t> alone(num_states);
  std::vector<std::uint32_t> first_with(2, Automaton::kNone);
  std::size_t num_classes = 0;
  const auto join = [&](std::uint32_t state, std::uint32_t first, std::vector<std::uint32_t>& classes) {
    classes[state] = first;
    num_classes += ++class_size[first] == 1;
  };
  for (std::uint32_t s = 0; s < num_states; ++s) {
    alone[s] = s == Automaton::kEnd || may_call_nothing(automaton, s);
    std::uint32_t& first = first_with[automaton.states[s].ends];
    if (first == Automaton::kNone && !alone[s]) first = s;
    join(s, alone[s] ? s : first, class_of);
  }
  for (std::uint32_t round = 0; round < kAlikeBytes; ++round) {
    const std::size_t before = num_classes;
    std::vector<std::uint32_t> next(num_states);
    std::unordered_map<NumberRow, std::uint32_t, NumberRowHash> seen;
    for (std::uint32_t s = 0; s < num_states; ++s) alone[s] |= class_size[class_of[s]] == 1;
    std::fill(class_size.begin(), class_size.end(), 0);
    num_classes = 0;
    for (std::uint32_t s = 0; s < num_states; ++s) {
      join(s, alone[s] ? s : seen.try_emplace(look(automaton, s, class_of), s).first->second, next);
    }
    class_of = std::move(next);
    if (num_classes == before) break;
  }
  return class_of;
}

}  // namespace quire::grammar
