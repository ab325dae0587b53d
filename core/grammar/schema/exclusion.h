// Tests if two shapes exclude each other, which oneOf requires of its branches.
// Shape   keep_apart(a, b): true if no text that is written for `a` is valid for `b`. To make that so, it may forbid
//         `a` a property that `a` does not name and `b` requires.
// Fails   keep_apart() returns false if it cannot tell.
#pragma once

#include <cstdint>

#include "core/grammar/schema/shape.h"

namespace quire::grammar {

class Alternatives;

class Exclusion {
 public:
  Exclusion(Alternatives& alternatives, StateBudget& budget) : alternatives_(alternatives), budget_(budget) {}

  bool keep_apart(Shape& a, const Shape& b);

 private:
  bool disjoint(const Shape& a, const Shape& b, std::uint32_t depth);
  bool disjoint_values(const Shape& listed, const Shape& other) const;
  bool disjoint_strings(const Shape& a, const Shape& b);
  bool disjoint_members(const Shape& a, const Shape& b, std::uint32_t depth);
  bool no_value_is_both(const std::vector<SchemaId>& a, const std::vector<SchemaId>& b, std::uint32_t depth);

  Alternatives& alternatives_;
  StateBudget& budget_;
};

}  // namespace quire::grammar
