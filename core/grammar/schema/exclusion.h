// Whether a value can have two shapes: what oneOf has to know of its branches.
// Shape   keep_apart(a, b): no text that is written for `a` is valid for `b`. May forbid `a` a property that it does not name
//         and `b` requires.
// Fails   says no where it cannot tell.
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
