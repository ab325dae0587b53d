#include "api/http/framing_guard.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quire::api::http::framing_guard_test {
namespace {

constexpr FramingLimits kLimits{.head_bytes = 16384, .head_fields = 128, .body_bytes = 1000};

std::string head(const std::string& fields, const std::string& line = "POST /x HTTP/1.1") {
  return line + "\r\n" + fields + "\r\n";
}

struct Refused {
  const char* what;
  std::string head;
  Fault fault;
};

class FramingGuardRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(FramingGuardRefuses, WhatParsersReadDifferently) {
  const auto verdict = inspect_head(GetParam().head, kLimits);
  ASSERT_TRUE(std::holds_alternative<Refusal>(verdict)) << GetParam().head;
  EXPECT_EQ(std::get<Refusal>(verdict).fault, GetParam().fault);
  EXPECT_FALSE(std::get<Refusal>(verdict).message.empty());
}

const std::string kHost = "Host: a\r\n";
const std::vector<Refused> kRefused = {
    {"te_and_cl", head(kHost + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), Fault::kMalformed},
    {"cl_and_te", head(kHost + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), Fault::kMalformed},
    {"te_identity", head(kHost + "Transfer-Encoding: identity\r\n"), Fault::kMalformed},
    {"te_gzip_chunked", head(kHost + "Transfer-Encoding: gzip, chunked\r\n"), Fault::kMalformed},
    {"te_chunked_gzip", head(kHost + "Transfer-Encoding: chunked, gzip\r\n"), Fault::kMalformed},
    {"te_chunked_twice_in_one", head(kHost + "Transfer-Encoding: chunked, chunked\r\n"), Fault::kMalformed},
    {"te_twice", head(kHost + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), Fault::kMalformed},
    {"te_empty", head(kHost + "Transfer-Encoding:\r\n"), Fault::kMalformed},
    {"te_xchunked", head(kHost + "Transfer-Encoding: xchunked\r\n"), Fault::kMalformed},
    {"te_quoted", head(kHost + "Transfer-Encoding: \"chunked\"\r\n"), Fault::kMalformed},
    {"te_with_vertical_tab", head(kHost + "Transfer-Encoding: \vchunked\r\n"), Fault::kMalformed},
    {"te_in_http_1_0", head(kHost + "Transfer-Encoding: chunked\r\n", "POST /x HTTP/1.0"), Fault::kMalformed},
    {"te_space_before_colon", head(kHost + "Transfer-Encoding : chunked\r\n"), Fault::kMalformed},
    {"te_folded", head(kHost + "Transfer-Encoding:\r\n chunked\r\n"), Fault::kMalformed},
    {"cl_twice", head(kHost + "Content-Length: 5\r\nContent-Length: 6\r\n"), Fault::kMalformed},
    {"cl_twice_the_same", head(kHost + "Content-Length: 5\r\nContent-Length: 5\r\n"), Fault::kMalformed},
    {"cl_list", head(kHost + "Content-Length: 5, 5\r\n"), Fault::kMalformed},
    {"cl_negative", head(kHost + "Content-Length: -5\r\n"), Fault::kMalformed},
    {"cl_plus", head(kHost + "Content-Length: +5\r\n"), Fault::kMalformed},
    {"cl_hex", head(kHost + "Content-Length: 0x5\r\n"), Fault::kMalformed},
    {"cl_empty", head(kHost + "Content-Length:\r\n"), Fault::kMalformed},
    {"cl_space_inside", head(kHost + "Content-Length: 1 0\r\n"), Fault::kMalformed},
    {"cl_past_the_limit", head(kHost + "Content-Length: 1001\r\n"), Fault::kBodyTooLarge},
    {"cl_2_to_64", head(kHost + "Content-Length: 18446744073709551616\r\n"), Fault::kBodyTooLarge},
    {"cl_2_to_64_and_5", head(kHost + "Content-Length: 18446744073709551621\r\n"), Fault::kBodyTooLarge},
    {"no_host", head("Content-Length: 5\r\n"), Fault::kMalformed},
    {"two_hosts", head(kHost + kHost + "Content-Length: 5\r\n"), Fault::kMalformed},
    {"two_hosts_in_1_0", head(kHost + kHost + "Content-Length: 5\r\n", "POST /x HTTP/1.0"), Fault::kMalformed},
    {"host_list", head("Host: a, b\r\nContent-Length: 5\r\n"), Fault::kMalformed},
    {"host_with_a_path", head("Host: a/b\r\nContent-Length: 5\r\n"), Fault::kMalformed},
    {"expect_something", head(kHost + "Content-Length: 5\r\nExpect: dinner\r\n"), Fault::kUnknownExpectation},
    {"http_2", head(kHost, "PRI * HTTP/2.0"), Fault::kUnsupportedVersion},
    {"http_1_2", head(kHost, "GET / HTTP/1.2"), Fault::kUnsupportedVersion},
    {"http_1_10", head(kHost, "GET / HTTP/1.10"), Fault::kMalformed},
    {"http_lower_case", head(kHost, "GET / http/1.1"), Fault::kMalformed},
    {"http_0_9", "GET /\r\n\r\n", Fault::kMalformed},
    {"space_in_target", head(kHost, "GET /a b HTTP/1.1"), Fault::kMalformed},
    {"two_spaces", head(kHost, "GET  / HTTP/1.1"), Fault::kMalformed},
    {"tab_for_space", head(kHost, "GET\t/ HTTP/1.1"), Fault::kMalformed},
    {"control_in_target", head(kHost, "GET /\x01 HTTP/1.1"), Fault::kMalformed},
    {"high_byte_in_target", head(kHost, "GET /\xC3\xA9 HTTP/1.1"), Fault::kMalformed},
    {"method_not_a_token", head(kHost, "G(T / HTTP/1.1"), Fault::kMalformed},
    {"method_too_long", head(kHost, std::string(33, 'A') + " / HTTP/1.1"), Fault::kMalformed},
    {"empty_method", head(kHost, " / HTTP/1.1"), Fault::kMalformed},
    {"empty_name", head(kHost + ": v\r\n", "GET / HTTP/1.1"), Fault::kMalformed},
    {"no_colon", head(kHost + "nonsense\r\n", "GET / HTTP/1.1"), Fault::kMalformed},
    {"folded", head(kHost + "X: a\r\n b\r\n", "GET / HTTP/1.1"), Fault::kMalformed},
    {"cr_in_value", head(kHost + "X: a\rb\r\n", "GET / HTTP/1.1"), Fault::kMalformed},
    {"nul_in_value", head(kHost + std::string("X: a\0b\r\n", 8), "GET / HTTP/1.1"), Fault::kMalformed},
    {"nul_in_name", head(kHost + std::string("X\0Y: b\r\n", 8), "GET / HTTP/1.1"), Fault::kMalformed},
    {"first_line_folded", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", Fault::kMalformed},
};

INSTANTIATE_TEST_SUITE_P(Table, FramingGuardRefuses, ::testing::ValuesIn(kRefused),
                         [](const auto& param) { return std::string(param.param.what); });

Framing accepted(const std::string& text) {
  const auto verdict = inspect_head(text, kLimits);
  if (const auto* refusal = std::get_if<Refusal>(&verdict)) {
    ADD_FAILURE() << refusal->message;
    return {};
  }
  return std::get<Framing>(verdict);
}

TEST(FramingGuard, ReadsALength) {
  const std::string text = head("host: a:80\r\ncontent-LENGTH:  \t1000 \r\n");
  const Framing framing = accepted(text);
  EXPECT_EQ(framing.method, "POST");
  EXPECT_EQ(framing.target, "/x");
  EXPECT_EQ(framing.content_length, 1000u);
  EXPECT_FALSE(framing.chunked);
  EXPECT_TRUE(framing.keep_alive);
}

TEST(FramingGuard, ReadsNoBodyWhereTheHeadSaysNothingOfOne) {
  for (const char* line : {"POST /x HTTP/1.1", "PUT /x HTTP/1.1", "DELETE /x HTTP/1.1", "GET /x HTTP/1.1"}) {
    const std::string text = head(kHost, line);
    const Framing framing = accepted(text);
    EXPECT_FALSE(framing.chunked) << line;
    EXPECT_EQ(framing.content_length, 0u) << line;
  }
}

TEST(FramingGuard, ReadsChunkedInAnyCase) {
  EXPECT_TRUE(accepted(head(kHost + "Transfer-Encoding: Chunked\r\n")).chunked);
}

TEST(FramingGuard, TakesKeepAliveFromVersionAndConnection) {
  EXPECT_TRUE(accepted(head(kHost, "GET / HTTP/1.1")).keep_alive);
  EXPECT_FALSE(accepted(head(kHost + "Connection: x, Close\r\n", "GET / HTTP/1.1")).keep_alive);
  EXPECT_FALSE(accepted(head("", "GET / HTTP/1.0")).keep_alive);
  EXPECT_TRUE(accepted(head("Connection: Keep-Alive\r\n", "GET / HTTP/1.0")).keep_alive);
  EXPECT_FALSE(accepted(head(kHost + "Connection: keep-alive\r\nConnection: close\r\n", "GET / HTTP/1.1")).keep_alive);
}

TEST(FramingGuard, SeesTheExpectationOfHttp11Alone) {
  const std::string fields = kHost + "Content-Length: 5\r\nExpect: 100-Continue\r\n";
  EXPECT_TRUE(accepted(head(fields)).expects_continue);
  EXPECT_FALSE(accepted(head(fields, "POST / HTTP/1.0")).expects_continue);
}

TEST(FramingGuard, CountsFieldsToTheLimit) {
  for (const std::size_t count : {127u, 128u, 129u}) {
    std::string fields = kHost;
    for (std::size_t i = 1; i < count; ++i) fields += "X: y\r\n";
    const auto verdict = inspect_head(head(fields, "GET / HTTP/1.1"), kLimits);
    if (count <= 128) {
      EXPECT_TRUE(std::holds_alternative<Framing>(verdict)) << count;
    } else {
      ASSERT_TRUE(std::holds_alternative<Refusal>(verdict));
      EXPECT_EQ(std::get<Refusal>(verdict).fault, Fault::kHeadTooLarge);
    }
  }
}

TEST(FramingGuard, AcceptsABodyOfExactlyTheLimit) {
  EXPECT_EQ(accepted(head(kHost + "Content-Length: 999\r\n")).content_length, 999u);
  EXPECT_EQ(accepted(head(kHost + "Content-Length: 1000\r\n")).content_length, 1000u);
}

TEST(FindHeadEnd, FindsTheEndHoweverTheBytesCome) {
  const std::string text = "GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
  for (std::size_t cut = 0; cut < text.size() - 4; ++cut) {
    const auto first = find_head_end(std::string_view(text).substr(0, cut), 0, kLimits);
    EXPECT_EQ(std::get<std::size_t>(first), 0u) << cut;
    EXPECT_EQ(std::get<std::size_t>(find_head_end(text, cut, kLimits)), text.size() - 4) << cut;
  }
}

TEST(FindHeadEnd, RefusesABareLineFeedAtOnce) {
  for (const char* text : {"GET / HTTP/1.1\n", "\nGET", "GET / HTTP/1.1\r\nHost: a\n", "GET / HTTP/1.1\r\n\n"}) {
    EXPECT_TRUE(std::holds_alternative<Refusal>(find_head_end(text, 0, kLimits))) << text;
  }
}

TEST(FindHeadEnd, WaitsForTheOtherHalfOfAnEmptyLineBeforeARequest) {
  EXPECT_EQ(std::get<std::size_t>(find_head_end("\r", 0, kLimits)), 0u);
  EXPECT_TRUE(std::holds_alternative<Refusal>(find_head_end("\rG", 0, kLimits)));
}

TEST(FindHeadEnd, HoldsTheHeadToItsLimit) {
  for (const std::size_t bytes : {99u, 100u, 101u}) {
    std::string text = "GET / HTTP/1.1\r\nX: ";
    text += std::string(bytes - text.size() - 4, 'x') + "\r\n\r\n";
    ASSERT_EQ(text.size(), bytes);
    const auto found = find_head_end(text, 0, {.head_bytes = 100, .head_fields = 1, .body_bytes = 1});
    if (bytes <= 100) {
      EXPECT_EQ(std::get<std::size_t>(found), bytes);
    } else {
      EXPECT_EQ(std::get<Refusal>(found).fault, Fault::kHeadTooLarge);
    }
  }
}

TEST(PathOf, ReducesEveryFormOfTarget) {
  EXPECT_EQ(path_of("/v1/models"), "/v1/models");
  EXPECT_EQ(path_of("/v1/models?a=b"), "/v1/models");
  EXPECT_EQ(path_of("http://host:8000/v1/models?a"), "/v1/models");
  EXPECT_EQ(path_of("HTTPS://host/live"), "/live");
  EXPECT_EQ(path_of("http://host"), "/");
  EXPECT_EQ(path_of("http://host?x=/live"), "/");
  EXPECT_EQ(path_of("*"), "");
  EXPECT_EQ(path_of("host:443"), "");
}

}  // namespace
}  // namespace quire::api::http::framing_guard_test
