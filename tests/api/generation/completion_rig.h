// A completion driven by hand, for tests: the test is the engine and the io thread.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/completions/completion_formatter.h"
#include "tests/api/generation/fake_engine.h"

namespace quire::api::test {

namespace json = boost::json;

inline std::vector<std::string> events_of(const std::string& text) {
  std::vector<std::string> events;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find("\n\n", at);
    EXPECT_NE(end, std::string::npos);
    EXPECT_EQ(text.substr(at, 6), "data: ");
    events.push_back(text.substr(at + 6, end - at - 6));
    at = end + 2;
  }
  return events;
}

inline std::string text_of(const std::vector<std::string>& events, std::int64_t index = 0) {
  std::string text;
  for (const std::string& event : events) {
    if (event == "[DONE]") continue;
    const json::value parsed = json::parse(event);
    if (!parsed.as_object().contains("choices")) continue;
    for (const json::value& choice : parsed.at("choices").as_array()) {
      if (choice.at("index").as_int64() == index) text += choice.at("text").as_string();
    }
  }
  return text;
}

// All that the engine has said, in as many turns as that takes.
inline std::string take_events(http::Answer& answer) {
  std::string events;
  for (bool more = true; more;) {
    more = answer.take().more;
    events += answer.events();
    while (answer.has_more()) events += answer.more();
  }
  return events;
}

class CompletionRig : public ::testing::Test {
 protected:
  std::unique_ptr<Generation> make(const std::string& body) {
    http::Request request;
    request.method = "POST";
    request.body = body;
    request.id = "r1";
    std::unique_ptr<Generation> completion = open(std::move(request));
    work(*completion);
    return completion;
  }
  static void work(Generation& completion) {
    Allowance patient;
    completion.work(Lane::kSlow, patient);
  }
  virtual std::unique_ptr<Generation> open(http::Request request) { return complete(services_, std::move(request)); }

  // Admitted; its submissions are in submissions_.
  std::unique_ptr<Generation> start(const std::string& body) {
    auto completion = make(body);
    const std::optional<http::Response> refused = completion->admit({hub_, [this] { ++events_; }, {}});
    EXPECT_FALSE(refused) << refused->body;
    while (auto submission = world_.queue.pop()) submissions_.push_back(std::move(*submission));
    return completion;
  }
  json::value refusal(const std::string& body, int status) {
    auto completion = make(body);
    const std::optional<http::Response> refused = completion->admit({hub_, [] {}, {}});
    EXPECT_TRUE(refused) << body;
    if (!refused) return nullptr;
    EXPECT_EQ(refused->status, status) << refused->body;
    return json::parse(refused->body).at("error");
  }

  void say(std::size_t i, TokenId token, flow::Finish finish = flow::Finish::kNone) {
    submissions_[i].stream->push({token, finish});
  }
  // The text as tokens, the last one with `finish`.
  void say_text(std::size_t i, const std::string& text, flow::Finish finish) {
    const std::vector<TokenId> ids = services_.tokenizer->encode(text, false);
    for (std::size_t k = 0; k < ids.size(); ++k) say(i, ids[k], k + 1 == ids.size() ? finish : flow::Finish::kNone);
  }
  static json::value whole(Generation& completion) {
    EXPECT_EQ(test::take_events(completion), "");
    EXPECT_TRUE(completion.finished());
    std::string body = completion.whole().body;
    while (completion.has_more()) body += completion.more();
    return json::parse(body);
  }

  World world_;
  Services services_ = world_.services();
  int events_ = 0;
  std::shared_ptr<bridge::StreamHub> hub_ = std::make_shared<bridge::StreamHub>(
      256, [] {}, world_.doorbell);
  std::vector<bridge::Submission> submissions_;
};

}  // namespace quire::api::test
