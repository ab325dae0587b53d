#include "api/responses/input_items.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "api/chat/message_parts.h"
#include "api/openai/json_values.h"

namespace quire::api::responses {
namespace {

using chat::MessageDraft;
using openai::array_of;
using simdjson::dom::element;

constexpr std::string_view kTexts[] = {"input_text", "output_text"};
constexpr std::string_view kReasoningTexts[] = {"reasoning_text"};
constexpr std::string_view kSummaryTexts[] = {"summary_text"};
constexpr std::string_view kRoles[] = {"user", "assistant", "system", "developer"};

class InputReader {
 public:
  InputReader(const Services& services, chat::ChatRequest& request)
      : services_(services), form_(chat::template_of(services)), request_(request) {}

  Result<Done> read_item(const std::string& path, element item) {
    if (Result<Done> object = chat::need_object(path, item); !object) return object.error();
    element value;
    std::string type = "message";
    if (chat::is_given(item, "type", value) || item["role"].error() != simdjson::SUCCESS) {
      Result<std::string> given = chat::text_member(path, item, "type");
      if (!given) return given.error();
      type = std::move(*given);
    }
    if (type == "message") return read_message(path, item);
    if (type == "reasoning") return read_reasoning(path, item);
    if (type == "function_call") return read_call(path, item);
    if (type == "function_call_output") return read_output(path, item);
    return invalid(path + ".type", path +
                                       ".type must be \"message\", \"reasoning\", \"function_call\" or "
                                       "\"function_call_output\": nothing is stored here, and tools are the caller's");
  }

  // The assistant's turn ends here, if one is open.
  void end_turn() {
    if (!turn_) return;
    if (!turn_->has("content") && turn_->has("tool_calls")) turn_->set_no_content();
    if (!turn_->has("content") && !turn_->has("tool_calls")) turn_->set("content", "");
    request_.messages.push_back(turn_->take());
    turn_.reset();
  }

 private:
  // The assistant's turn, unless one of these is there already: a new one then.
  MessageDraft& turn_without(std::initializer_list<const char*> names) {
    const auto there = [&](const char* name) { return turn_ && turn_->has(name); };
    if (std::any_of(names.begin(), names.end(), there)) end_turn();
    if (!turn_) {
      turn_.emplace("assistant", form_);
      num_calls_ = 0;
    }
    return *turn_;
  }

  Result<Done> read_message(const std::string& path, element item) {
    const Result<std::string> role = chat::text_member(path, item, "role");
    if (!role) return role.error();
    if (std::find(std::begin(kRoles), std::end(kRoles), *role) == std::end(kRoles)) {
      return invalid(path + ".role", path + ".role must be user, assistant, system or developer");
    }
    element content;
    const std::string in = path + ".content";
    if (!chat::is_given(item, "content", content)) return invalid(in, in + " is missing");
    Result<std::string> text = chat::text_of(in, content, kTexts, services_);
    if (!text) return text.error();
    if (*role == "assistant") {
      turn_without({"content", "tool_calls"}).set("content", *text);
      return Done{};
    }
    end_turn();
    MessageDraft message(*role, form_);
    message.set("content", *text);
    request_.messages.push_back(message.take());
    return Done{};
  }

  // Its own text, or what a summary says where that is all there is.
  Result<Done> read_reasoning(const std::string& path, element item) {
    for (const auto& [name, types] : {std::pair{"content", kReasoningTexts}, std::pair{"summary", kSummaryTexts}}) {
      element parts;
      if (!chat::is_given(item, name, parts)) continue;
      if (parts.is_array() && array_of(parts).size() == 0) continue;
      const Result<std::string> text = chat::text_of(path + "." + name, parts, {types, 1}, services_);
      if (!text) return text.error();
      turn_without({"reasoning", "content", "tool_calls"}).set_reasoning(*text);
      break;
    }
    return Done{};
  }

  Result<Done> read_call(const std::string& path, element item) {
    Result<std::string> id = chat::text_member(path, item, "call_id");
    if (!id) return id.error();
    Result<std::string> name = chat::text_member(path, item, "name");
    if (!name) return name.error();
    const std::string in = path + ".arguments";
    element value;
    if (!chat::is_given(item, "arguments", value)) return invalid(in, in + " is missing");
    Result<json::Value> arguments = chat::arguments_of(in, value, form_);
    if (!arguments) return arguments.error();
    MessageDraft& turn = turn_without({});
    if (num_calls_++ == services_.limits.max_tool_calls) {
      return invalid(path, path + " is one call too many: at most " + std::to_string(services_.limits.max_tool_calls) +
                               " may follow each other");
    }
    turn.add_call(std::move(*id), std::move(*name), std::move(*arguments));
    return Done{};
  }

  Result<Done> read_output(const std::string& path, element item) {
    Result<std::string> id = chat::text_member(path, item, "call_id");
    if (!id) return id.error();
    const std::string in = path + ".output";
    element value;
    if (!chat::is_given(item, "output", value)) return invalid(in, in + " is missing");
    Result<std::string> text = chat::text_of(in, value, kTexts, services_);
    if (!text) return text.error();
    end_turn();
    MessageDraft message("tool", form_);
    message.set("content", *text);
    message.set("tool_call_id", *id);
    request_.messages.push_back(message.take());
    return Done{};
  }

  const Services& services_;
  const chat::ChatTemplate* const form_;
  chat::ChatRequest& request_;
  std::optional<MessageDraft> turn_;  // of the assistant, as long as its items follow each other
  std::size_t num_calls_ = 0;         // in it
};

}  // namespace

Result<Done> read_input(const std::string& path, element value, const Services& services, chat::ChatRequest& request) {
  if (value.is_string()) {
    MessageDraft message("user", chat::template_of(services));
    message.set("content", value.get_string().value_unsafe());
    request.messages.push_back(message.take());
    return Done{};
  }
  if (!value.is_array()) return invalid(path, path + " must be a string or a list of items");
  InputReader reader(services, request);
  std::size_t count = 0;
  for (const element item : array_of(value)) {
    if (count == services.limits.max_messages) {
      return invalid(path, path + " may hold at most " + std::to_string(count) + " items");
    }
    if (Result<Done> read = reader.read_item(chat::at(path, count++), item); !read) return read.error();
  }
  reader.end_turn();
  if (request.messages.empty()) return invalid(path, path + " must not be empty");
  return Done{};
}

}  // namespace quire::api::responses
