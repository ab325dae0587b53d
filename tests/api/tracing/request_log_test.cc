#include "api/tracing/request_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <tuple>
#include <vector>

namespace quire::api::tracing {
namespace {

using namespace std::chrono_literals;

// "key=text" of each field.
std::vector<std::string> words(const EndedRequest& request) {
  std::vector<std::string> out;
  for (const LogField& field : fields_of(request)) {
    out.push_back(std::string(field.key()) + "=" + std::string(field.text()));
  }
  return out;
}

EndedRequest plain() {
  const TimePoint arrival{1h};
  return {.id = "a1",
          .method = "POST",
          .path = "/v1/completions",
          .status = 200,
          .client = "127.0.0.1",
          .arrival = arrival,
          .first_write = arrival + 12'340us,
          .end = arrival + 56ms};
}

Generated generated() {
  Generated one{.model = "m", .streams = true, .admitted = true, .usage = {10, 4, 6}};
  one.phases.first_start = 1'250;
  one.finish_reasons = {"stop", "length", "stop"};
  return one;
}

TEST(RequestLog, HasNoEmptyField) {
  EXPECT_EQ(words(plain()), (std::vector<std::string>{"id=a1", "method=POST", "path=/v1/completions", "status=200",
                                                      "first_ms=12.3", "ms=56", "client=127.0.0.1"}));
  EXPECT_EQ(words({.id = "a1", .status = 400, .client = "unix"}),
            (std::vector<std::string>{"id=a1", "status=400", "client=unix"}))
      << "the head could not be read";
}

TEST(RequestLog, SaysWhyARequestWasRefused) {
  const http::ReportedError error{"invalid_request_error", "max_tokens must be at least 0\nand", "max_tokens"};
  EndedRequest request = plain();
  request.status = 400;
  request.error = &error;
  EXPECT_EQ(words(request), (std::vector<std::string>{"id=a1", "method=POST", "path=/v1/completions", "status=400",
                                                      "error=invalid_request_error", "param=max_tokens",
                                                      "message=max_tokens must be at least 0\\x0aand", "first_ms=12.3",
                                                      "ms=56", "client=127.0.0.1"}));
}

TEST(RequestLog, SaysWhatWasGeneratedForWhom) {
  const Generated answer = generated();
  EndedRequest request = plain();
  request.generated = &answer;
  request.key = "alice";
  request.trace_id = "0af7";
  request.labels = "session=7";
  EXPECT_EQ(words(request),
            (std::vector<std::string>{"id=a1", "method=POST", "path=/v1/completions", "status=200", "model=m",
                                      "stream=true", "prompt_tokens=10", "cached_tokens=4", "completion_tokens=6",
                                      "finish_reason=stop,length", "queued_ms=1.3", "first_ms=12.3", "ms=56",
                                      "key=alice", "client=127.0.0.1", "trace_id=0af7", "labels=session=7"}));
}

TEST(RequestLog, HasNoCountsOfARequestThatWasNotAdmitted) {
  const Generated answer{.model = "m"};
  EndedRequest request = plain();
  request.status = 429;
  request.generated = &answer;
  for (const std::string& word : words(request)) EXPECT_EQ(word.find("tokens"), std::string::npos) << word;
}

TEST(RequestLog, LogsThoseThatItsLevelNames) {
  const http::ReportedError error{"server_error", "the engine has failed", ""};
  const EndedRequest good = plain();
  EndedRequest cut = plain();  // its stream had begun
  cut.error = &error;
  EndedRequest gone = plain();
  gone.status = 499;
  for (const auto& [level, of_good, of_bad] :
       std::vector<std::tuple<LogRequests, bool, bool>>{{LogRequests::kOff, false, false},
                                                        {LogRequests::kErrors, false, true},
                                                        {LogRequests::kAll, true, true},
                                                        {LogRequests::kContent, true, true}}) {
    EXPECT_EQ(is_logged(level, good), of_good);
    EXPECT_EQ(is_logged(level, cut), of_bad);
    EXPECT_EQ(is_logged(level, gone), of_bad);
  }
}

}  // namespace
}  // namespace quire::api::tracing
