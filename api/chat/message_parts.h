// What messages are made of, read from a body and put into the shape that the served model's template reads: for every
// endpoint with a conversation, whatever its messages look like.
// Thread  any; pure functions.
// Fails   kInvalidArgument with the path of what is wrong.
// Source  the shape is that of OpenAI's chat messages, which templates are written for; the names of reasoning are
//         those that transformers fills in.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "api/chat/chat_model.h"
#include "api/services.h"
#include "core/base/json.h"
#include "core/base/result.h"

namespace quire::api::chat {

inline constexpr std::size_t kAnyText = std::numeric_limits<std::size_t>::max();  // the body has its own limit

std::string at(const std::string& path, std::size_t index);  // "path[index]"
// There, and not null.
bool is_given(simdjson::dom::element object, std::string_view key, simdjson::dom::element& value);
Result<Done> need_object(const std::string& path, simdjson::dom::element value);
// A member that has to be there.
Result<std::string> text_member(const std::string& path, simdjson::dom::element object, std::string_view key);

// A text, or a list of texts and parts {"type": one of `types`, "text": ...}, joined by line breaks. Where more than
// one type is known, a refusal is one, too.
Result<std::string> text_of(const std::string& path, simdjson::dom::element content,
                            std::span<const std::string_view> types, const Services& services);

// One of such parts, or a text.
Result<std::string> text_of_part(const std::string& path, simdjson::dom::element part,
                                 std::span<const std::string_view> types);

// The template that most of what is asked of a message is about. Null: this model does not chat.
const ChatTemplate* template_of(const Services& services);

// A call's arguments, an object or a text, as the template wants them. A text need not be an object's: a call that was
// cut short is replayed as it was, and has no arguments where the template reads them as an object.
Result<json::Value> arguments_of(const std::string& path, simdjson::dom::element value, const ChatTemplate* form);

// Likewise of a call whose input is a text: {"input": text}.
json::Value arguments_of_text(std::string_view text, const ChatTemplate* form);

// {role, content, tool_calls, reasoning, ...}, member by member.
class MessageDraft {
 public:
  // A developer is the system where the template does not know the role.
  MessageDraft(std::string_view role, const ChatTemplate* form);

  void set(std::string_view name, std::string_view text) { out_[name] = text; }
  void set_no_content() { out_["content"] = nullptr; }
  void set_reasoning(const std::string& text);  // under each of its names that is not taken
  void add_call(std::string_view id, std::string_view name, json::Value arguments);  // an empty id is left out

  bool has(std::string_view name) const { return out_.contains(name); }
  json::Value take() { return json::Value(std::move(out_)); }

 private:
  json::Object out_;
};

}  // namespace quire::api::chat
