#include "api/openai/fields/grammar_fields.h"

#include <string_view>
#include <utility>

#include "api/openai/fields/read_body.h"
#include "api/openai/json_values.h"

namespace quire::api::openai {
namespace {

using simdjson::dom::element;
using Kind = GrammarText::Kind;

Result<Done> set_grammar(const std::string& path, Kind kind, std::string text, const Services& services,
                         GenerationRequest& request) {
  if (request.grammar_text) {
    return invalid(path, path + " has no place beside " + request.grammar_text->field + ": an answer has one form");
  }
  if (text.size() > services.limits.max_grammar_bytes) {
    return invalid(path, path + " may have at most " + std::to_string(services.limits.max_grammar_bytes) + " bytes");
  }
  request.grammar_text = GrammarText{kind, std::move(text), path};
  return Done{};
}

// A schema as an object, a boolean, or the JSON text of one.
Result<Done> set_schema(const std::string& path, element value, const Services& services, GenerationRequest& request) {
  if (value.is_string()) {
    return set_grammar(path, Kind::kJsonSchema, std::string(value.get_string().value_unsafe()), services, request);
  }
  if (!value.is_object() && !value.is_bool()) return invalid(path, path + " must be a JSON Schema: an object");
  return set_grammar(path, Kind::kJsonSchema, simdjson::minify(value), services, request);
}

Result<Done> set_text(const std::string& path, Kind kind, element value, const Services& services,
                      GenerationRequest& request) {
  if (!value.is_string()) return invalid(path, path + " must be a string");
  return set_grammar(path, kind, std::string(value.get_string().value_unsafe()), services, request);
}

Result<Done> set_choice(const std::string& path, element value, const Services& services, GenerationRequest& request) {
  const std::string expected = path + " must be a list of strings, at least one";
  if (!value.is_array() || array_of(value).size() == 0) return invalid(path, expected);
  const simdjson::dom::array texts = array_of(value);
  for (const element one : texts) {
    if (!one.is_string()) return invalid(path, expected);
  }
  return set_grammar(path, Kind::kChoice, simdjson::minify(value), services, request);
}

Result<Done> read_json_schema(const std::string& path, element value, const Services& services,
                              GenerationRequest& request) {
  if (!value.is_object()) return invalid(path, path + " must be an object with a schema");
  bool has_schema = false;
  const simdjson::dom::object fields = object_of(value);
  for (const auto field : fields) {
    const std::string inner = path + "." + echoed(field.key);
    if (field.value.is_null()) continue;
    if (field.key == "schema") {
      has_schema = true;
      if (Result<Done> set = set_schema(inner, field.value, services, request); !set) return set.error();
    } else if (field.key == "strict") {  // schemas are always held to
      if (const Result<bool> flag = boolean_of(inner, field.value); !flag) return flag.error();
    } else if (field.key == "name" || field.key == "description") {
      if (!field.value.is_string()) return invalid(inner, inner + " must be a string");
    } else if (field.key != "type") {
      pass_over(request, inner);
    }
  }
  if (!has_schema) return invalid(path + ".schema", path + ".schema is missing");
  return Done{};
}

// One of "text", "json_object" and "json_schema".
Result<std::string_view> format_type(const std::string& path, element value) {
  if (!value.is_object()) return invalid(path, path + " must be an object");
  std::string_view type;
  const std::string type_path = path + ".type";
  const bool typed = value["type"].get_string().get(type) == simdjson::SUCCESS;
  if (!typed || (type != "text" && type != "json_object" && type != "json_schema")) {
    return invalid(type_path, type_path + R"( must be "text", "json_object" or "json_schema")");
  }
  return type;
}

}  // namespace

Result<Done> read_response_format(const std::string& path, element value, const Services& services,
                                  GenerationRequest& request) {
  const Result<std::string_view> read = format_type(path, value);
  if (!read) return read.error();
  const std::string_view type = *read;
  const simdjson::dom::object fields = object_of(value);
  for (const auto field : fields) {
    const bool known = field.key == "type" || (field.key == "json_schema" && type == "json_schema");
    if (!known && !field.value.is_null()) pass_over(request, path + "." + echoed(field.key));
  }
  if (type == "text") return Done{};
  if (type == "json_object") return set_grammar(path, Kind::kJsonObject, "", services, request);
  element schema;
  const std::string schema_path = path + ".json_schema";
  if (value["json_schema"].get(schema) != simdjson::SUCCESS) {
    return invalid(schema_path, schema_path + " is missing");
  }
  return read_json_schema(schema_path, schema, services, request);
}

Result<Done> read_flat_format(const std::string& path, element value, const Services& services,
                              GenerationRequest& request) {
  const Result<std::string_view> type = format_type(path, value);
  if (!type) return type.error();
  if (*type == "text") return Done{};
  if (*type == "json_object") return set_grammar(path, Kind::kJsonObject, "", services, request);
  return read_json_schema(path, value, services, request);
}

Result<Done> read_structured_outputs(const std::string& path, element value, const Services& services,
                                     GenerationRequest& request) {
  if (!value.is_object()) return invalid(path, path + " must be an object");
  const simdjson::dom::object fields = object_of(value);
  for (const auto field : fields) {
    if (field.value.is_null()) continue;
    const std::string inner = path + "." + echoed(field.key);
    Result<Done> set = Done{};
    if (field.key == "json") {
      set = set_schema(inner, field.value, services, request);
    } else if (field.key == "regex") {
      set = set_text(inner, Kind::kRegex, field.value, services, request);
    } else if (field.key == "grammar") {
      set = set_text(inner, Kind::kEbnf, field.value, services, request);
    } else if (field.key == "choice") {
      set = set_choice(inner, field.value, services, request);
    } else if (field.key == "json_object") {
      const Result<bool> flag = boolean_of(inner, field.value);
      if (!flag) return flag.error();
      if (*flag) set = set_grammar(inner, Kind::kJsonObject, "", services, request);
    } else if (field.key == "structural_tag" || field.key == "whitespace_pattern") {
      return invalid(inner, inner + " is not supported: leave it out");
    } else if (field.key != "disable_fallback" && field.key != "disable_any_whitespace" &&
               field.key != "disable_additional_properties") {
      pass_over(request, inner);
    } else if (const Result<bool> flag = boolean_of(inner, field.value); !flag) {
      return flag.error();
    } else if (*flag && field.key != "disable_fallback") {  // there is no other engine to fall back to
      return invalid(inner, inner + " is not supported: leave it out");
    }
    if (!set) return set.error();
  }
  return Done{};
}

Result<Done> read_guided_json(const std::string& path, element value, const Services& services,
                              GenerationRequest& request) {
  return set_schema(path, value, services, request);
}

Result<Done> read_guided_regex(const std::string& path, element value, const Services& services,
                               GenerationRequest& request) {
  return set_text(path, Kind::kRegex, value, services, request);
}

Result<Done> read_guided_choice(const std::string& path, element value, const Services& services,
                                GenerationRequest& request) {
  return set_choice(path, value, services, request);
}

Result<Done> read_guided_grammar(const std::string& path, element value, const Services& services,
                                 GenerationRequest& request) {
  return set_text(path, Kind::kEbnf, value, services, request);
}

}  // namespace quire::api::openai
