#include "app/http/http_get.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace quire::app::http_get_test {
namespace {

using ::testing::HasSubstr;
namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

// Answers one connection with the same bytes, whatever is asked; nothing: keeps silent until the client leaves.
class OneAnswer {
 public:
  explicit OneAnswer(std::string bytes)
      : thread_([this, bytes = std::move(bytes)] {
          tcp::socket socket(context_);
          acceptor_.accept(socket);
          boost::system::error_code error;
          asio::streambuf request;
          asio::read_until(socket, request, "\r\n\r\n", error);
          asked_.assign(asio::buffers_begin(request.data()), asio::buffers_end(request.data()));
          if (!bytes.empty()) {
            asio::write(socket, asio::buffer(bytes), error);
          } else {
            char one = 0;
            socket.read_some(asio::buffer(&one, 1), error);
          }
        }) {}
  Url url(const std::string& path = "") const {
    const std::string text = "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + path;
    return parse_url(text).value();
  }
  std::string asked() {
    thread_.join();
    return asked_;
  }
  ~OneAnswer() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  asio::io_context context_;
  tcp::acceptor acceptor_{context_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)};
  std::string asked_;
  std::thread thread_;
};

TEST(Url, IsTakenApart) {
  const Url url = parse_url("http://example.org:8000").value();
  EXPECT_EQ(url.host, "example.org");
  EXPECT_EQ(url.port, 8000);
  EXPECT_EQ(url.path, "");
  EXPECT_EQ(parse_url("http://h").value().port, 80);
  EXPECT_EQ(parse_url("http://h/").value().path, "");
  EXPECT_EQ(parse_url("http://h:1/a/b/").value().path, "/a/b");
  EXPECT_EQ(parse_url("http://[::1]:8000/").value().host, "::1");
  EXPECT_EQ(parse_url("http://[::1]:8000").value().port, 8000);
  EXPECT_EQ(parse_url("http://[::1]").value().port, 80);
}

TEST(Url, ThatIsNoneIsRefused) {
  for (const char* text :
       {"", "127.0.0.1:8000", "https://h", "http://", "http://:80", "http://h:", "http://h:0", "http://h:65536",
        "http://h:8x", "http://[::1", "http://[]:1", "http://[::1]8000", "http://h/?a", "http://user@h", "ftp://h"}) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
  EXPECT_EQ(parse_url("http://h:65535").value().port, 65535);
}

TEST(Url, OfAnApiOrOfMetricsLeadsToTheServersRoot) {
  for (const auto& [text, path] : {std::pair{"http://h:1", ""},
                                   {"http://h:1/v1", ""},
                                   {"http://h:1/v1/", ""},
                                   {"http://h:1/metrics", ""},
                                   {"http://h:1/behind/v1", "/behind"},
                                   {"http://h:1/behind", "/behind"},
                                   {"http://h:1/v1/models", "/v1/models"}}) {
    EXPECT_EQ(root_of(parse_url(text).value()).path, path) << text;
  }
}

TEST(HttpAsk, SendsTheMethod) {
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(http_ask("DELETE", server.url(), "/a", 5s, {}).value(), "{}");
  EXPECT_THAT(server.asked(), HasSubstr("DELETE /a HTTP/1.1\r\n"));
  OneAnswer missing("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  const Error error = http_ask("DELETE", missing.url(), "/a", 5s, {}).error();
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("DELETE /a was answered with status 404"));
}

TEST(HttpGet, GivesTheBody) {
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  const Result<std::string> body = http_get(server.url("/base/"), "/metrics", 5s);
  ASSERT_TRUE(body) << body.error().message;
  EXPECT_EQ(*body, "hello");
  EXPECT_THAT(server.asked(), HasSubstr("GET /base/metrics HTTP/1.1\r\n"));
}

TEST(HttpGet, TakesABodyInChunksOrUntilTheOtherSideCloses) {
  OneAnswer chunked("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n");
  EXPECT_EQ(http_get(chunked.url(), "/metrics", 5s).value(), "hello");
  OneAnswer closed("HTTP/1.1 200 OK\r\n\r\nhello");
  EXPECT_EQ(http_get(closed.url(), "/metrics", 5s).value(), "hello");
  OneAnswer cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhe");
  EXPECT_THAT(http_get(cut.url(), "/metrics", 5s).error().message, HasSubstr("no answer to GET /metrics"));
}

TEST(HttpGet, SaysWhatTheAnswerWas) {
  OneAnswer missing("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(http_get(missing.url(), "/metrics", 5s).error().message,
              HasSubstr("GET /metrics was answered with status 404"));
  OneAnswer other("220 mail.example.org ESMTP\r\n");
  EXPECT_THAT(http_get(other.url(), "/metrics", 5s).error().message, HasSubstr("no answer to GET /metrics"));
}

TEST(HttpGet, TellsStatusesWithANextStepApartAndRepeatsTheServersMessage) {
  const auto error_of = [](int status, const std::string& body) {
    OneAnswer server("HTTP/1.1 " + std::to_string(status) + " No\r\nContent-Length: " + std::to_string(body.size()) +
                     "\r\n\r\n" + body);
    return http_get(server.url(), "/metrics", 5s).error();
  };
  EXPECT_EQ(error_of(401, "").code, Code::kUnauthorized);
  EXPECT_EQ(error_of(403, "").code, Code::kForbidden);
  EXPECT_EQ(error_of(404, "").code, Code::kNotFound);
  EXPECT_EQ(error_of(500, "").code, Code::kUnavailable);
  EXPECT_THAT(error_of(400, R"({"error": {"message": "use https://"}})").message,
              HasSubstr("was answered with status 400: use https://"));
  for (const char* body : {"<html>", "{}", R"({"error": 5})", R"({"error": {"message": 5}})"}) {
    EXPECT_THAT(error_of(400, body).message, ::testing::EndsWith("status 400")) << body;
  }
}

TEST(HttpGet, SendsTheKey) {
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(http_get(server.url(), "/metrics", 5s, {.key = "sk-1"}));
  EXPECT_THAT(server.asked(), HasSubstr("Authorization: Bearer sk-1\r\n"));
}

TEST(HttpGet, WaitsNoLongerThanItMay) {
  OneAnswer silent("");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(http_get(silent.url(), "/metrics", 50ms).error().message, HasSubstr("no answer to GET /metrics"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(HttpGet, SaysWhereNobodyListens) {
  asio::io_context context;
  tcp::acceptor bound(context, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));
  const Url url = parse_url("http://127.0.0.1:" + std::to_string(bound.local_endpoint().port())).value();
  bound.close();
  EXPECT_THAT(http_get(url, "/metrics", 5s).error().message, HasSubstr(url.text + ": connection refused"));
}

}  // namespace
}  // namespace quire::app::http_get_test
