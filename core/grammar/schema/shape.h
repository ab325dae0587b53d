// A conjunction of constraints on a value: the merged keywords of schemas that hold together, with no alternatives
// left. A schema is a list of shapes, and a value has to have one of them (alternatives.h).
// Shape   constraints of one type do not restrict values of other types.
// Owner   values; large constant parts are shared.
// Fails   throws LanguageTooLarge and what WriteBudget throws: the budget is charged for merging, settling and listing.
// Thread  one at a time.
// Source  ours: disjunctive normal form, but only of constraints on the value itself. Members and items have lists of
//         SchemaIds, each list one schema that requires all of them, so that recursion ends.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/grammar/language/language.h"
#include "core/grammar/schema/document.h"
#include "core/grammar/schema/number_range.h"

namespace quire::grammar {

enum Type : std::uint8_t {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kFraction = 8,  // numbers that are not integers
  kNumber = kInteger | kFraction,
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAnyType = 127,
};

struct Count {
  std::uint32_t least = 0;
  std::uint32_t most = kUnbounded;
  bool empty() const { return least > most; }
};

// A value of an enum or a const.
struct Listed {
  const json::Value* value;
  std::shared_ptr<const std::string> text;  // canonical: equal for values that JSON Schema calls equal, as 1 and 1.0
};

// The keywords of one schema about the members of an object; shared by the shapes that they are merged into.
struct Members {
  struct Pattern {
    std::shared_ptr<const Language> names;
    SchemaId schema = kAnything;
  };
  std::vector<std::pair<std::string, SchemaId>> named;
  std::vector<Pattern> patterns;
  SchemaId others = kAnything;
  bool names_others = false;  // additionalProperties or unevaluatedProperties is present
  // Index of `named`, whose strings it borrows; share() fills it.
  std::map<std::string_view, std::vector<SchemaId>> schemas_by_name = {};
};
std::shared_ptr<const Members> share(Members members);

// The keywords of one schema about the items of an array; shared in the same way.
struct Items {
  std::vector<SchemaId> first;
  SchemaId others = kAnything;
  bool names_others = false;
};

struct Shape {
  std::uint8_t types = kAnyType;
  std::optional<std::vector<Listed>> values;  // if set, no other value is valid

  std::optional<Bound> low;
  std::optional<Bound> high;
  std::uint32_t multiple_of = 0;  // 0: no constraint

  Count length;
  std::shared_ptr<const Language> text;  // null: any

  Count num_items;
  std::vector<std::shared_ptr<const Items>> items;
  bool unique_items = false;

  Count num_members;
  std::vector<std::shared_ptr<const Members>> members;
  std::vector<std::string> required;  // each once
  std::vector<SchemaId> names;        // schemas of the keys

  bool constrains_items() const { return !items.empty() || unique_items || num_items.least > 0 || has_most(num_items); }
  bool constrains_members() const {
    return !members.empty() || !required.empty() || !names.empty() || num_members.least > 0 || has_most(num_members);
  }
  bool requires_member(std::string_view name) const;
  static bool has_most(const Count& count) { return count.most != kUnbounded; }
};

std::uint8_t type_of(const json::Value& value);  // one bit; 1.0 is an integer

Listed listed(const json::Value& value, StateBudget& budget);

// The shape of values that have both shapes.
Shape merged(const Shape& a, const Shape& b, StateBudget& budget);

// Removes types and values that are recognisably impossible. False: nothing is left.
bool settle(Shape& shape, StateBudget& budget);

// True if a value has the shape; none if that depends on the inside of an array or an object, or on the digits of a
// number of which decimal_of() knows none.
std::optional<bool> admits(const Shape& shape, const json::Value& value);

// The schemas that the member `name`, or the item at `index`, has to match together. kNothing: it is forbidden.
std::vector<SchemaId> member_schemas(const Shape& shape, std::string_view name);
std::vector<SchemaId> item_schemas(const Shape& shape, std::size_t index);

}  // namespace quire::grammar
