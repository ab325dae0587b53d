#include "api/chat/message_parts.h"

#include <algorithm>
#include <utility>

#include "api/chat/json_copy.h"
#include "api/json/json_values.h"

namespace quire::api::chat {
namespace {

using simdjson::dom::element;

// `"a"`, `"a" or "b"`.
std::string quoted(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    text.append(text.empty() ? "\"" : " or \"").append(word).append("\"");
  }
  return text;
}

}  // namespace

std::string at(const std::string& path, std::size_t index) { return path + "[" + std::to_string(index) + "]"; }

bool is_given(element object, std::string_view key, element& value) {
  return object[key].get(value) == simdjson::SUCCESS && !value.is_null();
}

Result<Done> need_object(const std::string& path, element value) {
  if (value.is_object()) return Done{};
  return invalid(path, path + " must be an object");
}

Result<std::string> text_member(const std::string& path, element object, std::string_view key) {
  const std::string in = path + "." + std::string(key);
  element value;
  if (object[key].get(value) != simdjson::SUCCESS) return invalid(in, in + " is missing");
  return string_of(in, value, kAnyText);
}

Result<std::string> text_of(const std::string& path, element content, std::span<const std::string_view> types,
                            const Services& services) {
  if (content.is_string()) return std::string(content.get_string().value_unsafe());
  if (!content.is_array()) return invalid(path, path + " must be a string or a list of text parts");
  std::string joined;
  std::size_t index = 0;
  for (const element part : array_of(content)) {
    if (index == services.limits.max_content_parts) {
      return invalid(path, path + " may have at most " + std::to_string(index) + " parts: join them");
    }
    Result<std::string> text = text_of_part(at(path, index), part, types);
    if (!text) return text.error();
    if (index++ != 0) joined += '\n';
    joined += *text;
  }
  if (index == 0) return invalid(path, path + " must not be an empty list");
  return joined;
}

Result<std::string> text_of_part(const std::string& path, element part, std::span<const std::string_view> types) {
  if (part.is_string()) return std::string(part.get_string().value_unsafe());
  if (Result<Done> object = need_object(path, part); !object) return object.error();
  const Result<std::string> kind = text_member(path, part, "type");
  if (!kind) return kind.error();
  if (*kind == "refusal" && types.size() > 1) return text_member(path, part, "refusal");
  if (std::find(types.begin(), types.end(), *kind) == types.end()) {
    return invalid(path + ".type", path + ".type must be " + quoted(types) + ": this server reads text only");
  }
  return text_member(path, part, "text");
}

const ChatTemplate* template_of(const Services& services) {
  const ChatModel* model = services.chat.get();
  if (model == nullptr) return nullptr;
  return model->with_tools ? &*model->with_tools : model->plain ? &*model->plain : nullptr;
}

Result<json::Value> arguments_of(const std::string& path, element value, const ChatTemplate* form) {
  const bool as_text = form != nullptr && !form->object_arguments;
  if (value.is_string()) {
    const std::string_view text = value.get_string().value_unsafe();
    if (as_text) return json::Value(text);
    Result<json::Value> parsed = json::parse(text, kMaxDepth);
    return parsed && parsed->is_object() ? std::move(*parsed) : json::Value(json::Object());
  }
  if (!value.is_object()) return invalid(path, path + " must be a JSON object or a string");
  Result<json::Value> copied = copy_of(path, value);
  if (!copied) return copied.error();
  return as_text ? json::Value(json::serialize(*copied)) : std::move(*copied);
}

json::Value arguments_of_text(std::string_view text, const ChatTemplate* form) {
  json::Value arguments = json::Object{{"input", text}};
  const bool as_text = form != nullptr && !form->object_arguments;
  return as_text ? json::Value(json::serialize(arguments)) : arguments;
}

MessageDraft::MessageDraft(std::string_view role, const ChatTemplate* form) {
  const bool as_system = role == "developer" && form != nullptr && !form->knows_developer;
  out_["role"] = as_system ? "system" : role;
}

void MessageDraft::set_reasoning(const std::string& text) {
  for (const char* known : {"reasoning_content", "reasoning", "thinking"}) {
    if (!out_.contains(known)) out_[known] = text;
  }
}

void MessageDraft::add_call(std::string_view id, std::string_view name, json::Value arguments) {
  json::Object call;
  if (!id.empty()) call["id"] = id;
  call["type"] = "function";
  call["function"] = json::Object{{"name", name}, {"arguments", std::move(arguments)}};
  if (!out_.contains("tool_calls")) out_["tool_calls"] = json::Array();
  out_["tool_calls"].get_array().emplace_back(std::move(call));
}

}  // namespace quire::api::chat
