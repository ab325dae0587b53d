#include "api/chat/chat_request.h"

#include <algorithm>

#include "api/fields/read_body.h"
#include "tests/api/chat/chat_world.h"

namespace quire::api::chat::test {
namespace {

class ChatRequests : public ChatBodies {
 protected:
  void wrong(const std::string& members, const std::string& param) { expect_refused(with(members), param); }
};

TEST_F(ChatRequests, BeginWithTheirOwnDefaults) {
  const ChatRequest request = good(with(""));
  EXPECT_FALSE(request.max_tokens);
  EXPECT_EQ(request.default_max_tokens, 0xffffffffu);
  EXPECT_FALSE(request.add_special_tokens);
  EXPECT_TRUE(request.add_generation_prompt);
  EXPECT_TRUE(request.include_reasoning);
  EXPECT_TRUE(request.parallel_tool_calls);
  EXPECT_FALSE(request.logprobs);
  EXPECT_STREQ(request.prompt_field, "messages");
}

TEST_F(ChatRequests, NeedMessages) {
  expect_refused("{}", "messages");
  expect_refused(R"({"messages":null})", "messages");
}

TEST_F(ChatRequests, TakeEitherNameForTheLongestAnswer) {
  EXPECT_EQ(good(with(R"("max_tokens":7)")).max_tokens, 7u);
  EXPECT_EQ(good(with(R"("max_completion_tokens":7)")).max_tokens, 7u);
  wrong(R"("max_completion_tokens":0)", "max_completion_tokens");
  wrong(R"("max_completion_tokens":1.5)", "max_completion_tokens");
  wrong(R"("max_completion_tokens":7,"max_tokens":7)", "max_completion_tokens");
}

TEST_F(ChatRequests, AskForLogProbabilities) {
  EXPECT_EQ(good(with(R"("logprobs":true)")).logprobs, 0u);
  EXPECT_EQ(good(with(R"("logprobs":true,"top_logprobs":20)")).logprobs, 20u);
  EXPECT_FALSE(good(with(R"("logprobs":false)")).logprobs);
  wrong(R"("logprobs":1)", "logprobs");
  wrong(R"("logprobs":true,"top_logprobs":21)", "top_logprobs");
  wrong(R"("logprobs":true,"top_logprobs":-1)", "top_logprobs");
  wrong(R"("top_logprobs":1)", "top_logprobs");
}

TEST_F(ChatRequests, GoOnWithAMessageInsteadOfBeginningOne) {
  EXPECT_FALSE(good(with(R"("continue_final_message":true)")).add_generation_prompt);
  EXPECT_FALSE(good(with(R"("continue_final_message":true,"add_generation_prompt":false)")).add_generation_prompt);
  wrong(R"("continue_final_message":true,"add_generation_prompt":true)", "continue_final_message");
  wrong(R"("continue_final_message":"content")", "continue_final_message");
}

TEST_F(ChatRequests, SetVariablesOfTheTemplateThatAreNotItsOwn) {
  const ChatRequest request = good(with(R"("chat_template_kwargs":{"enable_thinking":false,"n":{"a":[1]}})"));
  EXPECT_EQ(request.template_kwargs.at("enable_thinking").get_bool(), false);
  for (const std::string name : {"messages", "tools", "documents", "add_generation_prompt", "chat_template",
                                 "bos_token", "raise_exception", "strftime_now", "namespace"}) {
    wrong(R"("chat_template_kwargs":{")" + name + R"(":1})", "chat_template_kwargs." + name);
  }
  wrong(R"("chat_template_kwargs":[])", "chat_template_kwargs");
  wrong(R"("chat_template_kwargs":{"a":)" + std::string(49, '[') + std::string(49, ']') + "}",
        "chat_template_kwargs.a");
}

TEST_F(ChatRequests, SayHowMuchToReason) {
  for (const std::string word : {"none", "minimal", "low", "medium", "high", "xhigh"}) {
    EXPECT_EQ(good(with(R"("reasoning_effort":")" + word + "\"")).reasoning_effort, word);
  }
  wrong(R"("reasoning_effort":"huge")", "reasoning_effort");
  wrong(R"("reasoning_effort":1)", "reasoning_effort");
  wrong(R"("include_reasoning":"no")", "include_reasoning");
}

TEST_F(ChatRequests, TakeDocuments) {
  EXPECT_EQ(good(with(R"("documents":[{"title":"t","text":"x"}])")).documents->size(), 1u);
  wrong(R"("documents":"x")", "documents");
  wrong(R"("documents":["x"])", "documents");
}

TEST_F(ChatRequests, AcceptWhatChangesNothing) {
  for (const char* members :
       {R"("store":false)", R"("service_tier":"auto")", R"("service_tier":"default")", R"("modalities":["text"])",
        R"("verbosity":"medium")", R"("metadata":{"a":"b"})", R"("prompt_cache_key":"k")", R"("safety_identifier":"s")",
        R"("audio":null,"prediction":null,"functions":null,"function_call":null)", R"("echo":false)",
        R"("n":2,"user":"u")"}) {
    EXPECT_EQ(refusal(with(members)), "") << members;
  }
}

TEST_F(ChatRequests, RefuseWhatIsNotSupported) {
  const std::pair<const char*, const char*> cases[] = {{"store", "1"},
                                                       {"service_tier", "7"},
                                                       {"modalities", "[\"audio\"]"},
                                                       {"verbosity", "7"},
                                                       {"audio", "{}"},
                                                       {"prediction", "7"},
                                                       {"max_tool_calls", "\"7\""},
                                                       {"prompt_cache_retention", "7"},
                                                       {"functions", "[{}]"},
                                                       {"function_call", "\"auto\""},
                                                       {"chat_template", "\"{{ x }}\""},
                                                       {"echo", "true"},
                                                       {"suffix", "\"x\""},
                                                       {"prompt_logprobs", "1"},
                                                       {"web_search_options", "7"},
                                                       {"metadata", "1"},
                                                       {"metadata", "\"x\""},
                                                       {"safety_identifier", "{}"},
                                                       {"prompt_cache_key", "[\"x\"]"},
                                                       {"thinking_token_budget", "1"},
                                                       {"mm_processor_kwargs", "{\"a\":1}"}};
  for (const auto& [name, value] : cases) wrong("\"" + std::string(name) + "\":" + value, name);
}

TEST_F(ChatRequests, TakeHintsAndNameThoseThatHaveNoEffect) {
  const ChatRequest request =
      good(with(R"("store":true,"service_tier":"flex","verbosity":"low","prediction":{"type":"content","content":"x"},)"
                R"("web_search_options":{},"metadata":{"a":"b"},"safety_identifier":"s","prompt_cache_key":"k",)"
                R"("prompt_cache_retention":"24h","max_tool_calls":3)"));
  EXPECT_EQ(
      request.left_out,
      (std::vector<std::string>{"store", "service_tier", "verbosity", "prediction", "web_search_options", "metadata",
                                "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "max_tool_calls"}));
  EXPECT_EQ(warnings_of(good(with(R"("mood":1,"store":true)"))), "unknown fields: mood; of no effect: store");
  EXPECT_EQ(warnings_of(good(with(R"("store":true)"))), "of no effect: store");
  EXPECT_EQ(good(with(R"("store":false,"service_tier":"default","verbosity":"medium","metadata":{})")).num_left_out,
            0u);
}

TEST_F(ChatRequests, TakeNoLikeliestTokensWithoutLogprobs) {
  EXPECT_FALSE(good(with(R"("top_logprobs":0,"logprobs":false)")).logprobs);
  EXPECT_FALSE(good(with(R"("top_logprobs":0)")).logprobs);
  wrong(R"("top_logprobs":1,"logprobs":false)", "top_logprobs");
}

TEST_F(ChatRequests, EveryFieldOfTheWrongTypeIsRefusedByName) {
  for (const Field& field : chat_fields()) {
    const std::string name = field.name;
    if (name == "messages") continue;
    bool refused = false;
    for (const char* value : {"true", "17", "\"x\"", "{\"x\":1}", "[[1]]"}) {
      const std::string reported = refusal(with("\"" + name + "\":" + value));
      if (!reported.empty()) {
        EXPECT_EQ(reported.substr(0, name.size()), name) << value;
      }
      refused = refused || !reported.empty();
    }
    EXPECT_TRUE(refused) << name;
  }
}

}  // namespace
}  // namespace quire::api::chat::test
