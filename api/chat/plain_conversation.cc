#include "api/chat/plain_conversation.h"

#include <string_view>
#include <utility>
#include <vector>

#include "api/answer/calls/call_text.h"

namespace quire::api::chat {
namespace {

constexpr std::string_view kBetween = "\n\n";

std::string_view role_of(const json::Object& message) {
  const json::Value* role = message.if_contains("role");
  return role != nullptr && role->is_string() ? std::string_view(role->get_string()) : std::string_view();
}
bool is_system(const json::Object& message) {
  const std::string_view role = role_of(message);
  return role == "system" || role == "developer";
}

// Content of the message; empty if it is not a text.
std::string text_in(const json::Object& message) {
  const json::Value* content = message.if_contains("content");
  return content != nullptr && content->is_string() ? std::string(content->get_string()) : std::string();
}

void append(json::Object& message, std::string_view between, std::string_view text) {
  json::Value& content = message["content"];
  if (!content.is_string()) content = std::string();
  std::string& all = content.get_string();
  if (!all.empty() && !text.empty()) all += between;
  all += text;
}

ToolCall call_of(const json::Value& call) {
  const json::Value* function = call.is_object() ? call.get_object().if_contains("function") : nullptr;
  if (function == nullptr || !function->is_object()) return {};
  const json::Value* name = function->get_object().if_contains("name");
  const json::Value* arguments = function->get_object().if_contains("arguments");
  ToolCall read{name != nullptr && name->is_string() ? name->get_string() : "", "{}"};
  if (arguments == nullptr) return read;
  const bool is_text = arguments->is_string();  // the form that some templates read
  read.arguments = is_text ? arguments->get_string() : json::serialize(*arguments);
  return read;
}

}  // namespace

std::string text_of_tools(const json::Array& tools, CallFormat format) {
  std::string text = "You can call these functions, each described in a line of JSON:\n<tools>\n";
  for (const json::Value& tool : tools) text += json::serialize(tool) + "\n";
  const ToolCall example{"its_name", "{\"an_argument\": \"its value\"}"};
  return text +
         "</tools>\nTo call one, write its name and arguments in exactly this form, one call after another, and then "
         "stop:\n" +
         text_of_calls(format, {&example, 1}) + "\n" +
         "Results come between <tool_response> tags. Where no function helps, answer without one.";
}

json::Array with_calls_as_text(const json::Array& messages, CallFormat format) {
  json::Array out = messages;
  for (json::Value& one : out) {
    json::Object& message = one.get_object();
    const json::Value* calls = message.if_contains("tool_calls");
    if (calls == nullptr || !calls->is_array()) continue;
    std::vector<ToolCall> read;
    for (const json::Value& call : calls->get_array()) read.push_back(call_of(call));
    append(message, "\n", text_of_calls(format, read));
    message.erase("tool_calls");
  }
  return out;
}

json::Array with_results_as_text(const json::Array& messages) {
  json::Array out;
  bool behind_result = false;
  for (const json::Value& one : messages) {
    const json::Object& message = one.get_object();
    if (role_of(message) != "tool") {
      behind_result = false;
      out.push_back(one);
      continue;
    }
    const std::string text = "<tool_response>\n" + text_in(message) + "\n</tool_response>";
    if (behind_result) {
      append(out.back().get_object(), "\n", text);
    } else {
      out.push_back(json::Object{{"role", "user"}, {"content", text}});
    }
    behind_result = true;
  }
  return out;
}

json::Array with_system(SystemPlace place, const json::Array& messages) {
  json::Array out;
  bool begins = true;
  for (const json::Value& one : messages) {
    const json::Object& message = one.get_object();
    begins = begins && is_system(message);
    const bool stays = begins && place == SystemPlace::kFirst;
    const std::string_view role = !is_system(message) ? role_of(message) : stays ? "system" : "user";
    const bool goes_on =
        !out.empty() && role_of(out.back().get_object()) == role && (role == "user" || role == "system");
    if (goes_on) {
      append(out.back().get_object(), kBetween, text_in(message));
      continue;
    }
    out.push_back(message);
    out.back().get_object()["role"] = std::string(role);
  }
  return out;
}

void add_to_system(json::Array& messages, const std::string& text) {
  if (!messages.empty() && is_system(messages.front().get_object())) {
    return append(messages.front().get_object(), kBetween, text);
  }
  messages.insert(messages.begin(), json::Object{{"role", "system"}, {"content", text}});
}

}  // namespace quire::api::chat
