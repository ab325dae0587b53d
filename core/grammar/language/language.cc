#include "core/grammar/language/language.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/check.h"

namespace quire::grammar {
namespace {

constexpr std::uint32_t kNoSet = kUnbounded;

// A nondeterministic automaton: state s goes to edge_to on a byte of set `set`, and to each of `free` without a byte.
struct Choices {
  struct State {
    std::uint32_t set = kNoSet;
    std::uint32_t edge_to = 0;
    std::vector<std::uint32_t> free;
  };
  const Rules& rules;
  StateBudget& budget;
  std::vector<State> states;
  std::vector<ByteSet> sets;

  std::uint32_t add_state() {
    budget.take();
    states.emplace_back();
    return static_cast<std::uint32_t>(states.size() - 1);
  }

  std::uint32_t add_set(const ByteSet& set) {
    const auto found = std::find(sets.begin(), sets.end(), set);
    if (found != sets.end()) return static_cast<std::uint32_t>(found - sets.begin());
    sets.push_back(set);
    return static_cast<std::uint32_t>(sets.size() - 1);
  }

  std::uint32_t read_set(std::uint32_t from, const ByteSet& set) {
    const std::uint32_t to = add_state();
    states[from].set = add_set(set);
    states[from].edge_to = to;
    return to;
  }

  std::uint32_t add_free(std::uint32_t from) {  // a new state, since at most one edge leaves a state
    const std::uint32_t to = add_state();
    states[from].free.push_back(to);
    return to;
  }

  // Adds `expr` after the state `from`, which has no edge yet; returns its end state, which has none either.
  std::uint32_t read(Expr expr, std::uint32_t from) {
    const Node& node = rules.nodes()[expr];
    switch (node.kind) {
      case Node::Kind::kBytes:
        for (const char c : node.bytes) from = read_set(from, ByteSet{}.set(static_cast<unsigned char>(c)));
        return from;
      case Node::Kind::kByteSet:
        return read_set(from, node.set);
      case Node::Kind::kSequence:
        for (const Expr part : node.parts) from = read(part, from);
        return from;
      case Node::Kind::kChoice: {
        const std::uint32_t end = add_state();
        for (const Expr part : node.parts) {
          const std::uint32_t part_end = read(part, add_free(from));
          states[part_end].free.push_back(end);
        }
        return end;
      }
      case Node::Kind::kRepeat:
        return read_repeat(node, from);
      case Node::Kind::kRule:
        CHECK(false);
    }
    return from;
  }

  std::uint32_t read_repeat(const Node& node, std::uint32_t from) {
    for (std::uint32_t i = 0; i < node.least; ++i) from = read(node.parts[0], from);
    const std::uint32_t end = add_state();
    if (node.most == kUnbounded) {
      const std::uint32_t loop = add_free(from);
      states[loop].free.push_back(end);
      const std::uint32_t body_end = read(node.parts[0], add_free(loop));
      states[body_end].free.push_back(loop);
      return end;
    }
    for (std::uint32_t i = node.least; i < node.most; ++i) {
      states[from].free.push_back(end);
      from = read(node.parts[0], add_free(from));
    }
    states[from].free.push_back(end);
    return end;
  }

  // The states of `todo` and all that they reach without a byte, ascending.
  std::vector<std::uint32_t> closure(std::vector<std::uint32_t> todo) const {
    std::set<std::uint32_t> reached(todo.begin(), todo.end());
    while (!todo.empty()) {
      const std::uint32_t state = todo.back();
      todo.pop_back();
      for (const std::uint32_t to : states[state].free) {
        if (reached.insert(to).second) todo.push_back(to);
      }
    }
    return {reached.begin(), reached.end()};
  }
};

// Classifies bytes: two have the same class if every set holds both or neither. Returns the number of classes.
std::uint32_t classify(const std::vector<ByteSet>& sets, std::array<std::uint8_t, 256>& class_of) {
  class_of.fill(0);
  std::uint32_t num_classes = 1;
  for (const ByteSet& set : sets) {
    std::map<std::pair<std::uint8_t, bool>, std::uint8_t> split;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const auto key = std::pair{class_of[byte], static_cast<bool>(set[byte])};
      class_of[byte] = split.emplace(key, static_cast<std::uint8_t>(split.size())).first->second;
    }
    num_classes = static_cast<std::uint32_t>(split.size());
  }
  return num_classes;
}

}  // namespace

void StateBudget::take(std::uint32_t states) {
  if (states > left_) fail();
  left_ -= states;
}

Language Language::of(const Rules& rules, Expr expr, StateBudget& budget) {
  Choices choices{rules, budget, {}, {}};
  const std::uint32_t begin = choices.add_state();
  const std::uint32_t end = choices.read(expr, begin);

  Language out;
  out.num_classes_ = classify(choices.sets, out.class_of_);
  std::vector<std::vector<std::uint8_t>> classes_of_set(choices.sets.size());
  for (std::size_t i = 0; i < choices.sets.size(); ++i) {
    std::set<std::uint8_t> classes;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (choices.sets[i][byte]) classes.insert(out.class_of_[byte]);
    }
    classes_of_set[i].assign(classes.begin(), classes.end());
  }

  std::map<std::vector<std::uint32_t>, std::uint32_t> number{{{}, 0}};
  std::vector<std::vector<std::uint32_t>> members{{}};
  const auto state_of = [&](std::vector<std::uint32_t> some) {
    auto closed = choices.closure(std::move(some));
    const auto [place, fresh] = number.emplace(closed, static_cast<std::uint32_t>(members.size()));
    if (fresh) {
      budget.take(1 + static_cast<std::uint32_t>(closed.size() / 16));
      members.push_back(std::move(closed));
    }
    return place->second;
  };
  out.start_ = state_of({begin});
  for (std::size_t state = 0; state < members.size(); ++state) {
    std::vector<std::vector<std::uint32_t>> to(out.num_classes_);
    for (const std::uint32_t member : members[state]) {
      const Choices::State& from = choices.states[member];
      if (from.set == kNoSet) continue;
      for (const std::uint8_t c : classes_of_set[from.set]) to[c].push_back(from.edge_to);
    }
    out.final_.push_back(std::binary_search(members[state].begin(), members[state].end(), end));
    for (auto& some : to) out.next_.push_back(some.empty() ? 0 : state_of(std::move(some)));
  }
  out.drop_dead_ends();
  return out;
}

Language Language::of_utf8(StateBudget& budget) {
  Rules rules;
  return of(rules, rules.repeat(rules.code_points(0, 0x10FFFF), 0, kUnbounded), budget);
}

Language Language::multiples(std::uint32_t divisor, StateBudget& budget) {
  constexpr std::uint32_t kOther = 10, kMinus = 11, kClasses = 12;  // digits are the classes 0 to 9
  budget.take(divisor + 2);
  Language out;
  out.class_of_.fill(kOther);
  for (std::uint8_t digit = 0; digit < 10; ++digit) out.class_of_['0' + digit] = digit;
  out.class_of_['-'] = kMinus;
  out.num_classes_ = kClasses;
  out.start_ = divisor + 1;  // 1 + r: the digits so far leave r
  out.final_.assign(divisor + 2, 0);
  out.final_[1] = 1;
  out.next_.assign((divisor + std::size_t{2}) * kClasses, 0);
  for (std::uint32_t rest = 0; rest < divisor; ++rest) {
    for (std::uint32_t digit = 0; digit < 10; ++digit) {
      out.next_[(rest + 1) * kClasses + digit] =
          1 + static_cast<std::uint32_t>((std::uint64_t{rest} * 10 + digit) % divisor);
    }
  }
  for (std::uint32_t digit = 0; digit < 10; ++digit) out.next_[out.start_ * kClasses + digit] = 1 + digit % divisor;
  out.next_[out.start_ * kClasses + kMinus] = out.start_;
  return out;
}

Language Language::both(const Language& other, StateBudget& budget) const {
  return combine(other, Combine::kBoth, budget);
}
Language Language::either(const Language& other, StateBudget& budget) const {
  return combine(other, Combine::kEither, budget);
}
Language Language::without(const Language& other, StateBudget& budget) const {
  return combine(other, Combine::kWithout, budget);
}

Language Language::combine(const Language& other, Combine how, StateBudget& budget) const {
  Language out;
  std::map<std::pair<std::uint8_t, std::uint8_t>, std::uint8_t> classes;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto key = std::pair{class_of_[byte], other.class_of_[byte]};
    out.class_of_[byte] = classes.emplace(key, static_cast<std::uint8_t>(classes.size())).first->second;
  }
  out.num_classes_ = static_cast<std::uint32_t>(classes.size());

  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  std::map<Pair, std::uint32_t> number{{{0, 0}, 0}};
  std::vector<Pair> pairs{{0, 0}};
  const auto state_of = [&](Pair pair) {
    if (how == Combine::kBoth && (pair.first == 0 || pair.second == 0)) pair = {0, 0};
    if (how == Combine::kWithout && pair.first == 0) pair = {0, 0};
    const auto [place, fresh] = number.emplace(pair, static_cast<std::uint32_t>(pairs.size()));
    if (fresh) {
      budget.take();
      pairs.push_back(pair);
    }
    return place->second;
  };
  out.start_ = state_of({start_, other.start_});
  for (std::size_t state = 0; state < pairs.size(); ++state) {
    const Pair from = pairs[state];
    const bool a = final_[from.first] != 0;
    const bool b = other.final_[from.second] != 0;
    out.final_.push_back(how == Combine::kBoth ? a && b : how == Combine::kEither ? a || b : a && !b);
    out.next_.resize(out.next_.size() + out.num_classes_);
    for (const auto& [key, c] : classes) {
      const std::uint32_t to = state_of(
          {next_[from.first * num_classes_ + key.first], other.next_[from.second * other.num_classes_ + key.second]});
      out.next_[state * out.num_classes_ + c] = to;
    }
  }
  out.drop_dead_ends();
  return out;
}

Language Language::with_length(std::uint32_t least, std::uint32_t most, StateBudget& budget) const {
  if (least == 0 && most == kUnbounded) return *this;
  const std::uint32_t enough = most == kUnbounded ? least : most;  // lengths are counted up to here
  Language out;
  std::vector<ByteSet> sets(num_classes_ + 1);
  for (unsigned byte = 0; byte < 256; ++byte) sets[class_of_[byte]].set(byte);
  for (unsigned byte = 0x80; byte < 0xC0; ++byte) sets[num_classes_].set(byte);  // bytes that begin no code point
  out.num_classes_ = classify(sets, out.class_of_);
  std::vector<unsigned char> sample(out.num_classes_);
  for (unsigned byte = 0; byte < 256; ++byte) sample[out.class_of_[byte]] = static_cast<unsigned char>(byte);

  using Pair = std::pair<std::uint32_t, std::uint32_t>;  // state, code points begun
  std::map<Pair, std::uint32_t> number{{{0, 0}, 0}};
  std::vector<Pair> pairs{{0, 0}};
  const auto state_of = [&](Pair pair) {
    if (pair.first == 0) pair.second = 0;
    const auto [place, fresh] = number.emplace(pair, static_cast<std::uint32_t>(pairs.size()));
    if (fresh) {
      budget.take();
      pairs.push_back(pair);
    }
    return place->second;
  };
  out.start_ = state_of({start_, 0});
  for (std::size_t state = 0; state < pairs.size(); ++state) {
    const Pair from = pairs[state];
    out.final_.push_back(final_[from.first] != 0 && from.second >= least);
    out.next_.resize(out.next_.size() + out.num_classes_);
    for (std::uint32_t c = 0; c < out.num_classes_; ++c) {
      const bool begins = (sample[c] & 0xC0) != 0x80;
      Pair to{next(from.first, sample[c]), from.second};
      if (begins && to.first != 0) {
        if (from.second == enough && most != kUnbounded) to = {0, 0};
        to.second = std::min(enough, to.second + 1);
      }
      out.next_[state * out.num_classes_ + c] = state_of(to);
    }
  }
  out.drop_dead_ends();
  return out;
}

bool Language::contains(std::string_view text) const {
  if (empty()) return false;
  std::uint32_t state = start_;
  for (const char c : text) state = next(state, static_cast<unsigned char>(c));
  return final_[state] != 0;
}

void Language::drop_dead_ends() {
  const auto num_states = static_cast<std::uint32_t>(final_.size());
  std::vector<std::vector<std::uint32_t>> into(num_states);
  for (std::uint32_t state = 0; state < num_states; ++state) {
    for (std::uint32_t c = 0; c < num_classes_; ++c) into[next_[state * num_classes_ + c]].push_back(state);
  }
  std::vector<std::uint8_t> alive = final_;
  std::vector<std::uint32_t> todo;
  for (std::uint32_t state = 0; state < num_states; ++state) {
    if (alive[state] != 0) todo.push_back(state);
  }
  while (!todo.empty()) {
    const std::uint32_t state = todo.back();
    todo.pop_back();
    for (const std::uint32_t from : into[state]) {
      if (std::exchange(alive[from], 1) == 0) todo.push_back(from);
    }
  }
  for (std::uint32_t& to : next_) {
    if (alive[to] == 0) to = 0;
  }
  if (alive[start_] == 0) start_ = 0;
}

}  // namespace quire::grammar
