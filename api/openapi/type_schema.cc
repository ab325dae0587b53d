#include "api/openapi/type_schema.h"

#include <algorithm>
#include <string>

#include "api/json/type_text.h"
#include "api/openapi/shapes/shapes.h"
#include "core/base/check.h"

namespace quire::api {
namespace {

using Types = std::vector<std::string_view>;

bool is_word(std::string_view one) { return one.front() == '\''; }
bool is_list(std::string_view one) { return one.front() == '['; }
bool is_map(std::string_view one) { return one.front() == '{'; }
bool is_name(std::string_view one) { return one.front() >= 'A' && one.front() <= 'Z'; }
std::string_view inside(std::string_view one) { return one.substr(1, one.size() - 2); }

void write_inner(JsonWriter& json, std::string_view key, std::string_view type) {
  json.key(key).begin_object();
  write_type(json, type);
  json.end_object();
}

// The name that JSON Schema has for a type; empty if a "type" alone cannot express it.
std::string_view keyword_of(std::string_view one) {
  if (is_list(one)) return "array";
  if (is_map(one)) return "object";
  return is_word(one) || is_name(one) || one == "any" ? std::string_view() : one;
}

// True if all of them are in one "type", beside which "items" and "additionalProperties" have one meaning.
bool share_a_keyword(const Types& types) {
  const auto is_keyword = [](std::string_view one) { return !keyword_of(one).empty(); };
  const auto is_object = [](std::string_view one) { return keyword_of(one) == "object"; };
  return std::ranges::all_of(types, is_keyword) && std::ranges::count_if(types, is_list) <= 1 &&
         std::ranges::count_if(types, is_object) <= 1;
}

void write_keywords(JsonWriter& json, const Types& types) {
  json.key("type");
  if (types.size() == 1) {
    json.text(keyword_of(types.front()));
  } else {
    json.begin_array();
    for (const std::string_view one : types) json.text(keyword_of(one));
    json.end_array();
  }
  for (const std::string_view one : types) {
    if (is_list(one)) write_inner(json, "items", inside(one));
    if (is_map(one)) write_inner(json, "additionalProperties", inside(one));
  }
}

void write_words(JsonWriter& json, const Types& words) {
  json.key("type").text("string");
  if (words.size() == 1) {
    json.key("const").text(inside(words.front()));
    return;
  }
  json.key("enum").begin_array();
  for (const std::string_view word : words) json.text(inside(word));
  json.end_array();
}

void write_reference(JsonWriter& json, std::string_view name) {
  json.key("$ref").text("#/components/schemas/" + std::string(name));
}

void write_alternatives(JsonWriter& json, const Types& words, const Types& others) {
  json.key("anyOf").begin_array();
  if (!words.empty()) {
    json.begin_object();
    write_words(json, words);
    json.end_object();
  }
  for (const std::string_view one : others) {
    json.begin_object();
    write_type(json, one);
    json.end_object();
  }
  json.end_array();
}

bool may_be_absent(const Member& member) { return member.name.ends_with('?'); }
std::string_view name_of(const Member& member) {
  return member.name.substr(0, member.name.size() - (may_be_absent(member) ? 1 : 0));
}

const Shape& shape_named(std::string_view name) {
  for (const std::span<const Shape> group : all_shapes()) {
    const auto found = std::ranges::find(group, name, &Shape::name);
    if (found != group.end()) return *found;
  }
  check_failed(__FILE__, __LINE__, "a shape of this name", std::string(name));
}

void write_example_of(JsonWriter& json, const Member& member) {
  const bool is_given = !member.example.empty() && member.example != kComposed;
  if (!is_given && may_be_absent(member) && member.example.empty()) return;
  json.key(name_of(member));
  if (is_given) {
    json.written(member.example);
  } else {
    write_example(json, member.type);
  }
}

}  // namespace

std::vector<std::span<const Shape>> all_shapes() {
  return {completion_shapes(), chat_shapes(),   response_shapes(),    message_shapes(),
          tokenizer_shapes(),  server_shapes(), conversation_shapes()};
}

void write_type(JsonWriter& json, std::string_view type, bool may_be_null) {
  Types types = alternatives_of(type);
  if (may_be_null) types.emplace_back("null");
  if (share_a_keyword(types)) return write_keywords(json, types);
  if (types.size() == 1 && is_name(type)) return write_reference(json, type);
  if (types.size() == 1 && type == "any") return;
  Types words;
  Types others;
  for (const std::string_view one : types) (is_word(one) ? words : others).push_back(one);
  if (others.empty()) return write_words(json, words);
  write_alternatives(json, words, others);
}

void write_shape(JsonWriter& json, const Shape& shape) {
  json.begin_object();
  if (!shape.type.empty()) {
    write_type(json, shape.type);
    json.key("description").text(shape.help).end_object();
    return;
  }
  json.key("type").text("object").key("description").text(shape.help).key("required").begin_array();
  for (const std::span<const Member> members : {shape.shared, shape.members}) {
    for (const Member& one : members) {
      if (!may_be_absent(one)) json.text(name_of(one));
    }
  }
  json.end_array().key("properties").begin_object();
  for (const std::span<const Member> members : {shape.shared, shape.members}) {
    for (const Member& one : members) {
      json.key(name_of(one)).begin_object();
      write_type(json, one.type);
      json.key("description").text(one.help).end_object();
    }
  }
  json.end_object();
  if (shape.closed) json.key("additionalProperties").boolean(false);
  json.end_object();
}

void write_example(JsonWriter& json, std::string_view type) {
  const std::string_view one = alternatives_of(type).front();
  if (is_word(one)) {
    json.text(inside(one));
  } else if (is_list(one)) {
    json.begin_array();
    write_example(json, inside(one));
    json.end_array();
  } else if (is_map(one) || one == "object") {
    json.begin_object().end_object();
  } else if (one == "null") {
    json.null();
  } else if (is_name(one)) {
    const Shape& shape = shape_named(one);
    if (!shape.type.empty()) return write_example(json, shape.type);
    json.begin_object();
    for (const Member& member : shape.shared) write_example_of(json, member);
    for (const Member& member : shape.members) write_example_of(json, member);
    json.end_object();
  } else {
    check_failed(__FILE__, __LINE__, "an example of this type in its member", std::string(one));
  }
}

}  // namespace quire::api
