// With http_get.cc and bench/http_load.cc, the only unit of app/ that includes Asio and Beast.
#include "app/tracing/http_post.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <charconv>
#include <exception>

#include "app/version.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
template <typename T>
using Task = asio::awaitable<T>;
using Body = http::request<http::string_body>;
using Parser = http::response_parser<http::string_body>;

constexpr std::uint64_t kMaxReplyBytes = 64 * 1024;
constexpr std::uint32_t kMaxReplyHeadBytes = 16 * 1024;
constexpr std::uint32_t kMaxRetryAfter_s = 24 * 60 * 60;

// Of host and port, as Host says it.
std::string authority_of(const Url& url) {
  const std::string host = url.host.find(':') == url.host.npos ? url.host : '[' + url.host + ']';
  return fmt::format("{}:{}", host, url.port);
}

std::optional<Duration> retry_after_of(std::string_view text) {
  std::uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds > kMaxRetryAfter_s) return std::nullopt;
  return std::chrono::seconds(seconds);
}

template <typename Stream>
Task<void> talk(Stream& stream, const Body& request, Parser& reply) {
  beast::flat_buffer buffer;
  co_await http::async_write(stream, request, asio::use_awaitable);
  co_await http::async_read(stream, buffer, reply, asio::use_awaitable);
}

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) {
    return error.code().message();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

class HttpPost::Exchange {
 public:
  Exchange(Url url, std::vector<std::pair<std::string, std::string>> headers, const std::string& ca_file)
      : url_(std::move(url)), headers_(std::move(headers)) {
    if (!url_.https) return;
    beast::error_code error;
    tls_.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                     asio::ssl::context::no_tlsv1_1);
    tls_.set_verify_mode(asio::ssl::verify_peer);
    if (ca_file.empty()) {
      tls_.set_default_verify_paths(error);
    } else {
      tls_.load_verify_file(ca_file, error);
    }
    if (error) throw StartError(fmt::format("OTEL_EXPORTER_OTLP_CERTIFICATE {}: {}", ca_file, error.message()));
  }

  Result<ReceiverReply> send(const std::string& body, Duration timeout) {
    context_.restart();
    time_is_up_ = false;
    busy_ = true;
    end_ = std::min(limit_, std::chrono::steady_clock::now() + timeout);
    Parser reply;
    reply.body_limit(kMaxReplyBytes);
    reply.header_limit(kMaxReplyHeadBytes);
    std::exception_ptr failure;
    arm();
    asio::co_spawn(context_, exchange(request_of(body), reply), [&](const std::exception_ptr& ended_by) {
      failure = ended_by;
      busy_ = false;
      timer_.cancel();
    });
    context_.run();
    if (failure || time_is_up_)
      return Error{Code::kUnavailable, time_is_up_ ? "no answer in time" : text_of(failure), "", 0};
    const std::string_view wait(reply.get()[http::field::retry_after]);
    return ReceiverReply{static_cast<int>(reply.get().result_int()), retry_after_of(wait), reply.get().body()};
  }

  void give_up_at(TimePoint time) {
    asio::post(context_, [this, time] {
      limit_ = time;
      end_ = std::min(end_, limit_);
      if (busy_) arm();
    });
  }

 private:
  Body request_of(const std::string& body) const {
    Body request(http::verb::post, url_.path, 11);
    request.set(http::field::host, authority_of(url_));
    request.set(http::field::user_agent, fmt::format("quire/{}", kVersion));
    request.set(http::field::content_type, "application/json");
    request.set(http::field::connection, "close");
    for (const auto& [name, value] : headers_) request.set(name, value);
    request.body() = body;
    request.prepare_payload();
    return request;
  }

  Task<void> exchange(Body request, Parser& reply) {
    beast::ssl_stream<beast::tcp_stream> stream(context_, tls_);
    const Holder held(*this, stream.next_layer());
    const tcp::resolver::results_type endpoints =
        co_await resolver_.async_resolve(url_.host, std::to_string(url_.port), asio::use_awaitable);
    if (time_is_up_) co_return;  // send() says so; from here on there is something to close
    co_await stream.next_layer().async_connect(endpoints, asio::use_awaitable);
    if (!url_.https) {
      co_await talk(stream.next_layer(), request, reply);
      co_return;
    }
    stream.set_verify_callback(asio::ssl::host_name_verification(url_.host));
    SSL_set_tlsext_host_name(stream.native_handle(), url_.host.c_str());
    co_await stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
    co_await talk(stream, request, reply);
  }

  // What the timer closes.
  class Holder {
   public:
    Holder(Exchange& exchange, beast::tcp_stream& stream) : exchange_(exchange) { exchange_.open_ = &stream; }
    ~Holder() { exchange_.open_ = nullptr; }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

   private:
    Exchange& exchange_;
  };

  void arm() {
    timer_.expires_at(end_);
    timer_.async_wait([this](beast::error_code error) {
      if (error) return;
      time_is_up_ = true;
      resolver_.cancel();
      if (open_ != nullptr) open_->close();
    });
  }

  const Url url_;
  const std::vector<std::pair<std::string, std::string>> headers_;
  asio::io_context context_{1};
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  tcp::resolver resolver_{context_};
  asio::steady_timer timer_{context_};
  TimePoint end_ = TimePoint::max();    // of the exchange under way
  TimePoint limit_ = TimePoint::max();  // of all of them
  bool busy_ = false;
  bool time_is_up_ = false;
  beast::tcp_stream* open_ = nullptr;
};

HttpPost::HttpPost(Url url, std::vector<std::pair<std::string, std::string>> headers, const std::string& ca_file)
    : exchange_(std::make_unique<Exchange>(std::move(url), std::move(headers), ca_file)) {}
HttpPost::~HttpPost() = default;

Result<ReceiverReply> HttpPost::send(const std::string& body, Duration timeout) {
  return exchange_->send(body, timeout);
}
void HttpPost::give_up_at(TimePoint time) { exchange_->give_up_at(time); }

}  // namespace quire::app
