#include "app/operate/request_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace quire::app::request_text_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

boost::json::object object(const char* text) { return boost::json::parse(text).as_object(); }

TEST(RequestTable, HasARowForEachRequestInColumns) {
  EXPECT_EQ(request_table(object(R"({"data":[
    {"id":"r1","state":"running","api_key":"alice","model":"stories","age_ms":1520.3,"queued_ms":0.8,"first_token_ms":520.3,
     "prompt_tokens":300,"cached_tokens":256,"generated_tokens":71,"sequences":1},
    {"id":"another","state":"queued","api_key":null,"model":"stories","age_ms":80,"queued_ms":80,"first_token_ms":null,
     "prompt_tokens":4,"cached_tokens":0,"generated_tokens":0,"sequences":2}],"left_out":0})")),
            "ID       STATE    KEY    MODEL        AGE  PROMPT  CACHED  OUT  TOK/S\n"
            "r1       running  alice  stories   1.52 s     300     256   71   70.0\n"
            "another  queued   -      stories  80.0 ms       4       0    0      -\n");
}

TEST(RequestTable, ReportsThatNothingRuns) {
  EXPECT_EQ(request_table(object(R"({"data":[],"left_out":0})")), "no requests are running or waiting\n");
}

TEST(RequestTable, CountsTheRequestsThatTheServerLeftOut) {
  EXPECT_THAT(request_table(object(R"({"data":[{"id":"r1"}],"left_out":12})")),
              HasSubstr("\nand 12 requests that arrived later\n"));
}

TEST(RequestTable, EscapesTextThatClientsChose) {
  EXPECT_THAT(request_table(object(R"({"data":[{"id":"a\u001b[2Jb\nc"}]})")),
              AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("b\nc"))));
}

TEST(RequestTable, TakesMembersOfAnotherTypeForEmptyOnes) {
  EXPECT_THAT(
      request_table(object(R"({"data":[{"id":7,"prompt_tokens":"many","age_ms":null,"generated_tokens":-1}, 3]})")),
      HasSubstr("0.0 ms       0       0    0"));
  EXPECT_EQ(request_table(object(R"({"data":"none"})")), "no requests are running or waiting\n");
}

TEST(Timeline, IsToldInWords) {
  EXPECT_EQ(timeline_text(object(R"({"id":"r1","state":"finished","sequences":[{"state":"ended","prompt_tokens":300,
    "cached_tokens":30,"queued_ms":2,"queued_for":"blocks",
    "prefill":[{"at_ms":2,"ms":3,"rows":200},{"at_ms":5,"ms":1.5,"rows":70}],"prefill_not_kept":0,
    "preemptions":[{"at_ms":1500,"kind":"swap"}],"preemptions_not_kept":1,"drafted_tokens":8,
    "accepted_tokens":3,"drafts":[],"generated_tokens":3,"token_ms":[9.5,19.5,109.5],"token_ms_not_kept":0,
    "longest_gap":{"token":2,"ms":90},"ended_ms":125000,"end":"stop"}]})")),
            "request r1: finished\n"
            "  queued: 2.0 ms; too few blocks of the KV cache were free (--kv-cache-memory)\n"
            "  prompt: 300 tokens, 30 of them cached; 270 tokens computed in 2 steps, 4.5 ms, the longest 3.0 ms\n"
            "  preempted 2 times: after 1.50 s (swap)\n"
            "  answer: 3 tokens, the first after 9.5 ms, then 20.0 tokens/s; longest gap 90.0 ms, before token 3\n"
            "  drafts: 3 of 8 tokens accepted\n"
            "  ended after 2 min 5 s: stop\n");
}

TEST(Timeline, NumbersSequencesAndThoseThatWait) {
  EXPECT_EQ(timeline_text(object(R"({"id":"r1","state":"running","sequences":[
    {"queued_ms":1,"queued_for":null,"prompt_tokens":1,"cached_tokens":0,"prefill":[],"generated_tokens":0,"token_ms":[],
     "longest_gap":null,"ended_ms":null},{"queued_ms":null,"queued_for":null}]})")),
            "request r1: running\n"
            "sequence 1 of 2:\n"
            "  queued: 1.0 ms, until the next step\n"
            "  prompt: 1 token, 0 of them cached\n"
            "  no token yet\n"
            "sequence 2 of 2:\n"
            "  still queued\n");
}

TEST(Timeline, ExplainsEveryCauseOfWaiting) {
  for (const auto& [cause, explanation] : {std::pair{"places", "--max-num-seqs"},
                                           {"rows", "--max-num-batched-tokens"},
                                           {"blocks", "--kv-cache-memory"},
                                           {"prefix", "the beginning of its prompt"},
                                           {"a new one", "a new one"}}) {
    boost::json::object timeline = object(R"({"sequences":[{"queued_ms":1}]})");
    timeline["sequences"].as_array()[0].as_object()["queued_for"] = cause;
    EXPECT_THAT(timeline_text(timeline), HasSubstr(explanation));
  }
}

TEST(Timeline, CountsTheKeptTokensAloneInTheRate) {
  EXPECT_THAT(timeline_text(object(R"({"sequences":[{"queued_ms":1,"generated_tokens":300,"token_ms":[10,20,30],
                                       "token_ms_not_kept":297}]})")),
              HasSubstr("answer: 300 tokens, the first after 10.0 ms, then 100.0 tokens/s among the first 3"));
}

}  // namespace
}  // namespace quire::app::request_text_test
