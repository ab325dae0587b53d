// JSON Schema (drafts 7, 2019-09, 2020-12) as rules: every text of the grammar is valid for the schema.
// Shape   properties are written in the schema's order; the required ones always. An object that names properties has
//         no others unless additionalProperties, patternProperties or unevaluatedProperties allow them. White space and
//         digits are bounded (schema/json_text.h). docs/structured-output.md says what is supported, keyword by
//         keyword.
// Owner   the rules keep no reference to the schema.
// Thread  any one at a time.
// Fails   kInvalidArgument (no param: the caller knows the field), with the JSON pointer of the fault: not a schema, a
//         keyword that cannot be enforced exactly, or a limit exceeded. A schema that no value satisfies is rejected by
//         Grammar::compile(), which knows of recursion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/grammar/rules/rules.h"
#include "core/grammar/rules/write_budget.h"
#include "core/grammar/schema/member_spelling.h"

namespace quire::grammar {

struct SchemaLimits {
  std::size_t max_bytes = 512 * 1024;      // of a schema's text
  std::uint32_t max_depth = 64;            // of nested values
  std::uint32_t max_schemas = 10'000;      // reachable from the root
  std::uint32_t max_properties = 1'000;    // of one object
  std::uint32_t max_values = 5'000;        // of one enum
  std::uint32_t max_shapes = 20'000;       // combinations of anyOf, oneOf and allOf
  std::uint32_t max_text_states = 50'000;  // of patterns, formats and keys
};

Result<json::Value> parse_schema(std::string_view text, const SchemaLimits& limits = {});

// All return the rule of the whole text: 0 if `rules` was empty. `budget` is charged for reading, merging and writing;
// kTimeout: its time is over.
Result<RuleId> json_schema(Rules& rules, const json::Value& schema, WriteBudget& budget,
                           const SchemaLimits& limits = {});
Result<RuleId> json_schema(Rules& rules, const json::Value& schema, const SchemaLimits& limits = {});
// The objects of a schema in this spelling. `is_text`: whether a reader takes every value of the property for a string;
// "": of those that the schema does not name. Of others no string is written that a reader would take for JSON, unless
// the spelling tells. Also fails if a property's name has other characters than letters, digits and _ - . $
Result<RuleId> spelled_object(Rules& rules, const json::Value& schema, const MemberSpelling& spelling,
                              const std::function<bool(std::string_view name)>& is_text, WriteBudget& budget,
                              const SchemaLimits& limits = {});
RuleId json_object(Rules& rules);  // any JSON object

}  // namespace quire::grammar
