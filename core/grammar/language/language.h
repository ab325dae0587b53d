// A regular language of byte strings as a deterministic automaton in a table. Patterns, formats and keys are
// intersected, united and subtracted in this form before they are written into Rules.
// Shape   states [S]; 0 is the dead state. next [S, C], C classes of bytes that no state tells apart.
// Owner   values. Thread  any.
// Fails   throws LanguageTooLarge if a StateBudget is used up, and what WriteBudget throws.
// Source  subset construction (Rabin and Scott 1959) and the product of two automata.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/grammar/rules/rules.h"
#include "core/grammar/rules/write_budget.h"

namespace quire::grammar {

struct LanguageTooLarge {
  std::uint32_t limit = 0;
};

// Limits the states that are made for one schema, and charges its steps to the budget of the whole grammar.
class StateBudget {
 public:
  explicit StateBudget(std::uint32_t max_states, WriteBudget* steps = nullptr)
      : limit_(max_states), left_(max_states), steps_(steps) {}
  void take(std::uint32_t states = 1);
  void step(std::uint64_t steps = 1) {
    if (steps_ != nullptr) steps_->step(steps);
  }
  void step_over(std::string_view text) {
    if (steps_ != nullptr) steps_->step_over(text);
  }
  [[noreturn]] void fail() const { throw LanguageTooLarge{limit_}; }

 private:
  std::uint32_t limit_;
  std::uint32_t left_;
  WriteBudget* steps_;  // null: steps are not counted
};

class Language {
 public:
  static Language of(const Rules& rules, Expr expr, StateBudget& budget);  // an expression that uses no rules
  static Language of_utf8(StateBudget& budget);                            // every well-formed text
  static Language multiples(std::uint32_t divisor, StateBudget& budget);   // integers in decimal digits, signed or not

  Language both(const Language& other, StateBudget& budget) const;
  Language either(const Language& other, StateBudget& budget) const;
  Language without(const Language& other, StateBudget& budget) const;
  Language with_length(std::uint32_t least, std::uint32_t most, StateBudget& budget) const;  // in code points

  bool empty() const { return start_ == 0; }
  bool contains(std::string_view text) const;

  Expr write(Rules& rules) const;              // the strings as they are
  Expr write_json_string(Rules& rules) const;  // quoted, as a JSON string whose value is in the set

 private:
  friend class LanguageWriter;
  Language() = default;
  enum class Combine : std::uint8_t { kBoth, kEither, kWithout };
  Language combine(const Language& other, Combine how, StateBudget& budget) const;
  std::uint32_t next(std::uint32_t state, unsigned char byte) const {
    return next_[state * num_classes_ + class_of_[byte]];
  }
  void drop_dead_ends();

  std::array<std::uint8_t, 256> class_of_{};
  std::uint32_t num_classes_ = 1;
  std::uint32_t start_ = 0;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint8_t> final_;  // [S]
};

}  // namespace quire::grammar
