// Requests as bytes that no library would send: read, or refused with one reply and a close.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdio>
#include <string>

#include "tests/api/http/session_rig.h"

namespace quire::api::http::session_framing_test {
namespace {

namespace json = boost::json;

TEST_F(SessionTest, ReadsAChunkedBodyInAnyPieces) {
  const std::string head = "POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::size_t piece : {1u, 7u, 1000u}) {
    std::string request = head;
    for (std::size_t at = 0; at < kBody.size(); at += piece) {
      const std::string part = kBody.substr(at, piece);
      char size[16];
      std::snprintf(size, sizeof size, "%zX\r\n", part.size());
      request += size + part + "\r\n";
    }
    RawClient client = connect();
    client.send(request + "0\r\nX-Trailer: ignored\r\nConnection: close\r\n\r\n" + get("/live"));
    EXPECT_EQ(client.read_response().status, 200) << piece;
    EXPECT_EQ(client.read_response().status, 200) << "a trailer must not close the connection";
  }
}

TEST_F(SessionTest, PassesOverTheExtensionsOfChunksUpToTheirLimits) {
  const std::string head = "POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const auto size_of = [](const std::string& part) {
    char size[16];
    std::snprintf(size, sizeof size, "%zx", part.size());
    return std::string(size);
  };
  const auto with = [&](const std::string& extension, const std::string& last = "") {
    return head + size_of(kBody) + extension + "\r\n" + kBody + "\r\n0" + last + "\r\n\r\n";
  };
  for (const char* extension : {";a=b", ";a", ";a=\"b;c\"", ";a=b;c=d"}) {
    EXPECT_EQ(ask(with(extension)).status, 200) << extension;
    EXPECT_EQ(ask(with("", extension)).status, 200) << extension;
  }
  for (const std::size_t bytes : {255u, 256u, 257u, 300u, 20000u}) {
    const int expected = bytes <= 256 ? 200 : 400;
    const std::string extension = ";a=" + std::string(bytes - 3, 'b');
    EXPECT_EQ(ask(with(extension)).status, expected) << bytes;
    EXPECT_EQ(ask(with("", extension)).status, expected) << bytes;
  }
  for (const std::size_t chunks : {15u, 16u, 17u}) {  // of 256 bytes each: 4096 in all
    std::string request = head;
    for (std::size_t i = 0; i < chunks; ++i) {
      const std::string part = i + 1 < chunks ? kBody.substr(i, 1) : kBody.substr(i);
      request += size_of(part) + ";a=" + std::string(253, 'b') + "\r\n" + part + "\r\n";
    }
    EXPECT_EQ(ask(request + "0\r\n\r\n").status, chunks <= 16 ? 200 : 400) << chunks;
  }
}

TEST_F(SessionTest, APostWithoutALengthHasNoBody) {
  RawClient client = connect();
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\n\r\n" + get("/live"));
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("the body is empty"), std::string::npos) << response.body;
  EXPECT_EQ(client.read_response().status, 200) << "what follows is the next request";
}

struct BadChunks {
  const char* what;
  const char* body;
};

class SessionChunks : public SessionTest, public ::testing::WithParamInterface<BadChunks> {};

TEST_P(SessionChunks, AreRefusedWhereParsersDiffer) {
  RawClient client = connect();
  client.send(std::string("POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n") +
              GetParam().body + get("/version"));
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.status, 400) << response.body;
  EXPECT_EQ(response.fields.at("connection"), "close");
  EXPECT_TRUE(closes(client)) << "the bytes after it must not be answered: " << client.buffer();
}

INSTANTIATE_TEST_SUITE_P(
    Table, SessionChunks,
    ::testing::Values(
        BadChunks{"bare_line_feed", "2\n{}\n0\n\n"}, BadChunks{"line_feed_after_size", "2\n{}\r\n0\r\n\r\n"},
        BadChunks{"negative", "-2\r\n{}\r\n0\r\n\r\n"}, BadChunks{"plus", "+2\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"hex_prefix", "0x2\r\n{}\r\n0\r\n\r\n"}, BadChunks{"space_before", " 2\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"space_after", "2 \r\n{}\r\n0\r\n\r\n"},
        BadChunks{"extension_and_line_feed", "2;a=b\n{}\r\n0\r\n\r\n"},
        BadChunks{"quoted_line_feed", "2;a=\"\n\"\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"quoted_carriage_return", "2;a=\"\r\"\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"line_feed_in_the_extension_of_the_last", "2\r\n{}\r\n0;a\n\r\n\r\n"},
        BadChunks{"open_quotes", "2;a=\"b\r\n{}\r\n0\r\n\r\n"}, BadChunks{"no_name", "2;\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"sixteen_digits", "0000000000000002\r\n{}\r\n0\r\n\r\n"}, BadChunks{"no_size", "\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"overflow", "10000000000000002\r\n{}\r\n0\r\n\r\n"}, BadChunks{"too_short", "1\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"no_end", "2\r\n{}0\r\n\r\n"}),
    [](const auto& param) { return std::string(param.param.what); });

struct BadHead {
  const char* what;
  std::string bytes;
  int status;
};

class SessionHeads : public SessionTest, public ::testing::WithParamInterface<BadHead> {};

TEST_P(SessionHeads, GetOneReplyAndAClose) {
  RawClient client = connect();
  client.send(GetParam().bytes);
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.status, GetParam().status);
  EXPECT_EQ(response.fields.at("connection"), "close");
  EXPECT_EQ(json::parse(response.body).at("error").at("code"), GetParam().status);
  EXPECT_TRUE(closes(client)) << client.buffer();
}

const std::string kInner = "GET /version HTTP/1.1\r\nHost: a\r\n\r\n";
INSTANTIATE_TEST_SUITE_P(
    Table, SessionHeads,
    ::testing::Values(
        BadHead{"te_and_cl", kPostHead + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + kInner,
                400},
        BadHead{"te_identity", kPostHead + "Transfer-Encoding: identity\r\n\r\n" + kInner, 400},
        BadHead{"te_not_ending_in_chunked", kPostHead + "Transfer-Encoding: chunked, identity\r\n\r\n" + kInner, 400},
        BadHead{"double_te",
                kPostHead + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + kInner, 400},
        BadHead{"double_cl", kPostHead + "Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + kInner, 400},
        BadHead{"double_host", "GET /live HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + kInner, 400},
        BadHead{"no_host", "GET /live HTTP/1.1\r\n\r\n" + kInner, 400},
        BadHead{"bare_line_feeds", "GET /live HTTP/1.1\nHost: a\n\n" + kInner, 400},
        BadHead{"one_bare_line_feed", "GET /live HTTP/1.1\r\nHost: a\nX: y\r\n\r\n" + kInner, 400},
        BadHead{"folding", "GET /live HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n" + kInner, 400},
        BadHead{"chunked_in_1_0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + kInner,
                400},
        BadHead{"not_http", std::string("\x16\x03\x01\x02\x00\x01\r\n\r\n", 10), 400},
        BadHead{"http_2_preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        BadHead{"body_too_large", kPostHead + "Content-Length: 9000000000\r\n\r\n", 413},
        BadHead{"unknown_expectation", kPostHead + "Content-Length: 1\r\nExpect: tea\r\n\r\n", 417},
        BadHead{"many_fields",
                "GET / HTTP/1.1\r\nHost: a\r\n" +
                    [] {
                      std::string fields;
                      for (int i = 0; i < 128; ++i) fields += "X: y\r\n";
                      return fields;
                    }() +
                    "\r\n",
                431},
        BadHead{"long_field", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(20000, 'x') + "\r\n\r\n", 431},
        BadHead{"long_line", "GET /" + std::string(100000, 'x'), 431}),
    [](const auto& param) { return std::string(param.param.what); });

TEST_F(SessionTest, HoldsBodiesToTheLimitWhateverTheirFraming) {
  config_.limits.body_bytes = 1000;
  for (const std::size_t size : {999u, 1000u, 1001u}) {
    const std::string body = kBody + std::string(size - kBody.size(), ' ');
    const int expected = size <= 1000 ? 200 : 413;
    EXPECT_EQ(ask(post_completion(body)).status, expected) << size;
    char chunk[16];
    std::snprintf(chunk, sizeof chunk, "%zx\r\n", size);
    EXPECT_EQ(ask(kPostHead + "Transfer-Encoding: chunked\r\n\r\n" + chunk + body + "\r\n0\r\n\r\n").status, expected)
        << size;
  }
  std::string tiny = kPostHead + "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 1001; ++i) tiny += "1\r\n \r\n";
  EXPECT_EQ(ask(tiny).status, 413) << "many small chunks are one large body";
}

TEST_F(SessionTest, ReadsABodyOfMegabytes) {
  const RawResponse response = ask(post_completion(kBody + std::string(8000000, ' ')));
  EXPECT_EQ(response.status, 200) << response.body;
}

TEST_F(SessionTest, AClientThatSendsTooMuchStillReadsTheReply) {
  RawClient client = connect();
  client.send(kPostHead + "Content-Length: 9000000\r\n\r\n");
  const std::string part(100000, 'x');
  for (int i = 0; i < 90 && client.send(part); ++i) {
  }
  EXPECT_EQ(client.read_response().status, 413);
}

TEST_F(SessionTest, MeetsTheExpectationOf100Continue) {
  RawClient client = connect();
  client.send(kPostHead + "Expect: 100-continue\r\nContent-Length: " + std::to_string(kBody.size()) + "\r\n\r\n");
  EXPECT_EQ(client.read_response().status, 100);
  client.send(kBody);
  EXPECT_EQ(client.read_response().status, 200);

  RawClient large = connect();
  large.send(kPostHead + "Expect: 100-continue\r\nContent-Length: 9000000\r\n\r\n");
  EXPECT_EQ(large.read_response().status, 413) << "without asking for the body";
}

TEST_F(SessionTest, KeepsOnlyPlainRequestIds) {
  for (const char* id : {"a b", "a\tb", "\"x\"", "<x>", "\xC3\xA9"}) {
    const RawResponse response = ask(std::string("GET /live HTTP/1.1\r\nHost: a\r\nX-Request-Id: ") + id + "\r\n\r\n");
    EXPECT_EQ(response.fields.at("x-request-id").size(), 32u);
  }
  for (const std::size_t size : {127u, 128u, 129u}) {
    const std::string id(size, 'i');
    const RawResponse response = ask("GET /live HTTP/1.1\r\nHost: a\r\nX-Request-Id: " + id + "\r\n\r\n");
    EXPECT_EQ(response.fields.at("x-request-id") == id, size <= 128);
  }
}

}  // namespace
}  // namespace quire::api::http::session_framing_test
