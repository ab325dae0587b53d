#include "api/completions/completion_request.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/api/generation/fake_engine.h"

namespace quire::api::test {
namespace {

class CompletionRequestTest : public ::testing::Test {
 protected:
  Result<CompletionRequest> parse(const std::string& body) const { return parse_completion_request(body, services_); }
  Result<CompletionRequest> with(const std::string& field) const { return parse(R"({"prompt":"p",)" + field + "}"); }

  CompletionRequest accepted(const std::string& field) const {
    Result<CompletionRequest> parsed = with(field);
    EXPECT_TRUE(parsed.ok()) << field << ": " << parsed.error().message;
    return parsed.ok() ? std::move(*parsed) : CompletionRequest{};
  }
  void refused(const std::string& body, const std::string& param) const {
    const Result<CompletionRequest> parsed = parse(body);
    ASSERT_FALSE(parsed.ok()) << body;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument) << body;
    EXPECT_EQ(parsed.error().param, param) << body;
    EXPECT_FALSE(parsed.error().message.empty());
    EXPECT_LT(parsed.error().message.size(), 400u);
    EXPECT_NE(parsed.error().message.find(param), std::string::npos) << parsed.error().message;
  }
  void refused_field(const std::string& field, const std::string& param) const {
    refused(R"({"prompt":"p",)" + field + "}", param);
  }

  test::World world_;
  Services services_ = world_.services();
};

std::string ids(std::size_t n, const char* id = "7") {
  std::string list = "[";
  for (std::size_t i = 0; i < n; ++i) list.append(i == 0 ? "" : ",").append(id);
  return list + "]";
}

TEST_F(CompletionRequestTest, FillsDefaultsFromTheModel) {
  const CompletionRequest request = *parse(R"({"prompt":"hello"})");
  EXPECT_EQ(request.model, "stories");
  ASSERT_EQ(request.prompts.size(), 1u);
  EXPECT_EQ(std::get<std::string>(request.prompts[0]), "hello");
  EXPECT_FALSE(request.max_tokens);
  EXPECT_FALSE(request.seed);
  EXPECT_EQ(request.sampling.temperature, 0.8f);
  EXPECT_EQ(request.sampling.top_p, 0.9f);
  EXPECT_FALSE(request.stream || request.include_usage || request.ignore_eos);
  EXPECT_TRUE(request.stop.empty());
}

TEST_F(CompletionRequestTest, TreatsNullAsNotGiven) {
  std::string fields = R"("prompt":"p")";
  for (const std::span<const Field> table : {shared_fields(), completion_fields()}) {
    for (const Field& field : table) {
      if ((field.endpoints & kCompletions) == 0 || std::string_view(field.name) == "prompt") continue;
      fields += std::string(",\"") + field.name + "\":null";
    }
  }
  const Result<CompletionRequest> parsed = parse("{" + fields + "}");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->model, "stories");
  EXPECT_EQ(parsed->sampling.temperature, 0.8f);
  EXPECT_EQ(parsed->num_unknown_fields, 0u);
  EXPECT_FALSE(parsed->logprobs || parsed->prompt_logprobs || parsed->has_rules() || parsed->grammar_text);
}

TEST_F(CompletionRequestTest, ReadsEveryField) {
  const CompletionRequest request = accepted(
      R"("model":"org/stories","max_tokens":5,"temperature":0.5,"top_p":0.25,"top_k":40,"min_p":0.125,"seed":-3,)"
      R"("stop":["a","b"],"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,"user":"u")");
  EXPECT_EQ(request.model, "org/stories");
  EXPECT_EQ(request.max_tokens, 5u);
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.top_p, 0.25f);
  EXPECT_EQ(request.sampling.top_k, 40);
  EXPECT_EQ(request.sampling.min_p, 0.125f);
  EXPECT_EQ(request.seed, -3);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(request.stream && request.include_usage && request.ignore_eos);
}

TEST_F(CompletionRequestTest, ReadsEveryShapeOfPrompt) {
  EXPECT_EQ(std::get<std::string>(parse(R"({"prompt":""})")->prompts[0]), "");
  EXPECT_EQ(parse(R"({"prompt":["a","b","c"]})")->prompts.size(), 3u);
  EXPECT_EQ(std::get<std::vector<TokenId>>(parse(R"({"prompt":[1,2,3]})")->prompts[0]),
            (std::vector<TokenId>{1, 2, 3}));
  const CompletionRequest lists = *parse(R"({"prompt":[[1],[2,3]]})");
  EXPECT_EQ(std::get<std::vector<TokenId>>(lists.prompts[1]), (std::vector<TokenId>{2, 3}));
}

TEST_F(CompletionRequestTest, RefusesEveryOtherShapeOfPrompt) {
  for (const char* prompt : {"1",
                             "1.5",
                             "true",
                             "{}",
                             "[]",
                             "[[]]",
                             "[[1],[]]",
                             R"(["a",1])",
                             R"([1,"a"])",
                             R"([[1],"a"])",
                             "[1,[2]]",
                             "[1.5]",
                             "[1,2.0]",
                             "[null]",
                             "[true]",
                             "[[[1]]]",
                             R"([["a"]])",
                             "[-1]",
                             "[4096]",
                             "[[4096]]",
                             "[9223372036854775808]",
                             "[18446744073709551615]",
                             "[1e3]"}) {
    refused(std::string(R"({"prompt":)") + prompt + "}", "prompt");
  }
  refused("{}", "prompt");
  refused(R"({"prompt":null})", "prompt");
}

TEST_F(CompletionRequestTest, TakesTokenIdsUpToTheLogitsWidth) {
  EXPECT_TRUE(parse(R"({"prompt":[0,4094,4095]})").ok());
  refused(R"({"prompt":[0,4096]})", "prompt");
}

TEST_F(CompletionRequestTest, TakesAsManyPromptsAsTheLimit) {
  for (const char* one : {R"("a")", "[1]"}) {
    EXPECT_TRUE(parse(R"({"prompt":)" + ids(127, one) + "}").ok());
    EXPECT_EQ(parse(R"({"prompt":)" + ids(128, one) + "}")->prompts.size(), 128u);
    refused(R"({"prompt":)" + ids(129, one) + "}", "prompt");
    refused(R"({"prompt":)" + ids(100000, one) + "}", "prompt");
  }
}

TEST_F(CompletionRequestTest, HoldsEveryNumberToItsRange) {
  const struct {
    const char* field;
    std::vector<const char*> good;
    std::vector<const char*> bad;
  } kRanges[] = {
      {"max_tokens",
       {"1", "2", "2147483646", "2147483647", "1.0", "1e9"},
       {"0", "-1", "2147483648", "3e9", "1.5", "0.0", "9223372036854775808"}},
      {"temperature", {"0", "0.0", "1e-9", "1", "1.999999", "2", "2.0"}, {"-0.000001", "-1", "2.000001", "3", "1e300"}},
      {"top_p", {"1e-9", "0.5", "1", "1.0"}, {"0", "0.0", "-0.1", "1.000001", "2", "1e-60"}},
      {"min_p", {"0", "0.5", "1"}, {"-0.000001", "1.000001"}},
      {"top_k", {"-1", "0", "1", "2147483647"}, {"-2", "2147483648", "1.5"}},
      {"seed",
       {"0", "-1", "9223372036854775807", "-9223372036854775808"},
       {"9223372036854775808", "1.5", "18446744073709551615"}},
      {"typical_p", {"1e-9", "0.5", "1"}, {"0", "-1", "1.000001", "1e-60"}},
      {"repetition_penalty", {"1e-9", "1", "1.999999", "2"}, {"0", "-0.5", "2.000001", "1e300", "1e-60"}},
      {"presence_penalty", {"-2", "-1.999999", "0", "2"}, {"-2.000001", "2.000001"}},
      {"frequency_penalty", {"-2", "0", "1.999999", "2"}, {"-2.000001", "2.000001", "-1e300"}},
      {"min_tokens", {"0", "1", "2147483647", "1.0"}, {"-1", "2147483648", "0.5"}},
      {"logprobs", {"0", "1", "19", "20", "20.0"}, {"-1", "21", "1000000000", "0.5", "21.0"}},
      {"prompt_logprobs", {"0", "1", "19", "20", "0.0"}, {"-1", "21", "1000000000", "-1.0"}},
      {"truncate_prompt_tokens", {"-1", "1", "2147483647"}, {"-2", "0", "2147483648"}},
      {"n", {"1", "2", "127", "128", "1.0"}, {"0", "-1", "129", "1000000000", "1e300", "18446744073709551615"}},
      {"best_of", {"1", "2", "127", "128"}, {"0", "-1", "129", "1000000000", "2.5"}},
      {"priority",
       {"-2147483648", "-2147483647", "0", "2147483646", "2147483647", "0.0", "1e3"},
       {"-2147483649", "2147483648", "0.1", "1e10"}},
      {"deadline_ms", {"1", "2", "3599999", "3600000"}, {"0", "-1", "3600001", "1.5", "9223372036854775808"}},
  };
  for (const auto& range : kRanges) {
    for (const char* value : range.good) accepted('"' + std::string(range.field) + "\":" + value);
    for (const char* value : range.bad) refused_field('"' + std::string(range.field) + "\":" + value, range.field);
    for (const char* value : {"\"1\"", "true", "[1]", "{}"}) {
      if (std::string_view(range.field) == "logprobs" && value == std::string_view("true")) continue;
      refused_field('"' + std::string(range.field) + "\":" + value, range.field);
    }
  }
}

TEST_F(CompletionRequestTest, LogprobsOfTrueAreOneAndOfFalseNone) {
  EXPECT_EQ(accepted(R"("logprobs":true)").logprobs, 1u);
  EXPECT_EQ(accepted(R"("logprobs":false)").logprobs, 0u);
}

TEST_F(CompletionRequestTest, TopKOfMinusOneKeepsAll) { EXPECT_EQ(accepted(R"("top_k":-1)").sampling.top_k, 0); }

TEST_F(CompletionRequestTest, RefusesNumbersThatAreNone) {
  for (const char* value :
       {"NaN", "Infinity", "-Infinity", "nan", "1e400", "-1e400", "01", ".5", "1.", "+1", "0x10", "1e"}) {
    refused_field(std::string(R"("temperature":)") + value, "");
  }
}

TEST_F(CompletionRequestTest, RefusesEveryWrongType) {
  for (const char* field :
       {"stream", "ignore_eos", "use_beam_search", "echo", "include_stop_str_in_output", "return_token_ids",
        "return_tokens_as_token_ids", "skip_special_tokens", "add_special_tokens"}) {
    for (const char* value : {"0", "1", "\"true\"", "[]", "{}"})
      refused_field('"' + std::string(field) + "\":" + value, field);
  }
  for (const char* value : {"1", "true", "{}", "[1]", "[null]", "[[\"a\"]]"})
    refused_field(std::string(R"("stop":)") + value, "stop");
  for (const char* value : {"1", "true", "{}", "[]"}) {
    refused_field(std::string(R"("user":)") + value, "user");
    refused_field(std::string(R"("model":)") + value, "model");
    refused_field(std::string(R"("cache_salt":)") + value, "cache_salt");
    refused_field(std::string(R"("request_id":)") + value, "request_id");
    refused_field(std::string(R"("suffix":)") + value, "suffix");
  }
  for (const char* value : {"1", "true", "\"x\"", "[]"})
    refused_field(std::string(R"("stream":true,"stream_options":)") + value, "stream_options");
}

TEST_F(CompletionRequestTest, SaysWhichModelsAreServed) {
  const Result<CompletionRequest> parsed = with(R"("model":"gpt-4")");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, Code::kNotFound);
  EXPECT_EQ(parsed.error().param, "model");
  EXPECT_NE(parsed.error().message.find("model_not_found"), std::string::npos);
  EXPECT_NE(parsed.error().message.find("stories, org/stories"), std::string::npos);
}

TEST_F(CompletionRequestTest, HoldsStopToItsLimits) {
  const auto list = [](std::size_t n, std::size_t bytes) {
    return "\"stop\":" + ids(n, ('"' + std::string(bytes, 'x') + '"').c_str());
  };
  EXPECT_EQ(accepted(R"("stop":"end")").stop, std::vector<std::string>{"end"});
  EXPECT_TRUE(accepted(R"("stop":[])").stop.empty());
  accepted(list(15, 1));
  accepted(list(16, 1));
  refused_field(list(17, 1), "stop");
  accepted(list(1, 511));
  accepted(list(1, 512));
  refused_field(list(1, 513), "stop");
  accepted(list(2, 256));
  refused_field(list(2, 257), "stop");
  refused_field(R"("stop":"")", "stop");
  refused_field(R"("stop":["a",""])", "stop");
  refused_field("\"stop\":\"" + std::string(513, 'x') + "\"", "stop");
}

TEST_F(CompletionRequestTest, HoldsUserToItsLimit) {
  accepted("\"user\":\"" + std::string(256, 'x') + "\"");
  refused_field("\"user\":\"" + std::string(257, 'x') + "\"", "user");
}

TEST_F(CompletionRequestTest, HoldsRequestIdToItsLimit) {
  EXPECT_EQ(accepted(R"("request_id":"r-1")").request_id, "r-1");
  for (const std::size_t bytes : {127, 128}) accepted("\"request_id\":\"" + std::string(bytes, 'x') + "\"");
  refused_field("\"request_id\":\"" + std::string(129, 'x') + "\"", "request_id");
  refused_field(R"("request_id":"")", "request_id");
}

TEST_F(CompletionRequestTest, SuffixAndEchoDoNotMeet) {
  EXPECT_EQ(accepted(R"("suffix":"")").suffix, "");
  EXPECT_EQ(accepted(R"("suffix":"end","echo":false)").suffix, "end");
  refused_field(R"("suffix":"end","echo":true)", "echo");
}

TEST_F(CompletionRequestTest, StreamOptionsNeedAStream) {
  EXPECT_TRUE(accepted(R"("stream":true,"stream_options":{"include_usage":true})").include_usage);
  EXPECT_FALSE(accepted(R"("stream":true,"stream_options":{})").include_usage);
  EXPECT_TRUE(accepted(R"("stream_options":{"include_usage":true},"stream":true)").include_usage);
  EXPECT_TRUE(accepted(R"("stream":true,"stream_options":{"continuous_usage_stats":true})").continuous_usage);
  accepted(R"("stream":true,"stream_options":{"include_usage":null,"include_obfuscation":false})");
  refused_field(R"("stream_options":{"include_usage":true})", "stream_options");
  refused_field(R"("stream":false,"stream_options":{})", "stream_options");
  refused_field(R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage");
  refused_field(R"("stream":true,"stream_options":{"include_obfuscation":true})", "stream_options.include_obfuscation");
  EXPECT_EQ(accepted(R"("stream":true,"stream_options":{"surprise":true})").unknown_fields,
            std::vector<std::string>{"stream_options.surprise"});
}

TEST_F(CompletionRequestTest, RefusesAFieldGivenTwice) {
  refused(R"({"prompt":"a","prompt":"b"})", "prompt");
  refused(R"({"prompt":"a","max_tokens":1,"max_tokens":2})", "max_tokens");
}

TEST_F(CompletionRequestTest, RefusesWhatIsNotAJsonObject) {
  for (const char* body :
       {"", " ", "null", "[]", "\"x\"", "1", "{", "{}}", "{\"prompt\":\"p\"", "{'prompt':'p'}", "{\"prompt\":\"p\",}",
        "{\"prompt\":\"p\"}x", "\xFF\xFE", "{\"prompt\":\"\xC0\xAF\"}", "{\"prompt\":\"\xED\xA0\x80\"}",
        "{\"prompt\":\"a\nb\"}", "{\"prompt\":\"\\ud800\"}", "{\"prompt\":\"\\x\"}"}) {
    const Result<CompletionRequest> parsed = parse(body);
    EXPECT_FALSE(parsed.ok()) << body;
  }
  refused(std::string(100000, '['), "");
  refused(R"({"prompt":)" + std::string(50000, '[') + std::string(50000, ']') + "}", "");
  std::string deep = "1";
  for (int i = 0; i < 2000; ++i) deep = "{\"a\":" + deep + "}";
  refused(R"({"prompt":"p","x":)" + deep + "}", "");
}

TEST_F(CompletionRequestTest, KeepsWhatAStringSays) {
  EXPECT_EQ(std::get<std::string>(parse("{\"prompt\":\"\\u0000 \\ud83d\\ude00 é\"}")->prompts[0]),
            std::string("\0 😀 é", 9));
}

TEST_F(CompletionRequestTest, SurvivesEveryPrefixOfABody) {
  const std::string body =
      R"({"model":"stories","prompt":[[1,2],[3]],"stop":["a","\u00e9"],"seed":12,"stream_options":{"include_usage":true}})";
  for (std::size_t length = 0; length < body.size(); ++length)
    EXPECT_FALSE(parse(body.substr(0, length)).ok()) << length;
}

}  // namespace
}  // namespace quire::api::test
