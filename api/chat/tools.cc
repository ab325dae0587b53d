#include "api/chat/tools.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "api/chat/json_copy.h"
#include "api/chat/message_parts.h"
#include "api/fields/read_body.h"
#include "api/json/json_values.h"

namespace quire::api::chat {
namespace {

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

// Reads {"type": "function", "function": {...}} or the flat form; the type may be left out. If there are members of
// neither form, `kIsFlat` selects the form whose member the error names.
template <bool kIsFlat>
Result<bool> read_function(const std::string& path, json::Object& tool, ChatRequest& request) {
  const json::Value* type = tool.if_contains("type");
  if (type != nullptr && !type->is_null()) {
    if (!type->is_string()) return invalid(path + ".type", path + ".type must be a string");
    if (!type->is_text("function")) return false;
  }
  const std::string in = path + ".function";
  json::Value* function = tool.if_contains("function");
  const bool is_flat = function == nullptr && tool.contains("name");
  if (function == nullptr && !is_flat) {
    const std::string missing = kIsFlat ? path + ".name" : in;
    return invalid(missing, missing + " is missing");
  }
  if (!is_flat && !function->is_object()) return invalid(in, in + " must be an object");
  json::Object& members = is_flat ? tool : function->get_object();
  if (Result<Done> added = add_function(is_flat ? path : in, members, "parameters", request); !added) {
    return added.error();
  }
  if (is_flat) {
    tool = nested_function(tool, "parameters");
  } else {
    tool = {{"type", "function"}, {"function", std::move(*function)}};
  }
  return true;
}

}  // namespace

Result<Done> add_function(const std::string& in, json::Object& members, const char* schema, ChatRequest& request) {
  ToolFunction read;
  Result<std::string> name = name_of(in + ".name", members);
  if (!name) return name.error();
  read.name = std::move(*name);
  const auto same = [&](const ToolFunction& other) { return other.name == read.name; };
  if (std::any_of(request.functions.begin(), request.functions.end(), same)) {
    return invalid(in + ".name", in + ".name is used by another function");
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
    members.erase("strict");  // for the server, not for the model
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
  std::size_t count = 0;
  for (const element one : array_of(value)) {
    if (count == services.limits.max_tools) {
      return invalid(path, path + " may hold at most " + std::to_string(services.limits.max_tools) + " functions");
    }
    const std::string in = at(path, count++);
    Result<json::Value> tool = copy_of(in, one);
    if (!tool) return tool.error();
    if (!tool->is_object()) return invalid(in, in + " must be an object");
    const Result<bool> is_function = read_one(in, tool->get_object(), request);
    if (!is_function) return is_function.error();
    if (*is_function) {
      request.tools.push_back(std::move(*tool));
    } else {
      leave_out(request, in);
    }
  }
  return Done{};
}

Result<Done> read_tools(const std::string& path, element value, const Services& services, ChatRequest& request) {
  return read_tool_list(path, value, services, request, read_function<false>);
}

Result<Done> read_flat_tools(const std::string& path, element value, const Services& services, ChatRequest& request) {
  return read_tool_list(path, value, services, request, read_function<true>);
}

namespace {

std::optional<ToolChoice::Kind> kind_of(std::string_view word) {
  if (word == "none") return ToolChoice::Kind::kNone;
  if (word == "auto") return ToolChoice::Kind::kAuto;
  if (word == "required") return ToolChoice::Kind::kRequired;
  return std::nullopt;
}

// Name in {"type": "function", "function": {"name": ...}} or in the flat form; the type may be left out. None: the tool
// is not a function, so it is left out.
Result<std::optional<std::string>> name_of_tool(const std::string& path, element value, bool is_flat) {
  if (Result<Done> object = need_object(path, value); !object) return object.error();
  element part;
  if (is_given(value, "type", part)) {
    const Result<std::string> type = text_member(path, value, "type");
    if (!type) return type.error();
    if (*type != "function") return {std::nullopt};
  }
  const bool is_nested = is_given(value, "function", part);
  if (is_nested && !part.is_object()) return invalid(path + ".function", path + ".function must be an object");
  const std::string in = is_nested || !is_flat ? path + ".function" : path;
  Result<std::string> name = text_member(in, is_nested ? part : value, "name");
  if (!name) return name.error();
  if (name->size() > kMaxName) return invalid(path, path + " must name one of the tools");
  return {std::move(*name)};
}

// Reads {"type": "allowed_tools", "mode": ..., "tools": [...]}, or mode and tools in an object "allowed_tools".
Result<Done> read_allowed(const std::string& path, element value, const Services& services, ChatRequest& request,
                          bool is_flat) {
  element inner;
  const bool is_nested = is_given(value, "allowed_tools", inner) && inner.is_object();
  const element object = is_nested ? inner : value;
  const std::string in = is_nested ? path + ".allowed_tools" : path;
  const Result<std::string> mode = text_member(in, object, "mode");
  if (!mode) return mode.error();
  if (*mode != "auto" && *mode != "required") return invalid(in + ".mode", in + ".mode must be auto or required");
  ToolChoice& choice = request.tool_choice;
  choice.kind = *kind_of(*mode);
  choice.allowed.emplace();
  element tools;
  if (!is_given(object, "tools", tools) || !tools.is_array()) {
    return invalid(in + ".tools", in + ".tools must be a list of the tools that may be called");
  }
  std::size_t count = 0;
  for (const element one : array_of(tools)) {
    const std::string at_one = at(in + ".tools", count++);
    if (count > services.limits.max_tools) {
      return invalid(in + ".tools",
                     in + ".tools may hold at most " + std::to_string(services.limits.max_tools) + " tools");
    }
    Result<std::optional<std::string>> name = name_of_tool(at_one, one, is_flat);
    if (!name) return name.error();
    if (*name) {
      choice.allowed->push_back(std::move(**name));
    } else {
      leave_out(request, at_one);
    }
  }
  return Done{};
}

bool is_function(const ChatRequest& request, std::string_view name) {
  return std::ranges::find(request.functions, name, &ToolFunction::name) != request.functions.end();
}

// Drops functions that tool_choice does not allow: they stay in the prompt, and cannot be called.
Result<Done> keep_allowed(ChatRequest& request) {
  if (!request.tool_choice.allowed) return Done{};
  const std::vector<std::string>& allowed = *request.tool_choice.allowed;
  for (const std::string& name : allowed) {
    if (!is_function(request, name)) {
      return invalid("tool_choice", "tool_choice allows \"" + echoed(name) + "\", which is not one of the tools");
    }
  }
  std::erase_if(request.functions, [&](const ToolFunction& function) {
    return std::ranges::find(allowed, function.name) == allowed.end();
  });
  return Done{};
}

Result<Done> read_choice(const std::string& path, element value, const Services& services, ChatRequest& request,
                         bool is_flat) {
  ToolChoice& choice = request.tool_choice;
  if (value.is_string()) {
    const auto kind = kind_of(value.get_string().value_unsafe());
    if (kind) choice.kind = *kind;
    if (kind) return Done{};
  }
  if (!value.is_object()) {
    return invalid(path, path +
                             " must be \"none\", \"auto\", \"required\", or a function: {\"type\": \"function\", "
                             "\"function\": {\"name\": ...}}");
  }
  element type;
  if (is_given(value, "type", type) && type.is_string()) {
    const std::string_view word = type.get_string().value_unsafe();
    if (word == "allowed_tools") return read_allowed(path, value, services, request, is_flat);
    if (const auto kind = kind_of(word)) {
      choice.kind = *kind;
      return Done{};
    }
  }
  Result<std::optional<std::string>> name = name_of_tool(path, value, is_flat);
  if (!name) return name.error();
  if (!*name) {
    return invalid(path + ".type",
                   path + ".type must be \"function\": tools of other types are ignored and cannot be called");
  }
  choice = {ToolChoice::Kind::kNamed, std::move(**name)};
  return Done{};
}

}  // namespace

Result<Done> read_tool_choice(const std::string& path, element value, const Services& services, ChatRequest& request) {
  return read_choice(path, value, services, request, /*is_flat=*/false);
}

Result<Done> read_flat_tool_choice(const std::string& path, element value, const Services& services,
                                   ChatRequest& request) {
  return read_choice(path, value, services, request, /*is_flat=*/true);
}

Result<Done> settle_tools(ChatRequest& request, const Services& services) {
  const ToolChoice& choice = request.tool_choice;
  request.grammar_field = request.forces_call() ? "tool_choice" : "tools";
  if (Result<Done> kept = keep_allowed(request); !kept) return kept.error();
  if (request.functions.empty() && request.forces_call()) {
    return invalid("tool_choice", "tool_choice requires a call, but there are no tools");
  }
  if (choice.kind == ToolChoice::Kind::kNamed && !is_function(request, choice.name)) {
    return invalid("tool_choice", "tool_choice.function.name is not one of the tools");
  }
  if (request.offers_tools() && services.chat != nullptr && services.chat->calls == CallFormat::kNone) {
    return invalid("tools",
                   "tool calls are not parsed on this server (--tool-call-parser none): leave tools out, or send "
                   "\"tool_choice\": \"none\"");
  }
  return Done{};
}

}  // namespace quire::api::chat
