#include "app/chat/answer_reader.h"

#include <algorithm>

namespace quire::app {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

// Text of a member; empty if there is none.
std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

const json::object* object_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_object();
}

std::uint64_t count_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  std::uint64_t out = 0;
  if (value == nullptr || !value->is_number()) return out;
  json::error_code error;
  out = value->to_number<std::uint64_t>(error);
  return error ? 0 : out;
}

std::string message_of(const json::object& event) {
  const json::object* error = object_of(event, "error");
  if (error == nullptr) return text_of(event, "error");
  const std::string message = text_of(*error, "message");
  return message.empty() ? "the server reports an error without a text" : message;
}

}  // namespace

std::string error_text(std::string_view text) {
  json::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_object()) return std::string(text);
  const std::string message = message_of(value.as_object());
  return message.empty() ? std::string(text) : message;
}

void AnswerReader::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    line_.append(bytes.substr(0, end));
    if (line_.size() > kMaxLineBytes) {
      error_ = "the server sent a line of more than 16 MiB";
      line_.clear();
    }
    if (end == bytes.npos) return;
    bytes.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    take_line(line_);
    line_.clear();
  }
}

void AnswerReader::take_line(std::string_view line) {
  constexpr std::string_view kData = "data:";
  if (!line.starts_with(kData)) return;  // a comment, or a field that is not needed
  line.remove_prefix(kData.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line == "[DONE]") return;
  json::error_code error;
  const json::value event = json::parse(line, error);
  if (error || !event.is_object()) {
    error_ = "the server sent an event that is not a JSON object";
    return;
  }
  take_event(event.as_object());
}

void AnswerReader::take_event(const json::object& event) {
  if (event.contains("error")) error_ = message_of(event);
  if (const json::object* usage = object_of(event, "usage")) take_usage(*usage);
  const json::value* choices = event.if_contains("choices");
  if (choices == nullptr || !choices->is_array() || choices->as_array().empty()) return;
  const json::object* choice = choices->as_array()[0].if_object();
  if (choice == nullptr) return;
  if (const json::object* delta = object_of(*choice, "delta")) take_delta(*delta);
  if (const std::string reason = text_of(*choice, "finish_reason"); !reason.empty()) finish_reason_ = reason;
}

void AnswerReader::take_delta(const json::object& delta) {
  std::string reasoning = text_of(delta, "reasoning_content");
  if (reasoning.empty()) reasoning = text_of(delta, "reasoning");
  const std::string text = text_of(delta, "content");
  const json::value* calls = delta.if_contains("tool_calls");
  const bool has_calls = calls != nullptr && calls->is_array() && !calls->as_array().empty();
  has_begun_ = has_begun_ || !reasoning.empty() || !text.empty() || has_calls;
  reasoning_ += reasoning;
  text_ += text;
  if (!reasoning.empty()) on_text_(reasoning, true);
  if (!text.empty()) on_text_(text, false);
  if (!has_calls) return;
  for (const json::value& part : calls->as_array()) {
    const json::object* call = part.if_object();
    if (call == nullptr) continue;
    constexpr std::uint64_t kMaxCalls = 1024;
    const std::uint64_t index = std::min(count_of(*call, "index"), kMaxCalls);
    if (calls_.size() <= index) calls_.resize(index + 1);
    ToolCall& taken = calls_[index];
    taken.id += text_of(*call, "id");
    if (const json::object* function = object_of(*call, "function")) {
      taken.name += text_of(*function, "name");
      taken.arguments += text_of(*function, "arguments");
    }
  }
}

void AnswerReader::take_usage(const json::object& usage) {
  prompt_tokens_ = count_of(usage, "prompt_tokens");
  completion_tokens_ = count_of(usage, "completion_tokens");
  if (const json::object* details = object_of(usage, "prompt_tokens_details")) {
    cached_tokens_ = count_of(*details, "cached_tokens");
  }
}

json::object AnswerReader::message() const {
  json::object out = {{"role", "assistant"}, {"content", text_}};
  if (calls_.empty()) return out;
  if (!reasoning_.empty()) out["reasoning_content"] = reasoning_;  // templates show it while tools are called
  json::array& calls = out["tool_calls"].emplace_array();
  for (const ToolCall& call : calls_) {
    calls.push_back(
        {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return out;
}

}  // namespace quire::app
