#include "api/responses/input_items.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "api/chat/message_parts.h"
#include "api/fields/read_body.h"
#include "api/json/json_values.h"

namespace quire::api::responses {
namespace {

using chat::MessageDraft;
using simdjson::dom::element;

constexpr std::string_view kTexts[] = {"input_text", "output_text", "text"};
constexpr std::string_view kReasoningTexts[] = {"reasoning_text"};
constexpr std::string_view kSummaryTexts[] = {"summary_text"};
constexpr std::string_view kRoles[] = {"user", "assistant", "system", "developer"};
// Items of tools that a server ran, in a conversation that began on another server. They are left out with a warning.
constexpr std::string_view kOfOtherTools[] = {"web_search_call",
                                              "file_search_call",
                                              "code_interpreter_call",
                                              "image_generation_call",
                                              "computer_call",
                                              "local_shell_call",
                                              "local_shell_call_output",
                                              "shell_call",
                                              "shell_call_output",
                                              "apply_patch_call",
                                              "apply_patch_call_output",
                                              "mcp_list_tools",
                                              "mcp_approval_request",
                                              "mcp_approval_response",
                                              "mcp_call",
                                              "tool_search_call",
                                              "tool_search_output",
                                              "additional_tools",
                                              "compaction"};

class InputReader {
 public:
  InputReader(const Services& services, chat::ChatRequest& request)
      : services_(services), format_(chat::template_of(services)), request_(request) {}

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
    if (type == "custom_tool_call") return read_custom_call(path, item);
    if (type == "function_call_output" || type == "custom_tool_call_output") return read_output(path, item);
    if (std::ranges::find(kOfOtherTools, type) != std::end(kOfOtherTools)) {
      leave_out(request_, path);
      return Done{};
    }
    return invalid(path + ".type",
                   path +
                       ".type must be \"message\", \"reasoning\", \"function_call\" or \"function_call_output\": "
                       "nothing is stored on this server, and it reads text only");
  }

  // Ends the assistant message under construction, if there is one, and appends it to the messages.
  void end_turn() {
    if (!assistant_) return;
    if (!assistant_->has("content") && assistant_->has("tool_calls")) assistant_->set_no_content();
    if (!assistant_->has("content") && !assistant_->has("tool_calls")) assistant_->set("content", "");
    request_.messages.push_back(assistant_->take());
    assistant_.reset();
  }

 private:
  // The assistant message under construction. A new one is begun if there is none, or if it has a member of `names`.
  MessageDraft& assistant_without(std::initializer_list<const char*> names) {
    const auto there = [&](const char* name) { return assistant_ && assistant_->has(name); };
    if (std::any_of(names.begin(), names.end(), there)) end_turn();
    if (!assistant_) {
      assistant_.emplace("assistant", format_);
      num_calls_ = 0;
    }
    return *assistant_;
  }

  Result<Done> read_message(const std::string& path, element item) {
    const Result<std::string> role = chat::text_member(path, item, "role");
    if (!role) return role.error();
    if (std::find(std::begin(kRoles), std::end(kRoles), *role) == std::end(kRoles)) {
      return invalid(path + ".role", path + ".role must be user, assistant, system or developer");
    }
    const Result<std::string> text = said(path, item, "content", *role == "assistant");
    if (!text) return text.error();
    if (*role == "assistant") {
      assistant_without({"content", "tool_calls"}).set("content", *text);
      return Done{};
    }
    end_turn();
    MessageDraft message(*role, format_);
    message.set("content", *text);
    request_.messages.push_back(message.take());
    return Done{};
  }

  // Takes the text of `content`, or of `summary` if there is no content.
  Result<Done> read_reasoning(const std::string& path, element item) {
    for (const auto& [name, types] : {std::pair{"content", kReasoningTexts}, std::pair{"summary", kSummaryTexts}}) {
      element parts;
      if (!chat::is_given(item, name, parts)) continue;
      if (parts.is_array() && array_of(parts).size() == 0) continue;
      const Result<std::string> text = chat::text_of(path + "." + name, parts, {types, 1}, services_);
      if (!text) return text.error();
      assistant_without({"reasoning", "content", "tool_calls"}).set_reasoning(*text);
      break;
    }
    return Done{};
  }

  // Text of the required member `key`. With `may_be_empty`, null and [] count as an empty text.
  Result<std::string> said(const std::string& path, element item, const char* key, bool may_be_empty) const {
    const std::string in = path + "." + key;
    element value;
    if (item[key].get(value) != simdjson::SUCCESS) return invalid(in, in + " is missing");
    const bool is_empty = value.is_null() || (value.is_array() && array_of(value).size() == 0);
    if (may_be_empty && is_empty) return std::string();
    return chat::text_of(in, value, kTexts, services_);
  }

  Result<Done> add_call(const std::string& path, const std::string& id, const std::string& name,
                        json::Value arguments) {
    MessageDraft& assistant = assistant_without({});
    if (num_calls_++ == services_.limits.max_tool_calls) {
      return invalid(
          path, path + ": at most " + std::to_string(services_.limits.max_tool_calls) + " calls may follow each other");
    }
    assistant.add_call(id, name, std::move(arguments));
    return Done{};
  }

  Result<Done> read_custom_call(const std::string& path, element item) {
    Result<std::string> id = chat::text_member(path, item, "call_id");
    if (!id) return id.error();
    Result<std::string> name = chat::text_member(path, item, "name");
    if (!name) return name.error();
    const Result<std::string> input = chat::text_member(path, item, "input");
    if (!input) return input.error();
    return add_call(path, *id, *name, chat::arguments_of_text(*input, format_));
  }

  Result<Done> read_call(const std::string& path, element item) {
    Result<std::string> id = chat::text_member(path, item, "call_id");
    if (!id) return id.error();
    Result<std::string> name = chat::text_member(path, item, "name");
    if (!name) return name.error();
    const std::string in = path + ".arguments";
    element value;
    if (!chat::is_given(item, "arguments", value)) return invalid(in, in + " is missing");
    Result<json::Value> arguments = chat::arguments_of(in, value, format_);
    if (!arguments) return arguments.error();
    return add_call(path, *id, *name, std::move(*arguments));
  }

  Result<Done> read_output(const std::string& path, element item) {
    Result<std::string> id = chat::text_member(path, item, "call_id");
    if (!id) return id.error();
    const Result<std::string> text = said(path, item, "output", true);
    if (!text) return text.error();
    end_turn();
    MessageDraft message("tool", format_);
    message.set("content", *text);
    message.set("tool_call_id", *id);
    request_.messages.push_back(message.take());
    return Done{};
  }

  const Services& services_;
  const chat::ChatTemplate* const format_;
  chat::ChatRequest& request_;
  std::optional<MessageDraft> assistant_;  // under construction, as long as the assistant's items follow each other
  std::size_t num_calls_ = 0;              // calls in assistant_
};

Result<Done> read_text(std::string_view text, const Services& services, chat::ChatRequest& request) {
  MessageDraft message("user", chat::template_of(services));
  message.set("content", text);
  request.messages.push_back(message.take());
  return Done{};
}

}  // namespace

Result<Done> read_input(const std::string& path, element value, const Services& services, chat::ChatRequest& request) {
  if (value.is_string()) return read_text(value.get_string().value_unsafe(), services, request);
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
  if (request.messages.empty()) return read_text("", services, request);  // [] counts as ""
  return Done{};
}

}  // namespace quire::api::responses
