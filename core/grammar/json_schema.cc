#include "core/grammar/json_schema.h"

#include <string>

#include "core/grammar/schema/json_text.h"
#include "core/grammar/schema/schema_writer.h"

namespace quire::grammar {
namespace {

Error refused(std::string_view pointer, std::string_view message) {
  return invalid("", "schema: #" + shown(pointer) + " " + std::string(message));
}

// True if the value is nested more than `most` deep. A document that parse_schema() did not parse may be, and the code
// below recurses into it.
bool is_deeper(const json::Value& value, std::uint32_t most) {
  if (most == 0) return value.is_array() || value.is_object();
  if (const auto* array = value.if_array()) {
    for (const auto& item : *array) {
      if (is_deeper(item, most - 1)) return true;
    }
  }
  if (const auto* object = value.if_object()) {
    for (const auto& item : *object) {
      if (is_deeper(item.value, most - 1)) return true;
    }
  }
  return false;
}

}  // namespace

Result<json::Value> parse_schema(std::string_view text, const SchemaLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return invalid(
        "", "schema: has " + std::to_string(text.size()) + " bytes; the limit is " + std::to_string(limits.max_bytes));
  }
  Result<json::Value> value = json::parse(text, limits.max_depth);
  if (!value) return refused("", value.error().message);
  return value;
}

namespace {

// `spelling`: null: JSON.
Result<RuleId> write(Rules& rules, const json::Value& schema, const SpelledMembers* members, WriteBudget& steps,
                     const SchemaLimits& limits) try {
  if (is_deeper(schema, limits.max_depth)) {
    return refused("", "is nested more than " + std::to_string(limits.max_depth) + " deep");
  }
  StateBudget budget(limits.max_text_states, &steps);
  Document document(schema, limits.max_schemas, budget);
  Alternatives alternatives(document, {{limits.max_properties, limits.max_values}, limits.max_shapes}, budget);
  const auto root = static_cast<RuleId>(rules.rules().size());  // the first one declared
  SchemaWriter writer(rules, document, alternatives, budget);
  members != nullptr ? writer.write_members(*members) : writer.write();
  return root;
} catch (const Refusal& refusal) {
  return refused(refusal.pointer, refusal.message);
} catch (const TooManySteps& error) {
  return refused("", "takes more than " + std::to_string(error.limit) +
                         " steps to write as a grammar: combine fewer alternatives of many properties or values");
} catch (const TooLate& error) {
  return Error{
      Code::kTimeout,
      "schema: takes longer than " + std::to_string(error.limit.count()) + " ms to write as a grammar: simplify it", "",
      0};
}

}  // namespace

Result<RuleId> json_schema(Rules& rules, const json::Value& schema, WriteBudget& budget, const SchemaLimits& limits) {
  return write(rules, schema, nullptr, budget, limits);
}

Result<RuleId> spelled_object(Rules& rules, const json::Value& schema, const MemberSpelling& spelling,
                              const std::function<bool(std::string_view name)>& is_text, WriteBudget& budget,
                              const SchemaLimits& limits) {
  const SpelledMembers members{spelling, is_text};
  return write(rules, schema, &members, budget, limits);
}

Result<RuleId> json_schema(Rules& rules, const json::Value& schema, const SchemaLimits& limits) {
  WriteBudget budget;
  return json_schema(rules, schema, budget, limits);
}

RuleId json_object(Rules& rules) {
  const RuleId root = rules.declare("json object");
  rules.define(root, JsonText(rules).any_object());
  return root;
}

}  // namespace quire::grammar
