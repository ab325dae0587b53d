#include "api/openapi/field_schema.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>

#include "api/openapi/type_schema.h"

namespace quire::api {
namespace {

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
  write_type(json, json_type(field), !required);  // a null field counts as not given
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
