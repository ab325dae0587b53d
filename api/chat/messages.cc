#include "api/chat/messages.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <limits>
#include <string_view>
#include <utility>

#include "api/chat/json_copy.h"
#include "api/openai/fields/read_body.h"
#include "api/openai/json_values.h"

namespace quire::api::chat {
namespace {

using openai::array_of;
using openai::object_of;
using simdjson::dom::element;

constexpr std::size_t kMaxText = std::numeric_limits<std::size_t>::max();  // the body has its own limit

std::string at(const std::string& path, std::size_t index) { return path + "[" + std::to_string(index) + "]"; }

bool is_given(element object, std::string_view key, element& value) {
  return object[key].get(value) == simdjson::SUCCESS && !value.is_null();
}

Result<Done> need_object(const std::string& path, element value) {
  if (value.is_object()) return Done{};
  return invalid(path, path + " must be an object");
}

// ---- content

Result<std::string> text_of_part(const std::string& path, element part) {
  if (Result<Done> object = need_object(path, part); !object) return object.error();
  element type;
  if (part["type"].get(type) != simdjson::SUCCESS) return invalid(path + ".type", path + ".type is missing");
  const Result<std::string> kind = openai::string_of(path + ".type", type, kMaxText);
  if (!kind) return kind.error();
  if (*kind != "text") {
    return invalid(path + ".type", path + ".type must be \"text\": this server reads text alone");
  }
  element text;
  if (part["text"].get(text) != simdjson::SUCCESS) return invalid(path + ".text", path + ".text is missing");
  return openai::string_of(path + ".text", text, kMaxText);
}

Result<std::string> text_of(const std::string& path, element content, const Services& services) {
  if (content.is_string()) return std::string(content.get_string().value_unsafe());
  if (!content.is_array()) return invalid(path, path + " must be a string or a list of text parts");
  std::string joined;
  std::size_t index = 0;
  for (const element part : array_of(content)) {
    if (index == services.limits.max_content_parts) {
      return invalid(path, path + " may have at most " + std::to_string(index) + " parts: join them");
    }
    Result<std::string> text = text_of_part(at(path, index), part);
    if (!text) return text.error();
    if (index++ != 0) joined += '\n';
    joined += *text;
  }
  if (index == 0) return invalid(path, path + " must not be an empty list");
  return joined;
}

// ---- calls that an assistant made before

Result<boost::json::value> arguments_of(const std::string& path, element value) {
  boost::json::value arguments;
  if (value.is_string()) {
    const std::string_view text = value.get_string().value_unsafe();
    boost::system::error_code error;
    boost::json::parse_options options;
    options.max_depth = kMaxDepth;
    arguments = text.empty() ? boost::json::object() : boost::json::parse(text, error, {}, options);
    if (error) return invalid(path, path + " must be the text of a JSON object");
  } else {
    Result<boost::json::value> copied = copy_of(path, value);
    if (!copied) return copied.error();
    arguments = std::move(*copied);
  }
  if (!arguments.is_object()) return invalid(path, path + " must be the text of a JSON object");
  return arguments;
}

Result<boost::json::value> call_of(const std::string& path, element value, const ChatTemplate* form) {
  if (Result<Done> object = need_object(path, value); !object) return object.error();
  boost::json::object call;
  element part;
  if (is_given(value, "id", part)) {
    Result<std::string> id = openai::string_of(path + ".id", part, kMaxText);
    if (!id) return id.error();
    call["id"] = std::move(*id);
  }
  call["type"] = "function";
  if (is_given(value, "type", part)) {
    const Result<std::string> type = openai::string_of(path + ".type", part, kMaxText);
    if (!type) return type.error();
    if (*type != "function") return invalid(path + ".type", path + ".type must be \"function\"");
  }
  const std::string in = path + ".function";
  element function;
  if (!is_given(value, "function", function)) return invalid(in, in + " is missing");
  if (Result<Done> object = need_object(in, function); !object) return object.error();
  if (!is_given(function, "name", part)) return invalid(in + ".name", in + ".name is missing");
  Result<std::string> name = openai::string_of(in + ".name", part, kMaxText);
  if (!name) return name.error();
  boost::json::value arguments = boost::json::object();
  if (is_given(function, "arguments", part)) {
    Result<boost::json::value> given = arguments_of(in + ".arguments", part);
    if (!given) return given.error();
    const bool as_text = form != nullptr && !form->object_arguments;
    if (as_text && part.is_string()) {
      arguments = boost::json::string(part.get_string().value_unsafe());
    } else if (as_text) {
      arguments = boost::json::string(boost::json::serialize(*given));
    } else {
      arguments = std::move(*given);
    }
  }
  call["function"] = boost::json::object{{"name", std::move(*name)}, {"arguments", std::move(arguments)}};
  return boost::json::value(std::move(call));
}

Result<boost::json::array> calls_of(const std::string& path, element value, const Services& services,
                                    const ChatTemplate* form) {
  if (!value.is_array()) return invalid(path, path + " must be a list");
  boost::json::array calls;
  for (const element one : array_of(value)) {
    if (calls.size() == services.limits.max_tool_calls) {
      return invalid(path, path + " may hold at most " + std::to_string(calls.size()) + " calls");
    }
    Result<boost::json::value> call = call_of(at(path, calls.size()), one, form);
    if (!call) return call.error();
    calls.push_back(std::move(*call));
  }
  return calls;
}

// ---- one message

constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};
constexpr std::string_view kKnown[] = {"role",       "content",           "name",    "tool_calls",    "tool_call_id",
                                       "reasoning",  "reasoning_content", "refusal", "function_call", "audio",
                                       "annotations"};

class MessageReader {
 public:
  MessageReader(std::string path, element message, const Services& services, ChatRequest& request)
      : path_(std::move(path)), message_(message), services_(services), request_(request) {}

  Result<boost::json::value> read() {
    if (Result<Done> object = need_object(path_, message_); !object) return object.error();
    for (auto stage : {&MessageReader::read_role, &MessageReader::read_content, &MessageReader::read_calls,
                       &MessageReader::read_reasoning, &MessageReader::read_others}) {
      if (Result<Done> done = (this->*stage)(); !done) return done.error();
    }
    return boost::json::value(std::move(out_));
  }

 private:
  // The template that most of what is asked here is about.
  const ChatTemplate* form() const {
    const ChatModel* model = services_.chat.get();
    if (model == nullptr) return nullptr;
    return model->with_tools ? &*model->with_tools : model->plain ? &*model->plain : nullptr;
  }

  Result<Done> read_role() {
    const std::string path = path_ + ".role";
    element value;
    if (!is_given(message_, "role", value)) return invalid(path, path + " is missing");
    const Result<std::string> role = openai::string_of(path, value, kMaxText);
    if (!role) return role.error();
    if (std::find(std::begin(kRoles), std::end(kRoles), *role) == std::end(kRoles)) {
      return invalid(path, path + " must be system, developer, user, assistant or tool");
    }
    role_ = *role;
    const bool as_system = role_ == "developer" && form() != nullptr && !form()->knows_developer;
    out_["role"] = as_system ? "system" : role_;
    return Done{};
  }

  Result<Done> read_content() {
    const std::string path = path_ + ".content";
    element value;
    if (is_given(message_, "content", value)) {
      Result<std::string> text = text_of(path, value, services_);
      if (!text) return text.error();
      out_["content"] = std::move(*text);
      return Done{};
    }
    element calls;
    const bool calls_tools = role_ == "assistant" && is_given(message_, "tool_calls", calls) && calls.is_array() &&
                             array_of(calls).size() > 0;
    if (!calls_tools) return invalid(path, path + " is missing");
    const NoContent none = form() != nullptr ? form()->no_content : NoContent::kAbsent;
    if (none == NoContent::kEmpty) out_["content"] = "";
    if (none == NoContent::kNull) out_["content"] = nullptr;
    return Done{};
  }

  Result<Done> read_calls() {
    const std::string path = path_ + ".tool_calls";
    element value;
    if (!is_given(message_, "tool_calls", value)) return Done{};
    Result<boost::json::array> calls = calls_of(path, value, services_, form());
    if (!calls) return calls.error();
    if (calls->empty()) return Done{};
    if (role_ != "assistant") return invalid(path, path + " belongs to an assistant's message");
    out_["tool_calls"] = std::move(*calls);
    return Done{};
  }

  Result<Done> read_reasoning() {
    for (const char* name : {"reasoning_content", "reasoning"}) {
      element value;
      if (!is_given(message_, name, value)) continue;
      const Result<std::string> text = openai::string_of(path_ + "." + name, value, kMaxText);
      if (!text) return text.error();
      if (role_ != "assistant") continue;
      for (const char* known : {"reasoning_content", "reasoning", "thinking"}) {
        if (!out_.contains(known)) out_[known] = *text;
      }
    }
    return Done{};
  }

  Result<Done> read_others() {
    for (const char* name : {"name", "tool_call_id"}) {
      element value;
      if (!is_given(message_, name, value)) continue;
      Result<std::string> text = openai::string_of(path_ + "." + name, value, kMaxText);
      if (!text) return text.error();
      out_[name] = std::move(*text);
    }
    for (const char* name : {"function_call", "audio"}) {
      element value;
      if (!is_given(message_, name, value)) continue;
      const std::string path = path_ + "." + name;
      return invalid(path, path + " is not supported: leave it out");
    }
    for (const auto field : object_of(message_)) {
      if (std::find(std::begin(kKnown), std::end(kKnown), field.key) != std::end(kKnown)) continue;
      openai::pass_over(request_, path_ + "." + openai::echoed(field.key));
    }
    return Done{};
  }

  const std::string path_;
  const element message_;
  const Services& services_;
  ChatRequest& request_;
  std::string role_;
  boost::json::object out_;
};

}  // namespace

Result<Done> read_messages(const std::string& path, element value, const Services& services, ChatRequest& request) {
  if (!value.is_array()) return invalid(path, path + " must be a list of messages");
  for (const element one : array_of(value)) {
    if (request.messages.size() == services.limits.max_messages) {
      return invalid(path, path + " may hold at most " + std::to_string(services.limits.max_messages) + " messages");
    }
    MessageReader reader(at(path, request.messages.size()), one, services, request);
    Result<boost::json::value> message = reader.read();
    if (!message) return message.error();
    request.messages.push_back(std::move(*message));
  }
  if (request.messages.empty()) return invalid(path, path + " must not be empty");
  return Done{};
}

}  // namespace quire::api::chat
