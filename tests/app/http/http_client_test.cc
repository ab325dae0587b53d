#include "app/http/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "core/base/start_error.h"
#include "tests/support/temporary_folder.h"

namespace quire::app::http_client_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::ip::tcp;
using ::testing::HasSubstr;

// Accepts one connection, reads the head of a request, writes `answer` and, if `stays`, waits until the other side
// closes.
template <typename Protocol>
class OneAnswer {
 public:
  OneAnswer(typename Protocol::endpoint where, std::string answer, bool stays = false)
      : acceptor_(context_, where), thread_([this, answer = std::move(answer), stays] {
          auto socket = acceptor_.accept();
          boost::system::error_code error;
          asio::read_until(socket, asio::dynamic_buffer(asked_), "\r\n\r\n", error);
          asio::write(socket, asio::buffer(answer), error);
          char byte = 0;
          if (stays) socket.read_some(asio::buffer(&byte, 1), error);
        }) {}
  ~OneAnswer() { thread_.join(); }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  asio::io_context context_;
  typename Protocol::acceptor acceptor_;
  std::string asked_;
  std::thread thread_;
};

tcp::endpoint any_port() { return {asio::ip::make_address("127.0.0.1"), 0}; }
Url url_of(std::uint16_t port) { return parse_url("http://127.0.0.1:" + std::to_string(port)).value(); }

TEST(HttpClient, GivesAGoodAnswerPieceByPieceAndABadOneAsAWhole) {
  for (const auto& [status, streamed, body] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"200 OK", "hello", ""}, {"400 Bad Request", "", "hello"}}) {
    OneAnswer<tcp> server(any_port(), "HTTP/1.1 " + status + "\r\nContent-Length: 5\r\n\r\nhello");
    HttpClient client(url_of(server.port()), {});
    std::string taken;
    const auto reply =
        client.send("POST", "/x", json_fields("k"), "{}", 10s, [&](std::string_view piece) { taken += piece; });
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(taken, streamed);
    EXPECT_EQ(reply->body, body);
    EXPECT_EQ(reply->is_ok(), status == "200 OK");
  }
}

TEST(HttpClient, ReachesAUnixSocket) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path_of("socket");
  OneAnswer<asio::local::stream_protocol> server(path,
                                                 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nRetry-After:  7 \r\n\r\nok");
  HttpClient client(parse_url("http://localhost").value(), {.unix_socket = path});
  const auto reply = client.send("GET", "/", {}, {}, 10s);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "ok");
  EXPECT_EQ(reply->retry_after, "7");
}

TEST(HttpClient, IsStoppedByItsFileAndClosesTheConnection) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::string taken;
  {
    OneAnswer<tcp> server(any_port(), "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nhalf", /*stays=*/true);
    HttpClient client(url_of(server.port()), {.stop_fd = ends[0]});
    const auto reply = client.send("GET", "/", {}, {}, 1h, [&](std::string_view piece) {
      taken += piece;
      if (taken == "half") {
        EXPECT_EQ(write(ends[1], "x", 1), 1);
      }
    });
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_TRUE(reply->stopped);
  }  // the server's thread ends only once the connection has
  EXPECT_EQ(taken, "half");
  close(ends[0]);
  close(ends[1]);
}

TEST(HttpClient, BoundsHeadAndBody) {
  const auto send = [](const std::string& answer) {
    OneAnswer<tcp> server(any_port(), answer);
    HttpClient client(url_of(server.port()), {.head_bytes = 1000, .body_bytes = 100});
    return client.send("GET", "/", {}, {}, 10s);
  };
  const auto body = [](std::size_t bytes) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" + std::string(bytes, 'x');
  };
  EXPECT_TRUE(send(body(99)));
  EXPECT_TRUE(send(body(100)));
  EXPECT_EQ(send(body(101)).error().message, "the answer is too long");
  const auto head = [](std::size_t bytes) {
    const std::string fixed = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: \r\n\r\n";
    return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: " + std::string(bytes - fixed.size(), 'x') + "\r\n\r\n";
  };
  EXPECT_TRUE(send(head(999)));
  EXPECT_TRUE(send(head(1000)));
  EXPECT_EQ(send(head(1001)).error().message, "the answer is too long");
}

TEST(HttpClient, SaysAtOnceThatAFileHasNoCertificates) {
  const test::TemporaryFolder folder;
  EXPECT_THROW(HttpClient(url_of(1), {.ca_file = folder.path_of("none")}), StartError);
  EXPECT_THROW(HttpClient(url_of(1), {.ca_file = "/dev/null"}), StartError);
}

}  // namespace
}  // namespace quire::app::http_client_test
