// Parts of messages, read from a body and converted to the form that the served model's chat template reads. Shared by
// all endpoints with a conversation.
// Thread  any; pure functions.
// Fails   kInvalidArgument with the path of the faulty value.
// Source  the form is that of OpenAI's chat messages, which templates are written for; the members' names for reasoning
//         are those of transformers.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "api/services/chat_model.h"
#include "api/services/services.h"
#include "core/base/json.h"
#include "core/base/result.h"

namespace quire::api::chat {

// Length limit of texts that only the limit of the whole body bounds.
inline constexpr std::size_t kAnyText = std::numeric_limits<std::size_t>::max();

std::string at(const std::string& path, std::size_t index);  // "path[index]"
// True if the member `key` exists and is not null; `value` is set to it.
bool is_given(simdjson::dom::element object, std::string_view key, simdjson::dom::element& value);
Result<Done> need_object(const std::string& path, simdjson::dom::element value);
// Text of a required member.
Result<std::string> text_member(const std::string& path, simdjson::dom::element object, std::string_view key);

// Text of `content`: a string, or a list of strings and parts {"type": one of `types`, "text": ...}, joined by line
// breaks. If `types` has more than one type, parts {"type": "refusal", "refusal": ...} are accepted, too.
Result<std::string> text_of(const std::string& path, simdjson::dom::element content,
                            std::span<const std::string_view> types, const Services& services);

// Text of one such part, or of a string.
Result<std::string> text_of_part(const std::string& path, simdjson::dom::element part,
                                 std::span<const std::string_view> types);

// The template that messages are converted for: the one for tools, if the model has it, else the plain one. Null: this
// model does not chat.
const ChatTemplate* template_of(const Services& services);

// A call's arguments, an object or a text, in the form that the template reads. A text need not be valid JSON, because
// it may be of a truncated call: it is passed on as it is, or becomes {} if the template reads an object.
Result<json::Value> arguments_of(const std::string& path, simdjson::dom::element value, const ChatTemplate* form);

// The arguments of a call whose input is a text: {"input": text}, in the form that the template reads.
json::Value arguments_of_text(std::string_view text, const ChatTemplate* form);

// A message {role, content, tool_calls, reasoning, ...} under construction.
class MessageDraft {
 public:
  // The role "developer" becomes "system" if the template does not know it.
  MessageDraft(std::string_view role, const ChatTemplate* form);

  void set(std::string_view name, std::string_view text) { out_[name] = text; }
  void set_no_content() { out_["content"] = nullptr; }
  void set_reasoning(const std::string& text);  // under each of its three names that is not set yet
  void add_call(std::string_view id, std::string_view name, json::Value arguments);  // an empty id is left out

  bool has(std::string_view name) const { return out_.contains(name); }
  json::Value take() { return json::Value(std::move(out_)); }

 private:
  json::Object out_;
};

}  // namespace quire::api::chat
