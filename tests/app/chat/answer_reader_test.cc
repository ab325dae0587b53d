#include "app/chat/answer_reader.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>
#include <string>

namespace quire::app {
namespace {

// Text as it was passed on, with reasoning in brackets.
struct Read {
  std::string shown;
  AnswerReader reader{[this](std::string_view text, bool is_reasoning) {
    shown += is_reasoning ? "[" + std::string(text) + "]" : std::string(text);
  }};
};

const std::string kAnswer =
    ": keep-alive\n\n"
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\r\n\r\n"
    "data:{\"choices\":[{\"delta\":{\"content\":\"h\xc3\xa9\"}}]}\n\n"
    "event: x\ndata: {\"choices\":[{\"delta\":{\"content\":\"llo\"},\"finish_reason\":null}]}\n\n"
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5,"
    "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n"
    "data: [DONE]\n\n";

TEST(AnswerReader, HasTextReasoningEndAndUsage) {
  Read read;
  read.reader.take(kAnswer);
  EXPECT_EQ(read.shown, "[hm]h\xc3\xa9llo");
  EXPECT_EQ(read.reader.text(), "h\xc3\xa9llo");
  EXPECT_EQ(read.reader.finish_reason(), "stop");
  EXPECT_EQ(read.reader.error(), "");
  EXPECT_EQ(read.reader.prompt_tokens(), 7u);
  EXPECT_EQ(read.reader.cached_tokens(), 4u);
  EXPECT_EQ(read.reader.completion_tokens(), 5u);
  EXPECT_EQ(boost::json::serialize(read.reader.message()), "{\"role\":\"assistant\",\"content\":\"h\xc3\xa9llo\"}");
}

TEST(AnswerReader, IsTheSameHoweverTheBytesAreCut) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Read read;
    for (std::size_t at = 0; at < kAnswer.size();) {
      const std::size_t size = random() % 9 + 1;
      read.reader.take(std::string_view(kAnswer).substr(at, size));
      at += size;
    }
    ASSERT_EQ(read.shown, "[hm]h\xc3\xa9llo");
    ASSERT_EQ(read.reader.completion_tokens(), 5u);
  }
}

TEST(AnswerReader, PutsCallsTogether) {
  Read read;
  read.reader.take(
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c0\",\"function\":{\"name\":\"f\","
      "\"arguments\":\"{\\\"a\\\"\"}}]}}]}\n"
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"c1\",\"function\":{\"name\":\"g\","
      "\"arguments\":\"{}\"}},{\"index\":0,\"function\":{\"arguments\":\":1}\"}}]}}]}\n"
      "data: {\"choices\":[{\"delta\":{\"reasoning\":\"so\"},\"finish_reason\":\"tool_calls\"}]}\n");
  ASSERT_EQ(read.reader.calls().size(), 2u);
  EXPECT_EQ(read.reader.calls()[0].arguments, "{\"a\":1}");
  EXPECT_EQ(boost::json::serialize(read.reader.message()),
            "{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":\"so\",\"tool_calls\":["
            "{\"id\":\"c0\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}},"
            "{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]}");
}

TEST(AnswerReader, ReportsAnErrorOfTheServer) {
  for (const auto& [event, text] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"error":{"message":"too late","code":408}})", "too late"},
           {R"({"error":"plain"})", "plain"},
           {R"({"error":{}})", "the server reports an error without a text"},
           {"[1]", "the server sent an event that is not a JSON object"},
           {"{", "the server sent an event that is not a JSON object"}}) {
    Read read;
    read.reader.take(std::string("data: ") + event + "\n");
    EXPECT_EQ(read.reader.error(), text) << event;
  }
}

TEST(AnswerReader, SurvivesAnyObject) {
  const std::string parts[] = {"{",
                               "}",
                               "[",
                               "]",
                               "\"choices\":",
                               "\"delta\":",
                               "\"tool_calls\":",
                               "\"index\":",
                               "1e300",
                               "-1",
                               "null",
                               "\"content\":",
                               "\"a\"",
                               ",",
                               "\"usage\":",
                               "\"prompt_tokens\":",
                               "data: ",
                               "\n",
                               "\"function\":",
                               "\"error\":"};
  std::mt19937 random(2);
  for (int round = 0; round < 20'000; ++round) {
    Read read;
    std::string text = "data: ";
    for (int i = 0; i < 14; ++i) text += parts[random() % std::size(parts)];
    read.reader.take(text + "\n");
  }
  for (const char* object :
       {R"({"choices":[{"delta":{"tool_calls":[{"index":1e300},{"index":-1},{"index":99999999},7]}}]})",
        R"({"choices":[7]})", R"({"choices":{}})", R"({"usage":{"prompt_tokens":-1,"completion_tokens":1.5}})",
        R"({"choices":[{"delta":7,"finish_reason":7}]})"}) {
    Read read;
    read.reader.take(std::string("data: ") + object + "\n");
    EXPECT_LE(read.reader.calls().size(), 1025u);
  }
}

TEST(AnswerReader, BoundsALine) {
  Read read;
  const std::string part(1 << 20, 'x');
  for (int i = 0; i < 17; ++i) read.reader.take(part);
  EXPECT_EQ(read.reader.error(), "the server sent a line of more than 16 MiB");
}

TEST(ErrorText, IsTheMessageOrTheTextItself) {
  EXPECT_EQ(error_text(R"({"error":{"message":"no"}})"), "no");
  EXPECT_EQ(error_text("<html>"), "<html>");
  EXPECT_EQ(error_text("{}"), "{}");
}

}  // namespace
}  // namespace quire::app
