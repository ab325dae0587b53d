#include "api/fields/grammar_fields.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "api/fields/read_body.h"
#include "api/json/json_values.h"

namespace quire::api {
namespace {

using simdjson::dom::element;
using Kind = GrammarText::Kind;

Result<Done> set_grammar(const std::string& path, Kind kind, std::string text, const Services& services,
                         GenerationRequest& request) {
  if (request.grammar_text && request.grammar_text->kind == kind && request.grammar_text->text == text) return Done{};
  if (request.grammar_text) {
    return invalid(path, path + " cannot be combined with " + request.grammar_text->field + ": leave one of them out");
  }
  if (text.size() > services.limits.max_grammar_bytes) {
    return invalid(path, path + " may have at most " + std::to_string(services.limits.max_grammar_bytes) + " bytes");
  }
  request.grammar_text = GrammarText{kind, std::move(text), path};
  return Done{};
}

// Sets a schema: an object, a boolean, or the JSON text of one.
Result<Done> set_schema(const std::string& path, element value, const Services& services, GenerationRequest& request) {
  if (value.is_string()) {
    const std::string text(value.get_string().value_unsafe());
    simdjson::dom::parser parser;
    element schema;  // minified below, so that a text equals the object that it spells
    const bool is_json = parser.parse(text).get(schema) == simdjson::SUCCESS;
    return set_grammar(path, Kind::kJsonSchema, is_json ? simdjson::minify(schema) : text, services, request);
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
    } else if (field.key == "strict") {  // ignored: schemas are always enforced
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

Result<std::string_view> format_type(const std::string& path, element value) {
  if (!value.is_object()) return invalid(path, path + " must be an object");
  std::string_view type;
  const std::string type_path = path + ".type";
  if (value["type"].get_string().get(type) != simdjson::SUCCESS) {
    return invalid(type_path, type_path + R"( must be "text", "json_object" or "json_schema")");
  }
  return type;
}

// Reads one member of a format. False: it does not constrain the answer.
Result<bool> read_member(const std::string& path, std::string_view type, std::string_view key, element value,
                         const Services& services, GenerationRequest& request) {
  const auto after = [](const Result<Done>& set) { return set ? Result<bool>(true) : Result<bool>(set.error()); };
  const bool is_json = type == "json_object" || type == "json" || type == "json_schema";
  if (key == "json_schema" && is_json) return after(read_json_schema(path, value, services, request));
  if ((key == "schema" || key == "value") && is_json) return after(set_schema(path, value, services, request));
  if (key == "value" && type == "regex") return after(set_text(path, Kind::kRegex, value, services, request));
  if (key == "grammar" && type == "grammar") return after(set_text(path, Kind::kEbnf, value, services, request));
  if (key == "json_schema" || key == "schema" || key == "value" || key == "grammar" || key == "pattern") {
    return invalid(path, path + " is not supported in a format of type \"" + echoed(type) + "\"");
  }
  return false;
}

}  // namespace

// Accepts more than OpenAI's three types: a schema beside "json_object", as many servers do, and the types "json",
// "regex" and "grammar" of Text Generation Inference and Fireworks. A member that constrains the answer is never
// ignored.
Result<Done> read_response_format(const std::string& path, element value, const Services& services,
                                  GenerationRequest& request) {
  const Result<std::string_view> read = format_type(path, value);
  if (!read) return read.error();
  const std::string_view type = *read;
  constexpr std::string_view kTypes[] = {"text", "json_object", "json_schema", "json", "regex", "grammar"};
  if (std::ranges::find(kTypes, type) == std::end(kTypes)) {
    return invalid(path + ".type", path + R"(.type must be "text", "json_object" or "json_schema")");
  }
  bool has_form = type == "text";
  const simdjson::dom::object fields = object_of(value);
  for (const auto field : fields) {
    if (field.value.is_null() || field.key == "type") continue;
    const std::string inner = path + "." + echoed(field.key);
    const Result<bool> is_form = read_member(inner, type, field.key, field.value, services, request);
    if (!is_form) return is_form.error();
    has_form = has_form || *is_form;
    const bool is_note = field.key == "name" || field.key == "description" || field.key == "strict";
    if (!*is_form && !(is_note && type == "json_schema")) pass_over(request, inner);
  }
  if (has_form) return Done{};
  if (type == "json_object" || type == "json") return set_grammar(path, Kind::kJsonObject, "", services, request);
  const std::string missing = path + (type == "json_schema" ? ".json_schema" : type == "regex" ? ".value" : ".grammar");
  return invalid(missing, missing + " is missing");
}

Result<Done> read_flat_format(const std::string& path, element value, const Services& services,
                              GenerationRequest& request) {
  const Result<std::string_view> type = format_type(path, value);
  if (!type) return type.error();
  const bool is_flat = *type == "json_schema" && value["json_schema"].error() != simdjson::SUCCESS;
  return is_flat ? read_json_schema(path, value, services, request)
                 : read_response_format(path, value, services, request);
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
    } else if (*flag && field.key != "disable_fallback") {  // there is no other backend to fall back to
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

}  // namespace quire::api
