#include <boost/json.hpp>

#include "api/chat/render_chat.h"
#include "api/tokenize/tokenize.h"
#include "tests/api/chat/chat_world.h"
#include "tests/api/wire/patient_calls.h"

namespace quire::api::test {
namespace {

namespace json = boost::json;

class TokenizeMessages : public chat::test::ChatBodies {
 protected:
  TokenizeMessages() { services_.chat = chat::test::model_of(kTelling, chat::CallFormat::kHermes); }

  // Prints whatever a request may tell a template.
  static constexpr const char* kTelling =
      "{{ tools | tojson }}{{ documents | tojson }}{{ reasoning_effort }}{{ colour }}"
      "{%- for m in messages -%}<{{ m.role }}>{{ m.content }}{{ '\\n' }}{% endfor -%}"
      "{%- if add_generation_prompt %}<assistant>{% endif -%}";

  json::value reported(const std::string& body, int status = 200) {
    const http::Response response = tokenize(services_, body);
    EXPECT_EQ(response.status, status) << response.body;
    return json::parse(response.body);
  }
  json::value param_of(const std::string& body) { return reported(body, 400).at("error").at("param"); }
};

TEST_F(TokenizeMessages, AConversationHasTheTokensThatItIsRunWith) {
  const std::string tool = R"({"type":"function","function":{"name":"look","parameters":{"type":"object"}}})";
  const std::string bodies[] = {
      with(""),
      with(R"("add_generation_prompt":false)"),
      with(R"("add_special_tokens":true)"),
      with(R"("chat_template_kwargs":{"colour":"red"})"),
      with(R"("tools":[)" + tool + "]"),
      with(R"("tools":[)" + tool + R"(],"tool_choice":"none")"),
      with(R"("documents":[{"text":"a book"}],"reasoning_effort":"high")"),
      R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"Once upon"}],)"
      R"("continue_final_message":true})",
  };
  std::vector<json::value> seen;
  for (const std::string& body : bodies) {
    const json::value answer = reported(body);
    const http::Response rendered = chat::render(services_, body);
    ASSERT_EQ(rendered.status, 200) << rendered.body;
    const json::value expected = json::parse(rendered.body);
    EXPECT_EQ(answer.at("tokens"), expected.at("token_ids")) << body;
    EXPECT_EQ(answer.at("count"), expected.at("count")) << body;
    EXPECT_EQ(answer.at("max_model_len"), expected.at("max_model_len")) << body;
    seen.push_back(answer.at("tokens"));
  }
  EXPECT_NE(seen[0], seen[1]);
  EXPECT_NE(seen[0], seen[3]);
  EXPECT_NE(seen[0], seen[4]);
  EXPECT_EQ(seen[0], seen[5]) << "no tools are offered";
}

TEST_F(TokenizeMessages, SpellsEachTokenWhereAsked) {
  const json::value answer = reported(with(R"("return_token_strs":true)"));
  EXPECT_EQ(answer.at("token_strs").as_array().size(), answer.at("tokens").as_array().size());
}

TEST_F(TokenizeMessages, WarnsOfWhatChangesNoPrompt) {
  const http::Response response = tokenize(services_, with(R"("temperature":1,"tools":[],"return_token_strs":true)"));
  ASSERT_EQ(response.status, 200) << response.body;
  ASSERT_EQ(response.fields.size(), 1u);
  EXPECT_EQ(response.fields[0].value, "unknown fields: temperature");
}

TEST_F(TokenizeMessages, RefusalsNameTheirField) {
  EXPECT_EQ(param_of(with(R"("prompt":"a")")), "messages");
  EXPECT_EQ(param_of(R"({"messages":[]})"), "messages");
  EXPECT_EQ(param_of(R"({"messages":null})"), "prompt");
  EXPECT_EQ(param_of(R"({"messages":[{"role":"user"}]})"), "messages[0].content");
  EXPECT_EQ(param_of(with(R"("add_generation_prompt":1)")), "add_generation_prompt");
  EXPECT_EQ(param_of(with(R"("add_generation_prompt":true,"continue_final_message":true)")), "continue_final_message");
  EXPECT_EQ(param_of(with(R"("tools":1)")), "tools");
  EXPECT_EQ(param_of(with(R"("chat_template":"x")")), "chat_template");
  EXPECT_EQ(param_of(R"({"prompt":"a","add_generation_prompt":true})"), "add_generation_prompt");
  EXPECT_EQ(param_of(R"({"prompt":"a","tools":[]})"), "tools");
  services_.chat = nullptr;
  EXPECT_EQ(param_of(with("")), "messages") << "this model has no template";
}

}  // namespace
}  // namespace quire::api::test
