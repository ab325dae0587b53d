#include "app/chat/conversation.h"

#include <algorithm>
#include <array>
#include <utility>

namespace quire::app {
namespace {

namespace json = boost::json;

// Members of a request that have commands of their own, or that this client relies on.
constexpr std::array<std::string_view, 6> kNoSettings = {"model", "messages", "tools", "stream", "stream_options", "n"};

Result<json::value> parsed(std::string_view text) {
  json::error_code error;
  json::value value = json::parse(text, error);
  if (error) return invalid("", "this is not JSON: " + error.message());
  return value;
}

bool has_role(const json::value& message, std::string_view role) {
  const json::value* found = message.is_object() ? message.as_object().if_contains("role") : nullptr;
  return found != nullptr && found->is_string() && std::string_view(found->as_string()) == role;
}

}  // namespace

void Conversation::ask(std::string_view text) { messages_.push_back({{"role", "user"}, {"content", text}}); }

void Conversation::add_tool_result(std::string_view call_id, std::string_view text) {
  messages_.push_back({{"role", "tool"}, {"tool_call_id", call_id}, {"content", text}});
}

void Conversation::take_back_question() {
  while (!messages_.empty()) {
    const bool is_question = has_role(messages_.back(), "user");
    messages_.pop_back();
    if (is_question) return;
  }
}

Result<Done> Conversation::set(std::string_view name, std::string_view value) {
  if (std::ranges::find(kNoSettings, name) != kNoSettings.end()) {
    return invalid(std::string(name), std::string(name) + " cannot be set");
  }
  if (value.empty()) {
    settings_.erase(name);
    return Done{};
  }
  Result<json::value> read = parsed(value);
  settings_[name] = read ? std::move(*read) : json::value(json::string(value));
  return Done{};
}

Result<Done> Conversation::set_tools(std::string_view text) {
  if (text.empty()) {
    tools_.clear();
    return Done{};
  }
  Result<json::value> read = parsed(text);
  if (!read) return read.error();
  json::value* list = &*read;
  if (list->is_object()) list = list->as_object().if_contains("tools");
  if (list == nullptr || !list->is_array()) {
    return invalid("tools", R"(expected a list of tools: [{"type": "function", "function": {"name": …}}])");
  }
  tools_ = std::move(list->as_array());
  return Done{};
}

json::object Conversation::members() const {
  json::object out;
  json::array& messages = out["messages"].emplace_array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  messages.insert(messages.end(), messages_.begin(), messages_.end());
  if (!tools_.empty()) out["tools"] = tools_;
  for (const auto& [name, value] : settings_) out[name] = value;
  return out;
}

std::string Conversation::request() const {
  json::object out = members();
  out["model"] = model_;
  out["stream"] = true;
  out["stream_options"] = {{"include_usage", true}};
  return json::serialize(out);
}

std::string Conversation::saved() const { return json::serialize(members()) + "\n"; }

Result<Done> Conversation::load(std::string_view text) {
  Result<json::value> read = parsed(text);
  if (!read) return read.error();
  json::object* file = read->if_object();
  json::value* list = file == nullptr ? nullptr : file->if_contains("messages");
  if (list == nullptr || !list->is_array()) return invalid("messages", R"(expected {"messages": […]})");
  Conversation loaded(model_);
  for (json::value& message : list->as_array()) {
    const json::value* content = message.is_object() ? message.as_object().if_contains("content") : nullptr;
    if (has_role(message, "system") && loaded.messages_.empty() && content != nullptr && content->is_string()) {
      loaded.system_ = content->as_string();
    } else {
      loaded.messages_.push_back(std::move(message));
    }
  }
  for (const auto& [name, value] : *file) {
    if (name == "tools" && value.is_array()) loaded.tools_ = value.as_array();
    if (std::ranges::find(kNoSettings, std::string_view(name)) == kNoSettings.end()) loaded.settings_[name] = value;
  }
  *this = std::move(loaded);
  return Done{};
}

}  // namespace quire::app
