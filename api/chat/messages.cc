#include "api/chat/messages.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "api/chat/message_parts.h"
#include "api/fields/read_body.h"
#include "api/json/json_values.h"

namespace quire::api::chat {
namespace {

using simdjson::dom::element;

// ---- calls in an assistant's message

Result<Done> add_call(const std::string& path, element value, const ChatTemplate* form, MessageDraft& message) {
  if (Result<Done> object = need_object(path, value); !object) return object.error();
  std::string id;
  element part;
  if (is_given(value, "id", part)) {
    Result<std::string> given = text_member(path, value, "id");
    if (!given) return given.error();
    id = std::move(*given);
  }
  bool is_custom = false;
  if (is_given(value, "type", part)) {
    const Result<std::string> type = text_member(path, value, "type");
    if (!type) return type.error();
    is_custom = *type == "custom";
    if (!is_custom && *type != "function") return invalid(path + ".type", path + ".type must be function or custom");
  }
  const char* key = is_custom ? "custom" : "function";
  const std::string in = path + "." + key;
  element function;
  if (!is_given(value, key, function)) return invalid(in, in + " is missing");
  if (Result<Done> object = need_object(in, function); !object) return object.error();
  if (!is_given(function, "name", part)) return invalid(in + ".name", in + ".name is missing");
  Result<std::string> name = text_member(in, function, "name");
  if (!name) return name.error();
  json::Value arguments = json::Object();
  if (is_custom && is_given(function, "input", part)) {
    const Result<std::string> input = text_member(in, function, "input");
    if (!input) return input.error();
    arguments = arguments_of_text(*input, form);
  } else if (is_given(function, "arguments", part)) {
    Result<json::Value> given = arguments_of(in + ".arguments", part, form);
    if (!given) return given.error();
    arguments = std::move(*given);
  }
  message.add_call(id, *name, std::move(arguments));
  return Done{};
}

Result<Done> add_calls(const std::string& path, element value, const Services& services, MessageDraft& message) {
  if (!value.is_array()) return invalid(path, path + " must be a list");
  std::size_t count = 0;
  for (const element one : array_of(value)) {
    if (count == services.limits.max_tool_calls) {
      return invalid(path, path + " may hold at most " + std::to_string(count) + " calls");
    }
    Result<Done> added = add_call(at(path, count++), one, template_of(services), message);
    if (!added) return added.error();
  }
  return Done{};
}

// ---- one message

constexpr std::string_view kText[] = {"text", "input_text", "output_text"};
constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};
constexpr std::string_view kKnown[] = {"role",       "content",           "name",    "tool_calls",    "tool_call_id",
                                       "reasoning",  "reasoning_content", "refusal", "function_call", "audio",
                                       "annotations"};

class MessageReader {
 public:
  MessageReader(std::string path, element message, const Services& services, ChatRequest& request)
      : path_(std::move(path)), message_(message), services_(services), request_(request) {}

  Result<json::Value> read() {
    if (Result<Done> object = need_object(path_, message_); !object) return object.error();
    for (auto stage : {&MessageReader::read_role, &MessageReader::read_content, &MessageReader::read_calls,
                       &MessageReader::read_reasoning, &MessageReader::read_others}) {
      if (Result<Done> done = (this->*stage)(); !done) return done.error();
    }
    return out_->take();
  }

 private:
  Result<Done> read_role() {
    const std::string path = path_ + ".role";
    element value;
    if (!is_given(message_, "role", value)) return invalid(path, path + " is missing");
    const Result<std::string> role = string_of(path, value, kAnyText);
    if (!role) return role.error();
    if (std::find(std::begin(kRoles), std::end(kRoles), *role) == std::end(kRoles)) {
      return invalid(path, path + " must be system, developer, user, assistant or tool");
    }
    role_ = *role;
    out_.emplace(role_, template_of(services_));
    return Done{};
  }

  Result<Done> read_content() {
    const std::string path = path_ + ".content";
    element value;
    const bool is_said = is_given(message_, "content", value) && !(value.is_array() && array_of(value).size() == 0);
    if (role_ == "assistant" && !is_said) {  // only calls, or an empty answer
      out_->set_no_content();
      return Done{};
    }
    if (role_ == "tool" && !is_said) {
      out_->set("content", "");
      return Done{};
    }
    if (!is_given(message_, "content", value)) return invalid(path, path + " is missing");
    Result<std::string> text = text_of(path, value, kText, services_);
    if (!text) return text.error();
    out_->set("content", std::move(*text));
    return Done{};
  }

  Result<Done> read_calls() {
    const std::string path = path_ + ".tool_calls";
    element value;
    if (!is_given(message_, "tool_calls", value)) return Done{};
    Result<Done> added = add_calls(path, value, services_, *out_);
    if (!added || !out_->has("tool_calls") || role_ == "assistant") return added;
    return invalid(path, path + " is allowed only in an assistant message");
  }

  Result<Done> read_reasoning() {
    for (const char* name : {"reasoning_content", "reasoning"}) {
      element value;
      if (!is_given(message_, name, value)) continue;
      const Result<std::string> text = string_of(path_ + "." + name, value, kAnyText);
      if (!text) return text.error();
      if (role_ != "assistant") continue;
      out_->set_reasoning(*text);
    }
    return Done{};
  }

  Result<Done> read_others() {
    for (const char* name : {"name", "tool_call_id"}) {
      element value;
      if (!is_given(message_, name, value)) continue;
      Result<std::string> text = string_of(path_ + "." + name, value, kAnyText);
      if (!text) return text.error();
      out_->set(name, std::move(*text));
    }
    for (const char* name : {"function_call", "audio"}) {
      element value;
      if (!is_given(message_, name, value)) continue;
      const std::string path = path_ + "." + name;
      return invalid(path, path + " is not supported: leave it out");
    }
    for (const auto field : object_of(message_)) {
      if (std::find(std::begin(kKnown), std::end(kKnown), field.key) != std::end(kKnown)) continue;
      pass_over(request_, path_ + "." + echoed(field.key));
    }
    return Done{};
  }

  const std::string path_;
  const element message_;
  const Services& services_;
  ChatRequest& request_;
  std::string role_;
  std::optional<MessageDraft> out_;  // none until the role is known
};

}  // namespace

Result<Done> read_messages(const std::string& path, element value, const Services& services, ChatRequest& request) {
  if (!value.is_array()) return invalid(path, path + " must be a list of messages");
  for (const element one : array_of(value)) {
    if (request.messages.size() == services.limits.max_messages) {
      return invalid(path, path + " may hold at most " + std::to_string(services.limits.max_messages) + " messages");
    }
    MessageReader reader(at(path, request.messages.size()), one, services, request);
    Result<json::Value> message = reader.read();
    if (!message) return message.error();
    request.messages.push_back(std::move(*message));
  }
  if (request.messages.empty()) return invalid(path, path + " must not be empty");
  return Done{};
}

}  // namespace quire::api::chat
