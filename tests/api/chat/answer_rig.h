// Answers of endpoints with a conversation, for tests: the test says what the model says.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/api/chat/chat_world.h"
#include "tests/api/generation/completion_rig.h"

namespace quire::api::chat::test {

// Events with names: "event: name\ndata: json\n\n".
inline std::vector<boost::json::value> named_events_of(const std::string& text) {
  std::vector<boost::json::value> events;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t line = text.find('\n', at);
    const std::size_t end = text.find("\n\n", at);
    EXPECT_NE(end, std::string::npos);
    EXPECT_EQ(text.substr(at, 7), "event: ");
    EXPECT_EQ(text.substr(line + 1, 6), "data: ");
    const std::string name = text.substr(at + 7, line - at - 7);
    events.push_back(boost::json::parse(text.substr(line + 7, end - line - 7)));
    EXPECT_EQ(std::string(events.back().at("type").as_string()), name);
    at = end + 2;
  }
  return events;
}

class AnswerRig : public api::test::CompletionRig {
 protected:
  AnswerRig() { services_.chat = model_of(kPlain, CallFormat::kHermes, ReasoningFormat::kThinkTags); }

  // The newest choice says this, `per_slice` tokens a turn: its stream's ring is small. Gives back the events.
  std::string say_all(Generation& completion, const std::string& text, flow::Finish finish, std::size_t per_slice = 1) {
    const std::vector<TokenId> ids = services_.tokenizer->encode(text, false);
    std::string events;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const bool last = i + 1 == ids.size();
      say(submissions_.size() - 1, ids[i], last ? finish : flow::Finish::kNone);
      if (last || (i + 1) % per_slice == 0) events += api::test::take_events(completion);
    }
    return events;
  }
  // A whole answer whose first choice says this.
  boost::json::value answered(const std::string& request, const std::string& text,
                              flow::Finish finish = flow::Finish::kLength) {
    auto completion = start(request);
    say_all(*completion, text, finish);
    return whole(*completion);
  }
};

inline constexpr const char* kCall =
    "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"a\": [1, \"}\"]}}\n</tool_call>";

// What models say, in all of its kinds.
inline const std::vector<std::string>& said_texts() {
  static const std::vector<std::string> texts = {
      "Hello there.",
      "<think>hm, so</think>\nYes. " + std::string(kCall) + "\n" + kCall,
      std::string(kCall) + "\nThen I go on.",
      "<tool_call>{\"name\": \"nobody\"}</tool_call>",
      "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": [1,",
      "<think>hm",
  };
  return texts;
}

}  // namespace quire::api::chat::test
