// Refusals that a head decides are told before its body comes, and bytes that cannot become a request at once.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

#include "tests/api/http/session_rig.h"

namespace quire::api::http::session_early_test {
namespace {

std::string head_to(const std::string& path, const std::string& fields) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
}

TEST_F(SessionTest, ARefusalDecidedByTheHeadIsSentBeforeTheBodyComesAndTheConnectionGoesOn) {
  struct Case {
    std::string path;
    std::string field;
    int status;
  };
  for (const Case& one : {Case{"/nowhere", "", 404}, Case{"/v1/models", "", 405},
                          Case{"/v1/completions", "Content-Type: text/plain\r\n", 415},
                          Case{"/v1/completions", "X-Request-Key: short\r\n", 400}}) {
    RawClient client = connect();
    client.send(head_to(one.path, one.field + "Content-Length: 100\r\n"));
    EXPECT_EQ(client.read_response().status, one.status) << one.path;
    client.send(std::string(100, ' ') + get("/version"));
    EXPECT_EQ(client.read_response().status, 200) << one.path;
  }
}

TEST_F(SessionTest, AClientThatExpects100ContinueGetsTheRefusalInstead) {
  RawClient client = connect();
  client.send(head_to("/nowhere", "Content-Length: 100\r\nExpect: 100-continue\r\n"));
  const RawResponse refused = client.read_response();
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(refused.fields.at("connection"), "close") << "whether the body comes is not known";
}

// A reset would take the answer away from whoever sends all of a body before reading.
TEST_F(SessionTest, ALongBodyThatNobodyReadsIsTakenAwayUntilTheClientHasItsAnswer) {
  for (const std::size_t bytes : {std::size_t{1} << 20, (std::size_t{1} << 20) + 1, std::size_t{6} << 20}) {
    RawClient client = connect();
    client.send(head_to("/nowhere", "Content-Length: " + std::to_string(bytes) + "\r\n"));
    EXPECT_TRUE(client.send(std::string(bytes, 'x'))) << bytes;
    const RawResponse refused = client.read_response();
    EXPECT_EQ(refused.status, 404) << bytes;
    const bool stays = bytes <= std::size_t{1} << 20;
    EXPECT_EQ(refused.fields.contains("connection"), !stays) << bytes;
    if (!stays) continue;
    client.send(get("/version"));
    EXPECT_EQ(client.read_response().status, 200);
  }
}

TEST_F(SessionTest, ABodyInChunksThatNobodyReadsEndsTheConnectionBehindTheAnswer) {
  RawClient client = connect();
  client.send(head_to("/nowhere", "Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n0\r\n\r\n");
  const RawResponse refused = client.read_response();
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(refused.fields.at("connection"), "close");
  EXPECT_TRUE(closes(client));
}

TEST_F(SessionTest, WhatCannotBecomeARequestIsAnsweredAtOnceAndTheConnectionEnds) {
  config_.limits.head_timeout = std::chrono::hours(1);
  config_.limits.idle_timeout = std::chrono::hours(1);
  for (const std::string& bytes :
       {std::string("EHLO x\r\n"), std::string("SET a b\r\n"), std::string("\x16\x03\x01\x02"), std::string("\x80"),
        std::string("GET /live\r\n"), std::string("{\"prompt\":1}"), std::string("GET /live HTTP/1.1x\r\n")}) {
    RawClient client = connect();
    client.send(bytes);
    EXPECT_EQ(client.read_response().status, 400) << bytes;
    EXPECT_TRUE(closes(client)) << bytes;
  }
  RawClient client = connect();
  client.send("\x16\x03\x01");
  EXPECT_NE(client.read_response().body.find("use http://"), std::string::npos);
}

TEST_F(SessionTest, ManyRequestsAtOnceAreAnsweredInOrder) {
  RawClient client = connect();
  constexpr int kRequests = 200;
  std::string all;
  for (int i = 0; i < kRequests; ++i) all += i % 2 == 0 ? post_completion(kBody) : get("/version");
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < kRequests; ++i) ASSERT_EQ(client.read_response().status, 200) << i;
}

// The body's bytes stay counted until it is read, whoever is refused, and however the request ends.
TEST_F(SessionTest, BytesOfBodiesAreGivenBackHoweverARequestEnds) {
  for (const std::string& request :
       {post_completion(kBody), post_completion("{}"), post_completion("no JSON"),
        post("/tokenize", "{\"prompt\":\"a\"}"), head_to("/nowhere", "Content-Length: 3\r\n") + "abc"}) {
    EXPECT_NE(ask(request).status, 0);
    EXPECT_EQ(world_.budgets.bodies.held(), 0u) << request;
  }
  {
    RawClient client = connect();
    client.send(head_to("/v1/completions", "Content-Length: 1000\r\n") + std::string(500, ' '));
    while (world_.budgets.bodies.held() == 0) std::this_thread::yield();
  }
  while (world_.budgets.bodies.held() > 0) std::this_thread::yield();
  EXPECT_EQ(world_.budgets.answers.held(), 0u);
}

}  // namespace
}  // namespace quire::api::http::session_early_test
