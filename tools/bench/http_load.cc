#include "tools/bench/http_load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>

#include "core/base/start_error.h"
#include "tools/bench/transcript.h"
#include "tools/common/mix.h"

namespace quire::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// State shared by all coroutines of a measurement. It outlives them: run() returns after the last has ended.
struct Shared {
  const HttpLoad& load;
  std::vector<http::request<http::string_body>> requests;
  std::vector<Transcript> transcripts;
  asio::io_context context{1};
  tcp::resolver::results_type endpoints;
  std::chrono::steady_clock::time_point start{};
  std::uint32_t next = 0;  // next request to send

  double now_s() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }
};

struct Connection {
  explicit Connection(asio::io_context& context) : stream(context) {}
  beast::tcp_stream stream;
  beast::flat_buffer buffer;
  bool open = false;
};

// Sends one request and records the whole answer. True: a reused connection was closed before the first byte.
asio::awaitable<bool> exchange(Shared& shared, Connection& connection, std::uint32_t index) {
  Transcript& out = shared.transcripts[index];
  out.error.clear();
  beast::error_code error;
  const auto token = [&error] { return asio::redirect_error(asio::use_awaitable, error); };
  const bool reused = connection.open;
  connection.stream.expires_after(shared.load.timeout);
  out.sent_s = shared.now_s();
  if (!connection.open) {
    connection.buffer.clear();
    co_await connection.stream.async_connect(shared.endpoints, token());
    if (!error) connection.stream.socket().set_option(tcp::no_delay(true), error);
  }
  connection.open = true;
  if (!error) co_await http::async_write(connection.stream, shared.requests[index], token());
  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  if (!error) co_await http::async_read_header(connection.stream, connection.buffer, parser, token());
  const bool stale = error && reused && !parser.got_some();
  while (!error && !parser.is_done()) {
    co_await http::async_read_some(connection.stream, connection.buffer, parser, token());
    const std::size_t size = parser.get().body().size();
    if (out.reads.empty() || size != out.reads.back().first) out.reads.emplace_back(size, shared.now_s());
  }
  if (error) {
    out.error = error.message();
  } else {
    out.code = parser.get().result_int();
    out.body = std::move(parser.get().body());
  }
  if (error || !parser.keep_alive()) {
    connection.stream.close();
    connection.open = false;
  }
  co_return stale;
}

asio::awaitable<void> ask(Shared& shared, Connection& connection, std::uint32_t index) {
  const bool stale = co_await exchange(shared, connection, index);
  if (stale) co_await exchange(shared, connection, index);
}

asio::awaitable<void> run_stream(Shared& shared) {
  Connection connection(shared.context);
  while (shared.next < shared.load.num_requests) co_await ask(shared, connection, shared.next++);
}

asio::awaitable<void> run_arrival(Shared& shared, std::uint32_t index, double at_s) {
  asio::steady_timer timer(shared.context);
  timer.expires_at(shared.start + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(at_s)));
  beast::error_code error;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
  Connection connection(shared.context);
  co_await ask(shared, connection, index);
}

void rethrow(const std::exception_ptr& failure) {
  if (failure) std::rethrow_exception(failure);
}

http::request<http::string_body> request_of(const HttpLoad& load, std::uint64_t round, std::uint32_t index) {
  http::request<http::string_body> request(http::verb::post, load.url.path + "/v1/completions", 11);
  request.set(http::field::host, load.url.host);
  request.set(http::field::content_type, "application/json");
  request.body() = completion_body(load.model, load_prompt(load.prompts, round, index), load.answer_tokens);
  request.prepare_payload();
  return request;
}

// Arrival times of a Poisson process with `rate` requests per second; the first is at 0.
// Source  inverse transform sampling of the exponential distribution.
std::vector<double> arrivals(double rate, std::uint32_t count, std::uint64_t round) {
  Random random(round + 77);
  std::vector<double> at_s;
  double now_s = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    at_s.push_back(now_s);
    const double even = (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53;
    now_s -= std::log(even) / rate;
  }
  return at_s;
}

void resolve(Shared& shared) {
  beast::error_code error;
  shared.endpoints =
      tcp::resolver(shared.context).resolve(shared.load.url.host, std::to_string(shared.load.url.port), error);
  if (error) throw StartError(fmt::format("--url {}: {}", shared.load.url.text, error.message()));
}

}  // namespace

std::string completion_body(const std::string& model, const std::vector<TokenId>& prompt, std::uint32_t answer_tokens) {
  return fmt::format(R"({{"model":{},"prompt":[{}],"max_tokens":{},"temperature":0,"ignore_eos":true,"stream":true,)"
                     R"("stream_options":{{"include_usage":true}}}})",
                     boost::json::serialize(boost::json::value(model)), fmt::join(prompt, ","), answer_tokens);
}

Measurement put_under_load(const HttpLoad& load, std::uint64_t round) {
  Shared shared{.load = load, .requests = {}, .transcripts = {}, .endpoints = {}};
  resolve(shared);
  for (std::uint32_t i = 0; i < load.num_requests; ++i) shared.requests.push_back(request_of(load, round, i));
  shared.transcripts.resize(load.num_requests);

  const double cpu = cpu_seconds();
  shared.start = std::chrono::steady_clock::now();
  if (load.rate) {
    const std::vector<double> at_s = arrivals(*load.rate, load.num_requests, round);
    for (std::uint32_t i = 0; i < load.num_requests; ++i) {
      asio::co_spawn(shared.context, run_arrival(shared, i, at_s[i]), rethrow);
    }
  } else {
    for (std::uint32_t i = 0; i < load.streams; ++i) asio::co_spawn(shared.context, run_stream(shared), rethrow);
  }
  shared.context.run();

  Measurement out;
  out.wall_s = shared.now_s();
  out.client_cpu_s = cpu_seconds() - cpu;
  for (const Transcript& one : shared.transcripts) out.answers.push_back(read_answer(one, load.answer_tokens));
  return out;
}

Answer ask_alone(const HttpLoad& load, std::uint64_t round, std::uint32_t index) {
  Shared shared{.load = load, .requests = {}, .transcripts = {}, .endpoints = {}};
  resolve(shared);
  shared.requests.push_back(request_of(load, round, index));
  shared.transcripts.resize(1);
  Connection connection(shared.context);
  shared.start = std::chrono::steady_clock::now();
  asio::co_spawn(shared.context, ask(shared, connection, 0), rethrow);
  shared.context.run();
  return read_answer(shared.transcripts.front(), load.answer_tokens);
}

}  // namespace quire::tools
