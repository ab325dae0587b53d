// The only unit of app/ that includes Asio and Beast. It reads the bytes and feeds the parser itself: g++ takes half a
// minute to compile Beast's async_read().
#include "app/http/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <exception>
#include <tuple>

#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
template <typename T>
using Task = asio::awaitable<T>;
using Parser = beast_http::response_parser<beast_http::string_body>;
using TlsStream = asio::ssl::stream<tcp::socket&>;

constexpr std::size_t kReadBytes = 16 * 1024;
// End of a chunked body: Beast 1.81 fails if it is given fewer bytes after a chunk's size.
constexpr std::size_t kLastChunkBytes = 5;

// A failure while a request is sent or a reply is read; send() returns the text.
struct Failed {
  std::string text;
};

// Host and port as in the header Host.
std::string authority_of(const Url& url) {
  const std::string host = url.host.find(':') == url.host.npos ? url.host : '[' + url.host + ']';
  return fmt::format("{}:{}", host, url.port);
}

std::string text_of(std::string_view method, const Url& url, std::string_view path, const HttpClient::Fields& fields,
                    std::string_view body) {
  std::string text =
      fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", method, url.path, path, authority_of(url));
  for (const auto& [name, value] : fields) text += fmt::format("{}: {}\r\n", name, value);
  if (!body.empty()) text += fmt::format("Content-Length: {}\r\n", body.size());
  return text.append("\r\n").append(body);
}

// Parses as much of the buffer as is complete; throws Failed if it is invalid.
void put(Parser& reply, beast::flat_buffer& buffer) {
  while (!reply.is_done() && buffer.size() > 0) {
    if (reply.is_header_done() && reply.chunked() && buffer.size() < kLastChunkBytes) return;
    error_code error;
    const std::size_t taken = reply.put(buffer.data(), error);
    buffer.consume(taken);
    if (error && error != beast_http::error::need_more) throw Failed{error.message()};
    if (taken == 0) return;
  }
}

template <typename Stream>
Task<void> talk(Stream& stream, const std::string& request, Parser& reply) {
  co_await asio::async_write(stream, asio::buffer(request), asio::use_awaitable);
  beast::flat_buffer buffer;
  while (!reply.is_done()) {
    const auto read = co_await stream.async_read_some(buffer.prepare(kReadBytes), asio::as_tuple(asio::use_awaitable));
    const error_code error = std::get<0>(read);
    if (error == asio::error::eof) {
      error_code cut;
      if (reply.got_some()) reply.put_eof(cut);
      if (cut || !reply.is_done()) throw Failed{cut ? cut.message() : error.message()};
      co_return;
    }
    if (error) throw Failed{error.message()};
    buffer.commit(std::get<1>(read));
    put(reply, buffer);
  }
}

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Failed& failed) {
    return failed.text;
  } catch (const boost::system::system_error& error) {
    return error.code().message();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

class HttpClient::Exchange {
 public:
  Exchange(Url url, std::uint32_t head_bytes, std::uint64_t body_bytes, const std::string& ca_file)
      : url_(std::move(url)), head_bytes_(head_bytes), body_bytes_(body_bytes) {
    if (!url_.https) return;
    error_code error;
    tls_.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                     asio::ssl::context::no_tlsv1_1);
    tls_.set_verify_mode(asio::ssl::verify_peer);
    if (ca_file.empty()) {
      tls_.set_default_verify_paths(error);
    } else {
      tls_.load_verify_file(ca_file, error);
    }
    if (error) throw StartError(fmt::format("{}: {}", ca_file, error.message()));
  }

  Result<HttpReply> send(const std::string& request, Duration timeout) {
    context_.restart();
    time_is_up_ = false;
    connected_ = false;
    busy_ = true;
    end_ = std::min(limit_, std::chrono::steady_clock::now() + timeout);
    Parser reply;
    reply.eager(true);
    reply.body_limit(body_bytes_);
    reply.header_limit(head_bytes_);
    std::exception_ptr failure;
    arm();
    asio::co_spawn(context_, exchange(request, reply), [&](const std::exception_ptr& ended_by) {
      failure = ended_by;
      busy_ = false;
      timer_.cancel();
    });
    context_.run();
    if (failure || time_is_up_)
      return Error{Code::kUnavailable, time_is_up_ ? "no answer in time" : text_of(failure), "", 0};
    return HttpReply{static_cast<int>(reply.get().result_int()),
                     std::string(reply.get()[beast_http::field::retry_after]), std::move(reply.get().body())};
  }

  void give_up_at(TimePoint time) {
    asio::post(context_, [this, time] {
      limit_ = time;
      end_ = std::min(end_, limit_);
      if (busy_) arm();
    });
  }

  const Url& url() const { return url_; }
  bool connected() const { return connected_; }

 private:
  Task<void> exchange(const std::string& request, Parser& reply) {
    const auto resolved =
        co_await resolver_.async_resolve(url_.host, std::to_string(url_.port), asio::as_tuple(asio::use_awaitable));
    if (time_is_up_) co_return;  // send() reports it; before this point the timer had no socket to close
    if (const auto unknown = std::get<0>(resolved)) {
      throw Failed{fmt::format("the name {} cannot be resolved ({})", log_safe(url_.host), unknown.message())};
    }
    tcp::socket socket(context_);
    const Holder held(*this, socket);
    const auto reached =
        co_await asio::async_connect(socket, std::get<1>(resolved), asio::as_tuple(asio::use_awaitable));
    if (const auto refused = std::get<0>(reached)) {
      throw Failed{fmt::format("connection refused ({})", refused.message())};
    }
    connected_ = true;
    if (!url_.https) {
      co_await talk(socket, request, reply);
      co_return;
    }
    TlsStream stream(socket, tls_);
    stream.set_verify_callback(asio::ssl::host_name_verification(url_.host));
    SSL_set_tlsext_host_name(stream.native_handle(), url_.host.c_str());
    co_await stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
    co_await talk(stream, request, reply);
  }

  // Gives the timer the socket to close, while it exists.
  class Holder {
   public:
    Holder(Exchange& exchange, tcp::socket& socket) : exchange_(exchange) { exchange_.open_ = &socket; }
    ~Holder() { exchange_.open_ = nullptr; }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

   private:
    Exchange& exchange_;
  };

  void arm() {
    timer_.expires_at(end_);
    timer_.async_wait([this](error_code error) {
      if (error) return;
      time_is_up_ = true;
      resolver_.cancel();
      if (open_ != nullptr) open_->close(error);
    });
  }

  const Url url_;
  const std::uint32_t head_bytes_;
  const std::uint64_t body_bytes_;
  asio::io_context context_{1};
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  tcp::resolver resolver_{context_};
  asio::steady_timer timer_{context_};
  TimePoint end_ = TimePoint::max();    // of the running exchange
  TimePoint limit_ = TimePoint::max();  // of all exchanges
  bool busy_ = false;
  bool time_is_up_ = false;
  bool connected_ = false;
  tcp::socket* open_ = nullptr;
};

HttpClient::HttpClient(Url url, std::uint32_t head_bytes, std::uint64_t body_bytes, const std::string& ca_file)
    : exchange_(std::make_unique<Exchange>(std::move(url), head_bytes, body_bytes, ca_file)) {}
HttpClient::~HttpClient() = default;

Result<HttpReply> HttpClient::send(std::string_view method, std::string_view path, const Fields& fields,
                                   std::string_view body, Duration timeout) {
  return exchange_->send(text_of(method, exchange_->url(), path, fields, body), timeout);
}
void HttpClient::give_up_at(TimePoint time) { exchange_->give_up_at(time); }
bool HttpClient::connected() const { return exchange_->connected(); }

}  // namespace quire::app
