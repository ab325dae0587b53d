// What chat tests begin with: a chat model of a template of their own, and a body read with it.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <string>
#include <utility>

#include "api/chat/chat_request.h"
#include "tests/api/generation/fake_engine.h"

namespace quire::api::chat::test {

// Prints every message on a line: "<role>content", its reasoning in parentheses, its calls as name=arguments.
inline constexpr const char* kPlain =
    "{%- for m in messages -%}<{{ m.role }}>{{ m.content }}"
    "{%- if m.reasoning_content %}({{ m.reasoning_content }}){% endif -%}"
    "{%- for c in m.tool_calls or [] %} {{ c.function.name }}={{ c.function.arguments | tojson }}{% endfor %}"
    "{{ '\\n' }}{% endfor -%}"
    "{%- if add_generation_prompt %}<assistant>{% endif -%}";

inline std::shared_ptr<const ChatModel> model_of(std::string_view source, CallFormat calls = CallFormat::kNone,
                                                 ReasoningFormat reasoning = ReasoningFormat::kNone) {
  auto model = std::make_shared<ChatModel>();
  model->special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  Result<ChatTemplate> read = read_template(source, model->special_tokens);
  EXPECT_TRUE(read) << read.error().message;
  model->plain = std::move(*read);
  model->calls = calls;
  model->describes_tools = calls == CallFormat::kGeneric;
  model->reasoning = reasoning;
  return model;
}

// A body of an endpoint with a conversation, read by `kParse`.
template <typename Request, Result<Request> (*kParse)(const std::string&, const Services&)>
class Bodies : public ::testing::Test {
 protected:
  Result<Request> read(const std::string& body) { return kParse(body, services_); }
  Request good(const std::string& body) {
    Result<Request> request = read(body);
    EXPECT_TRUE(request) << request.error().message;
    return request ? std::move(*request) : Request();
  }

  // "param: message" of a refusal; "" where it is none.
  std::string refusal(const std::string& body) {
    const Result<Request> request = read(body);
    if (request) return "";
    EXPECT_EQ(request.error().code, Code::kInvalidArgument);
    EXPECT_LE(request.error().message.size(), 400u);
    return request.error().param + ": " + request.error().message;
  }
  void expect_refused(const std::string& body, const std::string& param) {
    const std::string reported = refusal(body);
    EXPECT_EQ(reported.substr(0, reported.find(": ")), param) << body << "\n" << reported;
  }

  api::test::World world_;
  Services services_ = [this] {
    Services services = world_.services();
    services.chat = model_of(kPlain, CallFormat::kHermes, ReasoningFormat::kThinkTags);
    return services;
  }();
};

class ChatBodies : public Bodies<ChatRequest, parse_chat_request> {
 protected:
  // A body with these members beside one message.
  static std::string with(const std::string& members) {
    return R"({"messages":[{"role":"user","content":"hi"}])" + (members.empty() ? "" : "," + members) + "}";
  }
  static std::string of_messages(const std::string& messages) { return R"({"messages":)" + messages + "}"; }
};

// "[one,one,...]", for limits.
inline std::string list_of(const std::string& one, std::size_t count) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + one;
  return "[" + list + "]";
}

}  // namespace quire::api::chat::test
