// The receiver over real sockets: one that answers, and others that do what a receiver should not.
#include "app/tracing/http_post.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "core/base/start_error.h"
#include "tests/api/http/transport/certificates.h"

namespace quire::app {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

// Takes one connection; sends `bytes` once a request is whole, or waits for the client to leave where there are none.
class Peer {
 public:
  explicit Peer(std::string bytes) : thread_([this, bytes = std::move(bytes)] { serve(bytes); }) {}
  ~Peer() {
    boost::system::error_code error;
    tcp::socket knock(context_);
    knock.connect(acceptor_.local_endpoint(), error);  // where nobody came
    thread_.join();
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  std::string asked() const { return asked_; }

 private:
  void serve(const std::string& bytes) {
    tcp::socket socket(context_);
    acceptor_.accept(socket);
    boost::system::error_code error;
    asio::streambuf request;
    asio::read_until(socket, request, "\r\n\r\n", error);
    if (error) return;
    asio::read_until(socket, request, "}", error);  // every body of these tests ends so
    asked_.assign(asio::buffers_begin(request.data()), asio::buffers_end(request.data()));
    if (!bytes.empty()) asio::write(socket, asio::buffer(bytes), error);
    if (bytes.empty()) asio::read(socket, request, asio::transfer_all(), error);
  }

  asio::io_context context_;
  tcp::acceptor acceptor_{context_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)};
  std::string asked_;
  std::thread thread_;
};

Url url(std::uint16_t port, const std::string& scheme = "http", const std::string& host = "127.0.0.1") {
  return parse_url(scheme + "://" + host + ":" + std::to_string(port) + "/v1/traces", UrlSchemes::kHttpAndHttps)
      .value();
}

TEST(HttpPost, SendsABodyAndReadsTheReply) {
  std::string asked;
  {
    Peer peer("HTTP/1.1 503 Later\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy");
    HttpPost post(url(peer.port()), {{"Authorization", "Bearer s"}}, "");
    const auto reply = post.send(R"({"a":1})", 20s);
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->status, 503);
    EXPECT_EQ(reply->retry_after, std::optional<Duration>(7s));
    EXPECT_EQ(reply->body, "busy");
    asked = peer.asked();
  }
  EXPECT_THAT(asked, HasSubstr("POST /v1/traces HTTP/1.1\r\n"));
  EXPECT_THAT(asked, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(asked, HasSubstr("Authorization: Bearer s\r\n"));
  EXPECT_THAT(asked, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_THAT(asked, ::testing::EndsWith("\r\n\r\n{\"a\":1}"));
}

TEST(HttpPost, ReadsRetryAfterInSecondsAlone) {
  for (const auto& [text, expected] :
       {std::pair("0", std::optional<Duration>(0s)), std::pair("86400", std::optional<Duration>(86400s)),
        std::pair("86401", std::optional<Duration>()), std::pair("-1", std::optional<Duration>()),
        std::pair("Fri, 31 Dec 1999 23:59:59 GMT", std::optional<Duration>()),
        std::pair("", std::optional<Duration>())}) {
    Peer peer("HTTP/1.1 503 Later\r\nRetry-After: " + std::string(text) + "\r\nContent-Length: 0\r\n\r\n");
    HttpPost post(url(peer.port()), {}, "");
    const auto reply = post.send("{}", 20s);
    ASSERT_TRUE(reply) << text;
    EXPECT_EQ(reply->retry_after, expected) << text;
  }
}

TEST(HttpPost, WhatIsNoReplyIsAnError) {
  const std::string many_fields = std::string(17000, 'x');
  for (const std::string& bytes :
       {std::string("garbage\r\n\r\n"), std::string("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n") + std::string(70000, ' '),
        "HTTP/1.1 200 OK\r\nA: " + many_fields + "\r\n\r\n", std::string("\x16\x03\x01\x00\x01", 5)}) {
    Peer peer(bytes);
    HttpPost post(url(peer.port()), {}, "");
    EXPECT_FALSE(post.send("{}", 20s)) << bytes.substr(0, 60);
  }
}

TEST(HttpPost, NobodyListeningIsAnErrorAndTheNextOneMayBeThere) {
  std::uint16_t port = 0;
  {
    asio::io_context context;
    port = tcp::acceptor(context, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)).local_endpoint().port();
  }
  HttpPost post(url(port), {}, "");
  const auto reply = post.send("{}", 20s);
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().message, HasSubstr("refused"));
  EXPECT_FALSE(post.send("{}", 20s)) << "and it can be asked again";
}

TEST(HttpPost, AReceiverThatHangsIsLeftInTime) {
  Peer peer("");
  HttpPost post(url(peer.port()), {}, "");
  const auto reply = post.send("{}", 10ms);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().message, "no answer in time");
}

TEST(HttpPost, TheOneUnderWayEndsWhenAllAreToEnd) {
  Peer peer("");
  HttpPost post(url(peer.port()), {}, "");
  std::thread sender([&] {
    const auto reply = post.send("{}", 1h);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().message, "no answer in time");
  });
  post.give_up_at(std::chrono::steady_clock::now() + 10ms);
  sender.join();
  EXPECT_FALSE(post.send("{}", 1h)) << "and so does every later one";
}

// Speaks TLS with a certificate for "localhost" that signs itself.
class TlsPeer {
 public:
  explicit TlsPeer(const api::test::Certificate& certificate) : thread_([this, &certificate] { serve(certificate); }) {}
  ~TlsPeer() { thread_.join(); }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  void serve(const api::test::Certificate& certificate) {
    asio::ssl::context tls(asio::ssl::context::tls_server);
    tls.use_certificate_file(certificate.certificate_path, asio::ssl::context::pem);
    tls.use_private_key_file(certificate.key_path, asio::ssl::context::pem);
    asio::ssl::stream<tcp::socket> stream(context_, tls);
    acceptor_.accept(stream.next_layer());
    boost::system::error_code error;
    stream.handshake(asio::ssl::stream_base::server, error);
    asio::streambuf request;
    if (!error) asio::read_until(stream, request, "}", error);
    if (!error) asio::write(stream, asio::buffer(kOk), error);
  }

  asio::io_context context_;
  tcp::acceptor acceptor_{context_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)};
  std::thread thread_;
};

TEST(HttpPost, SamplesTlsWithWhomTheCaSignedForAndWithNobodyElse) {
  const api::test::Certificate own("localhost");
  const api::test::Certificate other("example.org");
  {
    TlsPeer peer(own);
    HttpPost post(url(peer.port(), "https", "localhost"), {}, own.certificate_path);
    const auto reply = post.send("{}", 20s);
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->status, 200);
  }
  {
    TlsPeer peer(own);
    HttpPost post(url(peer.port(), "https", "localhost"), {}, "");
    EXPECT_FALSE(post.send("{}", 20s)) << "the system knows nobody who signed it";
  }
  {
    TlsPeer peer(other);
    HttpPost post(url(peer.port(), "https", "localhost"), {}, other.certificate_path);
    EXPECT_FALSE(post.send("{}", 20s)) << "it is another host's";
  }
  EXPECT_THROW(HttpPost(url(1, "https"), {}, "/no/such/file"), StartError);
}

}  // namespace
}  // namespace quire::app
