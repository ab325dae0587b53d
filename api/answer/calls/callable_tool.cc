#include "api/answer/calls/callable_tool.h"

#include <algorithm>
#include <utility>

namespace quire::api::chat {
namespace {

constexpr std::size_t kMaxSchemaDepth = 64;
constexpr int kMaxFollowed = 16;
constexpr int kMaxVisited = 10'000;  // schemas of one tool, those that several references share counted each time

std::uint8_t types_named(const json::Value& name) {
  if (!name.is_string()) return kAnyType;
  const std::string& text = name.get_string();
  if (text == "string") return kTextType;
  if (text == "number" || text == "integer") return kNumberType;
  if (text == "boolean") return kBoolType;
  if (text == "null") return kNullType;
  if (text == "array") return kArrayType;
  return text == "object" ? kObjectType : kAnyType;
}

// The schema that "#/$defs/Name" points to; null: there is none.
const json::Value* target_of(const json::Value& root, std::string_view reference) {
  if (!reference.starts_with("#/")) return nullptr;
  const json::Value* at = &root;
  for (reference.remove_prefix(2); at != nullptr && !reference.empty();) {
    const std::size_t end = std::min(reference.find('/'), reference.size());
    const json::Object* object = at->if_object();
    at = object != nullptr ? object->if_contains(reference.substr(0, end)) : nullptr;
    reference.remove_prefix(std::min(end + 1, reference.size()));
  }
  return at;
}

struct Root {
  const json::Value& schema;
  int num_visited = 0;
};

std::uint8_t types_of(const json::Value& schema, Root& root, int depth);

std::uint8_t types_of_values(const json::Object& schema, Root& root) {
  if (const json::Value* value = schema.if_contains("const")) return type_of(*value);
  const json::Value* listed = schema.if_contains("enum");
  if (listed == nullptr || !listed->is_array()) return kAnyType;
  root.num_visited += static_cast<int>(std::min<std::size_t>(listed->get_array().size(), kMaxVisited));
  if (root.num_visited > kMaxVisited) return kAnyType;
  std::uint8_t types = 0;
  for (const json::Value& one : listed->get_array()) types |= type_of(one);
  return types;
}

// The types of a keyword that holds a list of schemas: of any of them, or of all.
std::uint8_t types_of_list(const json::Object& schema, std::string_view keyword, Root& root, int depth) {
  const json::Value* list = schema.if_contains(keyword);
  if (list == nullptr || !list->is_array()) return kAnyType;
  const bool all = keyword == "allOf";
  std::uint8_t types = all ? kAnyType : 0;
  for (const json::Value& one : list->get_array()) {
    const std::uint8_t of_one = types_of(one, root, depth + 1);
    types = all ? types & of_one : types | of_one;
  }
  return types;
}

std::uint8_t types_of(const json::Value& schema, Root& root, int depth) {
  const json::Object* object = schema.if_object();
  if (object == nullptr || depth > kMaxFollowed || ++root.num_visited > kMaxVisited) return kAnyType;
  std::uint8_t types = types_of_values(*object, root);
  if (const json::Value* type = object->if_contains("type")) {
    std::uint8_t named = type->is_array() ? 0 : types_named(*type);
    if (type->is_array()) {
      for (const json::Value& one : type->get_array()) named |= types_named(one);
    }
    types &= named;
  }
  if (const json::Value* reference = object->if_contains("$ref"); reference != nullptr && reference->is_string()) {
    const json::Value* target = target_of(root.schema, reference->get_string());
    if (target != nullptr) types &= types_of(*target, root, depth + 1);
  }
  for (const char* keyword : {"allOf", "anyOf", "oneOf"}) types &= types_of_list(*object, keyword, root, depth);
  return types != 0 ? types : std::uint8_t{kAnyType};
}

}  // namespace

ValueType type_of(const json::Value& value) {
  if (value.is_string()) return kTextType;
  if (value.is_number()) return kNumberType;
  if (value.is_bool()) return kBoolType;
  if (value.is_null()) return kNullType;
  return value.is_array() ? kArrayType : kObjectType;
}

namespace {

// Adds the properties of the schema, of the one that it refers to, and of those that must hold as well.
void add_properties(const json::Value& schema, Root& root, int depth, CallableTool& tool) {
  const json::Object* object = schema.if_object();
  if (object == nullptr || depth > kMaxFollowed || ++root.num_visited > kMaxVisited) return;
  const json::Value* properties = object->if_contains("properties");
  if (properties != nullptr && properties->is_object()) {
    for (const json::Member& one : properties->get_object()) {
      tool.types.emplace(one.name, types_of(one.value, root, 0));
    }
  }
  const json::Value* others = object->if_contains("additionalProperties");
  if (others != nullptr && others->is_object() && !object->contains("patternProperties")) {
    tool.other_types = types_of(*others, root, 0);
  }
  if (const json::Value* reference = object->if_contains("$ref"); reference != nullptr && reference->is_string()) {
    const json::Value* target = target_of(root.schema, reference->get_string());
    if (target != nullptr) add_properties(*target, root, depth + 1, tool);
  }
  const json::Value* all = object->if_contains("allOf");
  if (all == nullptr || !all->is_array()) return;
  for (const json::Value& one : all->get_array()) add_properties(one, root, depth + 1, tool);
}

}  // namespace

CallableTool callable_tool(std::string name, std::string_view parameters) {
  CallableTool tool{std::move(name), {}};
  if (parameters.empty()) return tool;
  const Result<json::Value> schema = json::parse(parameters, kMaxSchemaDepth);
  if (!schema) return tool;
  Root root{*schema};
  add_properties(*schema, root, 0, tool);
  return tool;
}

}  // namespace quire::api::chat
