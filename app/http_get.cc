// With bench/http_load.cc and tracing/http_post.cc, the only unit of app/ that includes Asio and Beast.
#include "app/http_get.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <charconv>
#include <utility>

#include "core/base/log.h"

namespace quire::app {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::uint64_t kMaxBodyBytes = std::uint64_t{16} << 20;

// Asynchronous calls made one after the other: only they can have a deadline.
class Connection {
 public:
  explicit Connection(Duration timeout) { stream_.expires_after(timeout); }

  template <typename Endpoints>
  beast::error_code connect(const Endpoints& endpoints) {
    return wait([&](auto done) { stream_.async_connect(endpoints, std::move(done)); });
  }
  template <typename Message>
  beast::error_code write(const Message& message) {
    return wait([&](auto done) { http::async_write(stream_, message, std::move(done)); });
  }
  template <typename Parser>
  beast::error_code read(Parser& parser) {
    return wait([&](auto done) { http::async_read(stream_, buffer_, parser, std::move(done)); });
  }
  asio::io_context& context() { return context_; }

 private:
  template <typename Start>
  beast::error_code wait(Start start) {
    beast::error_code outcome;
    start([&outcome](beast::error_code error, const auto&...) { outcome = error; });
    context_.restart();
    context_.run();
    return outcome;
  }

  asio::io_context context_;
  beast::tcp_stream stream_{context_};
  beast::flat_buffer buffer_;
};

Error failed(const Url& url, const std::string& what) { return invalid("", fmt::format("{}: {}", url.text, what)); }

}  // namespace

Result<Url> parse_url(std::string_view text, UrlSchemes schemes) {
  const bool https = schemes == UrlSchemes::kHttpAndHttps && text.starts_with("https://");
  const std::string_view scheme = https ? "https://" : "http://";
  const Error no = invalid("", fmt::format("'{}': expected a URL like http://127.0.0.1:8000", log_safe(text)));
  if (!text.starts_with(scheme)) return no;
  std::string_view rest = text.substr(scheme.size());
  std::string_view authority = rest.substr(0, rest.find('/'));
  std::string_view path = rest.substr(authority.size());
  while (path.ends_with('/')) path.remove_suffix(1);
  if (rest.find_first_of("?#@ ") != rest.npos) return no;

  constexpr std::uint16_t kHttpPort = 80;
  constexpr std::uint16_t kHttpsPort = 443;
  Url url{{}, https ? kHttpsPort : kHttpPort, std::string(path), std::string(text), https};
  const bool brackets = authority.starts_with('[');
  const std::size_t end = brackets ? authority.find(']') : authority.find(':');
  if (brackets && end == authority.npos) return no;
  url.host = authority.substr(brackets ? 1 : 0, brackets ? end - 1 : end);
  if (url.host.empty()) return no;
  authority.remove_prefix(end == authority.npos ? authority.size() : end + (brackets ? 1 : 0));
  if (authority.empty()) return url;
  const char* last = authority.data() + authority.size();
  const auto [stop, error] = std::from_chars(authority.data() + 1, last, url.port);
  if (authority.front() != ':' || error != std::errc() || stop != last || url.port == 0) return no;
  return url;
}

Result<std::string> http_get(const Url& url, std::string_view path, Duration timeout, std::string_view key) {
  Connection connection(timeout);
  beast::error_code error;
  const auto endpoints =
      asio::ip::tcp::resolver(connection.context()).resolve(url.host, std::to_string(url.port), error);
  if (error) return failed(url, fmt::format("{} is not known ({})", log_safe(url.host), error.message()));
  error = connection.connect(endpoints);
  if (error) return failed(url, fmt::format("nobody listens there ({}); is `quire serve` running?", error.message()));

  http::request<http::empty_body> request(http::verb::get, url.path + std::string(path), 11);
  request.set(http::field::host, url.host);
  request.set(http::field::connection, "close");
  if (!key.empty()) request.set(http::field::authorization, "Bearer " + std::string(key));
  error = connection.write(request);
  http::response_parser<http::string_body> response;
  response.body_limit(kMaxBodyBytes);
  if (!error) error = connection.read(response);
  if (error) return failed(url, fmt::format("no answer to GET {} ({})", path, error.message()));
  if (response.get().result() != http::status::ok) {
    return failed(url, fmt::format("GET {} is answered {}", path, response.get().result_int()));
  }
  return std::move(response.get().body());
}

}  // namespace quire::app
