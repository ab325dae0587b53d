#include "api/chat/render_chat.h"

#include "tests/api/chat/chat_world.h"
#include "tests/api/wire/patient_calls.h"

namespace quire::api::chat::test {
namespace {

class Render : public ChatBodies {
 protected:
  boost::json::value rendered(const std::string& body, int status = 200) {
    const http::Response response = render(services_, body);
    EXPECT_EQ(response.status, status) << response.body;
    return boost::json::parse(response.body);
  }
};

TEST_F(Render, ReportsThePromptAndItsTokens) {
  const boost::json::value reported = rendered(with(""));
  EXPECT_EQ(reported.at("prompt"), "<user>hi\n<assistant>");
  const std::vector<TokenId> ids = services_.tokenizer->encode("<user>hi\n<assistant>", false);
  EXPECT_EQ(reported.at("count").to_number<std::size_t>(), ids.size());
  ASSERT_EQ(reported.at("token_ids").as_array().size(), ids.size());
  EXPECT_EQ(reported.at("token_ids").at(0), ids[0]);
  EXPECT_EQ(reported.at("max_model_len"), 512);
  EXPECT_EQ(reported.at("model"), "stories");
}

TEST_F(Render, APromptThatIsTooLongIsRefused) {
  std::string talk(3000, 'x');
  EXPECT_EQ(rendered(R"({"messages":[{"role":"user","content":")" + talk + R"("}]})", 400).at("error").at("param"),
            "messages");
}

TEST_F(Render, RefusesAsTheChatDoes) {
  EXPECT_EQ(rendered("{}", 400).at("error").at("param"), "messages");
  EXPECT_EQ(rendered(with(R"("model":"none")"), 404).at("error").at("code"), 404);
  services_.chat = nullptr;
  EXPECT_EQ(rendered(with(""), 400).at("error").at("param"), "messages");
}

}  // namespace
}  // namespace quire::api::chat::test
