#include "api/messages/conversation.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "api/chat/message_parts.h"
#include "api/fields/read_body.h"
#include "api/json/json_values.h"

namespace quire::api::messages {
namespace {

using chat::MessageDraft;
using simdjson::dom::element;

constexpr std::string_view kText[] = {"text"};

void add_line(std::string& text, std::string_view more) {
  if (!text.empty()) text += '\n';
  text += more;
}

// Converts one message into one or more messages of the template.
class MessageReader {
 public:
  MessageReader(std::string path, const Services& services, MessagesRequest& request)
      : path_(std::move(path)), services_(services), formatter_(chat::template_of(services)), request_(request) {}

  Result<Done> read(element message) {
    if (Result<Done> object = chat::need_object(path_, message); !object) return object.error();
    Result<std::string> role = chat::text_member(path_, message, "role");
    if (!role) return role.error();
    role_ = std::move(*role);
    if (role_ != "user" && role_ != "assistant" && role_ != "system") {
      return invalid(path_ + ".role", path_ + ".role must be user, assistant or system");
    }
    const std::string in = path_ + ".content";
    element content;
    const bool is_there = chat::is_given(message, "content", content);
    if (!is_there && role_ != "assistant") return invalid(in, in + " is missing");
    if (!is_there) {
      say("");
    } else if (content.is_string()) {
      say(content.get_string().value_unsafe());
    } else if (Result<Done> read = read_blocks(in, content); !read) {
      return read.error();
    }
    if (role_ == "assistant") return end_assistant();
    end_text();
    request_.ends_with_assistant = false;
    return Done{};
  }

 private:
  void say(std::string_view text) {
    add_line(text_, text);
    says_ = true;
  }

  Result<Done> read_blocks(const std::string& in, element content) {
    if (!content.is_array()) return invalid(in, in + " must be a string or a list of blocks");
    std::size_t index = 0;
    for (const element block : array_of(content)) {
      if (index == services_.limits.max_content_parts) {
        return invalid(in, in + " may have at most " + std::to_string(index) + " blocks: join them");
      }
      if (Result<Done> read = read_block(chat::at(in, index++), block); !read) return read.error();
    }
    if (index == 0 && role_ != "assistant") return invalid(in, in + " must not be an empty list");
    return Done{};
  }

  Result<Done> read_block(const std::string& path, element block) {
    if (Result<Done> object = chat::need_object(path, block); !object) return object.error();
    const Result<std::string> type = chat::text_member(path, block, "type");
    if (!type) return type.error();
    if (*type == "text") {
      const Result<std::string> text = chat::text_member(path, block, "text");
      if (!text) return text.error();
      say(*text);
      return Done{};
    }
    if (role_ == "user" && *type == "tool_result") return read_result(path, block);
    if (role_ == "assistant" && *type == "tool_use") return read_call(path, block);
    if (role_ == "assistant" && *type == "thinking") return read_thinking(path, block);
    if (role_ == "assistant" && *type == "redacted_thinking") return Done{};  // encrypted by another server
    if (type->ends_with("_tool_use") || type->ends_with("_tool_result")) {    // of a tool that a server ran
      leave_out(request_, path);
      return Done{};
    }
    const char* known = role_ == "assistant" ? "text, thinking or tool_use" : "text or tool_result";
    return invalid(path + ".type", path + ".type must be " + known + " in this role: this server reads text only");
  }

  Result<Done> read_thinking(const std::string& path, element block) {
    const Result<std::string> text = chat::text_member(path, block, "thinking");
    if (!text) return text.error();
    add_line(thinking_, *text);
    return Done{};
  }

  Result<Done> read_call(const std::string& path, element block) {
    Result<std::string> id = chat::text_member(path, block, "id");
    if (!id) return id.error();
    Result<std::string> name = chat::text_member(path, block, "name");
    if (!name) return name.error();
    const std::string in = path + ".input";
    element value;
    json::Value arguments = json::Object();
    if (chat::is_given(block, "input", value)) {
      Result<json::Value> given = chat::arguments_of(in, value, formatter_);
      if (!given) return given.error();
      arguments = std::move(*given);
    }
    if (num_calls_++ == services_.limits.max_tool_calls) {
      return invalid(path_, path_ + " may hold at most " + std::to_string(services_.limits.max_tool_calls) + " calls");
    }
    assistant_.add_call(*id, *name, std::move(arguments));
    return Done{};
  }

  Result<Done> read_result(const std::string& path, element block) {
    Result<std::string> id = chat::text_member(path, block, "tool_use_id");
    if (!id) return id.error();
    const Result<std::string> text = text_of_result(path + ".content", block);
    if (!text) return text.error();
    end_text();
    MessageDraft message("tool", formatter_);
    message.set("content", *text);
    message.set("tool_call_id", *id);
    request_.messages.push_back(message.take());
    return Done{};
  }

  // Text of a tool's result. Parts tool_reference (tools that a search has found) are left out with a warning, because
  // templates have no place for them.
  Result<std::string> text_of_result(const std::string& in, element block) {
    element content;
    if (!chat::is_given(block, "content", content)) return std::string();
    if (!content.is_array()) return chat::text_of(in, content, kText, services_);
    std::string text;
    bool is_first = true;
    std::size_t index = 0;
    for (const element part : array_of(content)) {
      if (index == services_.limits.max_content_parts) {
        return invalid(in, in + " may have at most " + std::to_string(index) + " parts: join them");
      }
      const std::string path = chat::at(in, index++);
      element type;
      const bool is_name = part.is_object() && chat::is_given(part, "type", type) && type.is_string() &&
                           type.get_string().value_unsafe() == "tool_reference";
      if (is_name) {
        leave_out(request_, path);
        continue;
      }
      const Result<std::string> said = chat::text_of_part(path, part, kText);
      if (!said) return said.error();
      if (!std::exchange(is_first, false)) text += '\n';
      text += *said;
    }
    return text;
  }

  // Appends a message with the text of the user or the system since the last tool result, if there is any.
  void end_text() {
    if (!std::exchange(says_, false)) return;
    MessageDraft message(role_, formatter_);
    message.set("content", std::exchange(text_, {}));
    request_.messages.push_back(message.take());
  }

  Result<Done> end_assistant() {
    if (says_ || num_calls_ == 0) {
      assistant_.set("content", text_);
    } else {
      assistant_.set_no_content();
    }
    if (!thinking_.empty()) assistant_.set_reasoning(thinking_);
    request_.messages.push_back(assistant_.take());
    request_.ends_with_assistant = says_ && num_calls_ == 0;
    return Done{};
  }

  const std::string path_;
  const Services& services_;
  const chat::ChatTemplate* const formatter_;
  MessagesRequest& request_;
  std::string role_;
  std::string text_;  // text that is not part of a message yet
  bool says_ = false;
  std::string thinking_;
  MessageDraft assistant_{"assistant", formatter_};  // the message, if its role is assistant
  std::size_t num_calls_ = 0;
};

}  // namespace

Result<Done> read_messages(const std::string& path, element value, const Services& services, MessagesRequest& request) {
  if (!value.is_array()) return invalid(path, path + " must be a list of messages");
  std::size_t count = 0;
  for (const element one : array_of(value)) {
    if (count == services.limits.max_messages) {
      return invalid(path, path + " may hold at most " + std::to_string(count) + " messages");
    }
    MessageReader reader(chat::at(path, count++), services, request);
    if (Result<Done> read = reader.read(one); !read) return read.error();
  }
  if (count == 0) return invalid(path, path + " must not be empty");
  return Done{};
}

Result<Done> read_system(const std::string& path, element value, const Services& services, MessagesRequest& request) {
  if (value.is_array() && array_of(value).size() == 0) return Done{};
  Result<std::string> text = chat::text_of(path, value, kText, services);
  if (!text) return text.error();
  request.system = std::move(*text);
  return Done{};
}

}  // namespace quire::api::messages
