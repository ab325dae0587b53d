// What a value has to be, with nothing left to choose: the keywords of schemas that hold together, merged. A schema is a list
// of shapes, of which a value has to be one (alternatives.h).
// Shape   constraints of a type say nothing about values of the others.
// Owner   values; what is large and never changes is shared.
// Fails   LanguageTooLarge and TooManySteps are thrown: what is merged, settled and listed is charged to the budget.
// Thread  one at a time.
// Source  ours: disjunctive normal form, but only of what applies to the value itself. What it holds inside are lists of
//         SchemaIds, each list one schema that asks for all of them, so that recursion ends.
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
#include "core/grammar/schema/document.h"
#include "core/grammar/schema/language.h"
#include "core/grammar/schema/number_range.h"

namespace quire::grammar {

enum Type : std::uint8_t {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kFraction = 8,  // a number that need not be an integer
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
  std::shared_ptr<const std::string> text;  // the same for values that are equal as JSON Schema has it: 1 is 1.0
};

// The keywords of one schema about the members of an object; shared by the shapes that it is merged into.
struct Members {
  struct Pattern {
    std::shared_ptr<const Language> names;
    SchemaId schema = kAnything;
  };
  std::vector<std::pair<std::string, SchemaId>> named;
  std::vector<Pattern> patterns;
  SchemaId others = kAnything;
  bool speaks_of_others = false;  // additionalProperties is there
  std::map<std::string_view, std::vector<SchemaId>> schemas_by_name =
      {};  // of `named`, which it views: share() fills it
};
std::shared_ptr<const Members> share(Members members);

// The keywords of one schema about the items of an array; shared likewise.
struct Items {
  std::vector<SchemaId> first;
  SchemaId others = kAnything;
  bool speaks_of_others = false;
};

struct Shape {
  std::uint8_t types = kAnyType;
  std::optional<std::vector<Listed>> values;  // no others

  std::optional<Bound> low;
  std::optional<Bound> high;
  std::uint32_t multiple_of = 0;  // 0: of nothing

  Count length;
  std::shared_ptr<const Language> text;  // null: any

  Count num_items;
  std::vector<std::shared_ptr<const Items>> items;
  bool unique_items = false;

  Count num_members;
  std::vector<std::shared_ptr<const Members>> members;
  std::vector<std::string> required;  // each once
  std::vector<SchemaId> names;        // of keys

  bool constrains_items() const { return !items.empty() || unique_items || num_items.least > 0 || has_most(num_items); }
  bool constrains_members() const {
    return !members.empty() || !required.empty() || !names.empty() || num_members.least > 0 || has_most(num_members);
  }
  bool requires_member(std::string_view name) const;
  static bool has_most(const Count& count) { return count.most != kUnbounded; }
};

std::uint8_t type_of(const json::Value& value);  // one bit; 1.0 is an integer

Listed listed(const json::Value& value, StateBudget& budget);

// Both shapes at once.
Shape merged(const Shape& a, const Shape& b, StateBudget& budget);

// Takes away the types and values that can be seen to be impossible. False: nothing is left.
bool settle(Shape& shape, StateBudget& budget);

// Whether a value has the shape; nothing where that depends on the inside of an array or an object.
std::optional<bool> admits(const Shape& shape, const json::Value& value);

// The schemas that the member `name`, or the item at `index`, has to match together. kNothing among them: it may not be there.
std::vector<SchemaId> member_schemas(const Shape& shape, std::string_view name);
std::vector<SchemaId> item_schemas(const Shape& shape, std::size_t index);

}  // namespace quire::grammar
