#include "core/grammar/schema/exclusion.h"

#include <algorithm>
#include <set>

#include "core/grammar/schema/alternatives.h"

namespace quire::grammar {
namespace {

constexpr std::uint32_t kMaxPropertyDepth = 4;  // nesting of properties that are compared

bool apart(const Count& a, const Count& b) { return a.most < b.least || b.most < a.least; }

bool names(const Shape& shape, std::string_view name) {
  return shape.requires_member(name) ||
         std::ranges::any_of(shape.members, [&](const auto& one) { return one->schemas_by_name.contains(name); });
}

// Forbids `a` one property that `b` requires and `a` does not name. False: there is none.
bool forbid_one(Shape& a, const Shape& b) {
  for (const std::string& name : b.required) {
    if (names(a, name)) continue;
    a.members.push_back(share({{{name, kNothing}}, {}, kAnything, false}));
    return true;
  }
  return false;
}

}  // namespace

bool Exclusion::keep_apart(Shape& a, const Shape& b) {
  if (disjoint(a, b, 0)) return true;
  if (a.values || b.values) return false;
  budget_.step(1 + b.required.size() * (1 + a.required.size() / 8 + a.members.size()));  // cost of forbid_one()
  const std::uint8_t common = a.types & b.types;
  if ((common & ~kObject) == 0) return forbid_one(a, b);
  Shape others = a;  // `a` without objects
  others.types = static_cast<std::uint8_t>(a.types & ~kObject);
  return (common & kObject) != 0 && disjoint(others, b, 0) && forbid_one(a, b);
}

bool Exclusion::disjoint(const Shape& a, const Shape& b, std::uint32_t depth) {
  budget_.step(4 + (a.required.size() + b.required.size()) * (2 + a.members.size() + b.members.size()));
  if (a.values) return disjoint_values(a, b);
  if (b.values) return disjoint_values(b, a);
  const std::uint8_t common = a.types & b.types;
  if ((common & (kNull | kBoolean)) != 0) return false;
  if ((common & kNumber) != 0) {
    Shape both;
    both.types = kNumber;
    both = merged(both, a, budget_);
    both = merged(both, b, budget_);
    if (!is_empty({both.low, both.high})) return false;
  }
  if ((common & kString) != 0 && !disjoint_strings(a, b)) return false;
  if ((common & kArray) != 0 && !apart(a.num_items, b.num_items)) return false;
  return (common & kObject) == 0 || disjoint_members(a, b, depth);
}

bool Exclusion::disjoint_values(const Shape& listed, const Shape& other) const {
  std::set<std::string_view> its;
  if (other.values) {
    for (const Listed& one : *other.values) its.insert(*one.text);
  }
  budget_.step(listed.values->size() + 2 * its.size());
  return std::ranges::all_of(*listed.values, [&](const Listed& one) {
    return admits(other, *one.value) == false || (other.values && !its.contains(*one.text));
  });
}

bool Exclusion::disjoint_strings(const Shape& a, const Shape& b) {
  if (apart(a.length, b.length)) return true;
  if (!a.text || !b.text) return false;
  return Alternatives::strings(a, budget_).both(Alternatives::strings(b, budget_), budget_).empty();
}

bool Exclusion::disjoint_members(const Shape& a, const Shape& b, std::uint32_t depth) {
  if (apart(a.num_members, b.num_members)) return true;
  const auto excluded_by = [&](const std::string& name) {
    return no_value_is_both(member_schemas(a, name), member_schemas(b, name), depth);
  };
  return std::ranges::any_of(a.required, excluded_by) || std::ranges::any_of(b.required, excluded_by);
}

bool Exclusion::no_value_is_both(const std::vector<SchemaId>& a, const std::vector<SchemaId>& b, std::uint32_t depth) {
  const auto holds_nothing = [](const auto& ids) { return std::ranges::find(ids, kNothing) != ids.end(); };
  if (holds_nothing(a) || holds_nothing(b)) return true;
  if (depth >= kMaxPropertyDepth) return false;
  const auto these = alternatives_.of_if_known(a);
  const auto those = these ? alternatives_.of_if_known(b) : std::nullopt;
  if (!those) return false;
  return std::ranges::all_of(*these, [&](const Shape& one) {
    return std::ranges::all_of(*those, [&](const Shape& other) { return disjoint(one, other, depth + 1); });
  });
}

}  // namespace quire::grammar
