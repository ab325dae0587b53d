#include "api/chat/tools.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/chat/json_copy.h"
#include "api/openai/json_values.h"

namespace quire::api::chat {
namespace {

using openai::array_of;
using simdjson::dom::element;

constexpr std::size_t kMaxName = 64;

bool is_name(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !text.empty() && text.size() <= kMaxName && std::all_of(text.begin(), text.end(), fits);
}

Result<std::string> name_of(const std::string& path, const json::Object& function) {
  const json::Value* name = function.if_contains("name");
  if (name == nullptr || name->is_null()) return invalid(path, path + " is missing");
  if (!name->is_string() || !is_name(name->get_string())) {
    return invalid(path, path + " must have 1 to 64 letters, digits, underscores, dashes and dots");
  }
  return std::string(name->get_string());
}

// {"type": "function", "function": {...}}
Result<Done> read_nested(const std::string& path, json::Object& tool, ChatRequest& request) {
  const json::Value* type = tool.if_contains("type");
  if (type == nullptr) return invalid(path + ".type", path + ".type is missing");
  if (!type->is_string() || type->get_string() != "function") {
    return invalid(path + ".type", path + ".type must be \"function\": other tools are not supported");
  }
  const std::string in = path + ".function";
  json::Value* function = tool.if_contains("function");
  if (function == nullptr) return invalid(in, in + " is missing");
  if (!function->is_object()) return invalid(in, in + " must be an object");
  return add_function(in, function->get_object(), "parameters", request);
}

}  // namespace

Result<Done> add_function(const std::string& in, json::Object& members, const char* schema, ChatRequest& request) {
  ToolFunction read;
  Result<std::string> name = name_of(in + ".name", members);
  if (!name) return name.error();
  read.name = std::move(*name);
  const auto same = [&](const ToolFunction& other) { return other.name == read.name; };
  if (std::any_of(request.functions.begin(), request.functions.end(), same)) {
    return invalid(in + ".name", in + ".name is another function's, too");
  }
  if (const json::Value* description = members.if_contains("description");
      description != nullptr && !description->is_string() && !description->is_null()) {
    return invalid(in + ".description", in + ".description must be a string");
  }
  if (const json::Value* value = members.if_contains(schema); value != nullptr && !value->is_null()) {
    read.parameters_field = in + "." + schema;
    if (!value->is_object()) {
      return invalid(read.parameters_field, read.parameters_field + " must be an object: a JSON Schema");
    }
    read.parameters = json::serialize(*value);
  }
  if (const json::Value* strict = members.if_contains("strict"); strict != nullptr) {
    if (!strict->is_bool() && !strict->is_null()) return invalid(in + ".strict", in + ".strict must be true or false");
    read.strict = strict->is_bool() && strict->get_bool();
    members.erase("strict");  // for us, not for the model
  }
  request.functions.push_back(std::move(read));
  return Done{};
}

json::Object nested_function(json::Object& members, const char* schema) {
  json::Object function;
  for (const char* name : {"name", "description", schema}) {
    json::Value* value = members.if_contains(name);
    if (value != nullptr && !value->is_null()) function[name == schema ? "parameters" : name] = std::move(*value);
  }
  return {{"type", "function"}, {"function", std::move(function)}};
}

Result<Done> read_tool_list(const std::string& path, element value, const Services& services, ChatRequest& request,
                            ReadTool read_one) {
  if (!value.is_array()) return invalid(path, path + " must be a list of functions");
  for (const element one : array_of(value)) {
    if (request.tools.size() == services.limits.max_tools) {
      return invalid(path, path + " may hold at most " + std::to_string(services.limits.max_tools) + " functions");
    }
    const std::string in = path + "[" + std::to_string(request.tools.size()) + "]";
    Result<json::Value> tool = copy_of(in, one);
    if (!tool) return tool.error();
    if (!tool->is_object()) return invalid(in, in + " must be an object");
    if (Result<Done> added = read_one(in, tool->get_object(), request); !added) return added.error();
    request.tools.push_back(std::move(*tool));
  }
  return Done{};
}

Result<Done> read_tools(const std::string& path, element value, const Services& services, ChatRequest& request) {
  return read_tool_list(path, value, services, request, read_nested);
}

Result<Done> read_tool_choice(const std::string& path, element value, const Services&, ChatRequest& request) {
  ToolChoice& choice = request.tool_choice;
  if (value.is_string()) {
    const std::string_view word = value.get_string().value_unsafe();
    if (word == "none") choice.kind = ToolChoice::Kind::kNone;
    if (word == "required") choice.kind = ToolChoice::Kind::kRequired;
    if (word == "none" || word == "auto" || word == "required") return Done{};
  }
  element part;
  if (value.is_object() && value["type"].get(part) == simdjson::SUCCESS) {
    if (!part.is_string() || part.get_string().value_unsafe() != "function") {
      return invalid(path + ".type", path + ".type must be \"function\"");
    }
    const std::string name = path + ".function.name";
    if (value["function"]["name"].get(part) != simdjson::SUCCESS) return invalid(name, name + " is missing");
    Result<std::string> chosen = openai::string_of(name, part, kMaxName);
    if (!chosen) return chosen.error();
    choice = {ToolChoice::Kind::kNamed, std::move(*chosen)};
    return Done{};
  }
  return invalid(path, path +
                           " must be \"none\", \"auto\", \"required\", or a function as "
                           "{\"type\": \"function\", \"function\": {\"name\": ...}}");
}

Result<Done> settle_tools(ChatRequest& request, const Services& services) {
  const ToolChoice& choice = request.tool_choice;
  request.grammar_field = request.forces_call() ? "tool_choice" : "tools";
  if (request.functions.empty() && request.forces_call()) {
    return invalid("tool_choice", "tool_choice asks for a call, but there are no tools");
  }
  if (choice.kind == ToolChoice::Kind::kNamed) {
    const auto chosen = [&](const ToolFunction& function) { return function.name == choice.name; };
    if (std::none_of(request.functions.begin(), request.functions.end(), chosen)) {
      return invalid("tool_choice", "tool_choice.function.name is none of the tools");
    }
  }
  const bool understands = services.chat != nullptr && services.chat->calls != CallForm::kNone;
  if (request.offers_tools() && !understands) {
    return invalid("tools",
                   "this model's chat template teaches no form of calls that this server knows: leave tools "
                   "out, send \"tool_choice\": \"none\", or start the server with --tool-call-parser");
  }
  return Done{};
}

}  // namespace quire::api::chat
