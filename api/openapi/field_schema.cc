#include "api/openapi/field_schema.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>

namespace quire::api {
namespace {

// "string|array" → ["string","array","null"]: a null field counts as not given.
void write_types(JsonWriter& json, std::string_view types, bool may_be_null) {
  json.key("type").begin_array();
  while (!types.empty()) {
    const std::size_t bar = std::min(types.find('|'), types.size());
    json.text(types.substr(0, bar));
    types.remove_prefix(std::min(bar + 1, types.size()));
  }
  if (may_be_null) json.text("null");
  json.end_array();
}

// Writes the part of a field's range that JSON Schema can express; the rest is in the description.
struct Range {
  JsonWriter& json;
  const RequestLimits& limits;

  void operator()(const Flag&) const {}
  void operator()(const Integer& kind) const {
    json.key("minimum").number(kind.lowest);
    json.key("maximum").number(kind.limit != nullptr ? std::int64_t{limits.*kind.limit} : kind.highest);
  }
  void operator()(const Number& kind) const {
    json.key(kind.above ? "exclusiveMinimum" : "minimum").number(kind.lowest).key("maximum").number(kind.highest);
  }
  void operator()(const Text& kind) const { json.key("maxLength").number(std::uint64_t{limits.*kind.max_bytes}); }
  void operator()(const Shaped&) const {}
  void operator()(const Neutral&) const {}
  void operator()(const Hint&) const {}
};

void write_field(JsonWriter& json, const Field& field, bool required, const RequestLimits& limits) {
  std::string range = range_text(field, limits);
  constexpr std::string_view kSeeBelow = "see below";  // in docs/api.md, which has the tables
  if (const std::size_t at = range.find(kSeeBelow); at != range.npos)
    range.replace(at, kSeeBelow.size(), "see docs/api.md");
  std::string words = std::string(field.help) + " (" + range + ")";
  if (!required && *field.fallback != '\0') words += "; default: " + std::string(field.fallback);
  json.key(field.name).begin_object();
  write_types(json, json_type(field), !required);
  std::visit(Range{json, limits}, field.kind);
  json.key("description").text(words).end_object();
}

}  // namespace

void write_body_schema(JsonWriter& json, Endpoint endpoint, std::span<const Field> own,
                       std::span<const std::string_view> required, const RequestLimits& limits) {
  json.begin_object().key("type").text("object").key("required").begin_array();
  for (const std::string_view name : required) json.text(name);
  json.end_array().key("properties").begin_object();
  const auto is_own = [own](const Field& field) {
    return std::ranges::any_of(own, [&](const Field& one) { return std::string_view(one.name) == field.name; });
  };
  const auto write = [&](const Field& field) {
    if ((field.endpoints & endpoint) == 0) return;
    write_field(json, field, std::ranges::count(required, std::string_view(field.name)) != 0, limits);
  };
  for (const Field& field : own) write(field);
  for (const Field& field : shared_fields()) {
    if (!is_own(field)) write(field);
  }
  json.end_object().end_object();
}

}  // namespace quire::api
