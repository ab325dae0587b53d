// The part of a session that reads requests, within their limits and deadlines.
#include <algorithm>
#include <boost/asio/error.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "api/http/session.h"
#include "api/routes/router.h"
#include "api/services/slo_hints.h"
#include "api/tracing/request_log.h"
#include "api/tracing/tracer.h"
#include "api/wire/errors.h"
#include "api/wire/headers.h"
#include "api/wire/response_head.h"
#include "core/observe/trace_context.h"

namespace quire::api::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kLingerBytes = 32u << 20;  // so that a client that sends a body past the limit reads the 413
constexpr std::size_t kDiscardBytes = std::size_t{1} << 20;  // of an unneeded body; a longer one ends the connection
constexpr auto kDiscardTime = std::chrono::seconds(1);
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view view_of(const boost::beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

Response bodies_full(const concurrent::ByteBudget& budget, bool of_caller, ErrorShape shape) {
  const std::string of = of_caller ? "the request bodies being received of this client exceed "
                                   : "the request bodies being received exceed ";
  const std::size_t limit = of_caller ? budget.limit_of_one() : budget.limit();
  return error_response(Error{Code::kQueueFull, of + std::to_string(limit) + " bytes in total; try again later", "", 1},
                        shape);
}

// Trace context of the request. A repeated traceparent is ignored.
tracing::Context trace_of(const BodyReader& reader, const tracing::Tracer* tracer) {
  std::optional<observe::TraceParent> parent;
  if (!reader.repeats(kTraceParentHeader)) parent = observe::parse_traceparent(reader.field(kTraceParentHeader));
  std::string state = parent ? reader.all_of(kTraceStateHeader) : std::string();
  if (!observe::is_tracestate(state)) state.clear();
  return tracing::begin(tracer, parent, std::move(state));
}

}  // namespace

FramingLimits Session::framing_limits() const {
  const ConnectionLimits& limits = io_.config.limits;
  return {limits.head_bytes, limits.head_fields, limits.body_bytes};
}

bool Session::refuse(const Refusal& refusal) {
  refusal_ = refusal;
  return false;
}

bool Session::refuse(Fault fault, const char* message) { return refuse(Refusal{fault, message}); }

Session::Task<bool> Session::read_request() {
  reading_ = true;
  exchange_ = {};
  request_ = {};
  const std::size_t head_bytes = co_await read_head();
  if (head_bytes == 0) co_return false;

  const std::string_view head = view_of(buffer_).substr(0, head_bytes);
  const auto verdict = inspect_head(head, framing_limits());
  if (const auto* refusal = std::get_if<Refusal>(&verdict)) {
    exchange_.shape = shape_of(path_of(target_of(head)), false);
    co_return refuse(*refusal);
  }
  const Framing& framing = std::get<Framing>(verdict);  // its views are valid until buffer_ changes
  exchange_.method = framing.method;
  exchange_.path = path_of(framing.target);
  exchange_.http_1_1 = framing.http_1_1;
  exchange_.keep_alive = framing.keep_alive;

  reader_ = std::make_unique<BodyReader>(framing_limits());
  const BodyReader::Taken taken = reader_->put(head);
  if (taken.refusal) co_return refuse(*taken.refusal);
  buffer_.consume(taken.bytes);
  read_fields(*reader_);
  const bool has_body = framing.chunked || framing.content_length != 0;
  request_.body_comes = has_body;
  early_ = answer_to_browser(*reader_);
  if (!early_) early_ = refusal_of_head(request_, io_.services, io_.serving, io_.entrance.surface);
  if (request_.caller) exchange_.key = request_.caller->name;
  caller_ = request_.caller ? "key " + request_.caller->name : connection_.peer();
  const bool expects_continue = framing.expects_continue && has_body && buffer_.size() == 0;
  if (early_) {
    // The connection ends if the client waits for 100 Continue, because it may send its body or not, and if the body is
    // chunked or long, because its end is not awaited.
    const bool stays = !expects_continue && !framing.chunked && framing.content_length <= kDiscardBytes;
    exchange_.keep_alive = exchange_.keep_alive && stays;
  } else {
    if (expects_continue) {
      const bool written = co_await write(kContinue, std::string_view());
      if (!written) co_return false;
    }
    const bool whole = co_await read_body();
    if (!whole) co_return false;
  }
  request_.body = reader_->take_body();
  if (io_.config.log_requests == tracing::LogRequests::kContent) {
    exchange_.content = request_.body.substr(0, tracing::EndedRequest::kMaxContentBytes);
  }
  if (!early_) reader_.reset();  // waiting connections hold no parser
  request_.arrival = exchange_.arrival = now();
  exchange_.first_write = {};
  reading_ = false;
  co_return true;
}

// The answer to a browser's CORS preflight, which needs no key. For other requests none; the head of their answer will
// say if the web page may read it.
std::optional<Response> Session::answer_to_browser(const BodyReader& reader) {
  const CorsRules& rules = io_.config.cors;
  if (rules.origins.empty() || request_.origin.empty() || io_.entrance.surface == Surface::kAdmin) return std::nullopt;
  exchange_.cors = cors_lines(rules, request_.path, request_.origin);
  const std::string asked = reader.field("Access-Control-Request-Method");
  if (request_.method != "OPTIONS" || asked.empty()) return std::nullopt;
  return answer_preflight(rules, request_.path,
                          {request_.origin, asked, reader.field("Access-Control-Request-Headers")});
}

// Reads the header fields that are not about framing.
void Session::read_fields(const BodyReader& reader) {
  exchange_.id = request_id_of(reader.field(kRequestIdHeader));
  exchange_.trace = trace_of(reader, io_.services.tracer);
  request_.method = exchange_.method;
  request_.path = exchange_.path;
  request_.id = exchange_.id;
  request_.of_anthropics_client = reader.has(kAnthropicVersionHeader);
  exchange_.shape = shape_of(request_.path, request_.of_anthropics_client);
  request_.at_loopback = io_.entrance.at_loopback;
  request_.host = reader.field("Host");
  request_.origin = reader.field("Origin");
  request_.fetch_site = reader.field("Sec-Fetch-Site");
  request_.key = reader.field(kRequestKeyHeader);
  request_.authorization = reader.field("Authorization");
  request_.api_key = reader.field(kApiKeyHeader);
  request_.credentials_repeated = reader.repeats("Authorization") || reader.repeats(kApiKeyHeader);
  for (const Header& one : requests::slo_hint_headers()) {
    if (reader.has(one.name)) request_.slo_hints.push_back({one.name, reader.field(one.name)});
    if (reader.repeats(one.name)) request_.slo_hints.push_back({one.name, reader.field(one.name)});
  }
  exchange_.labels = requests::labels_of(request_.slo_hints);
  request_.content_type = reader.field("Content-Type");
  request_.content_encoding = reader.field("Content-Encoding");
}

Session::Task<std::size_t> Session::read_head() {
  const ConnectionLimits& limits = io_.config.limits;
  bool empty_line_skipped = false;
  bool begun = false;
  std::size_t seen = 0;
  set_deadline(now() + limits.idle_timeout);
  for (;;) {
    if (!empty_line_skipped && view_of(buffer_).starts_with("\r\n")) {  // RFC 9112, 2.2: one is ignored
      buffer_.consume(2);
      seen = 0;
      empty_line_skipped = true;
    }
    if (!begun && buffer_.size() != 0) {
      begun = true;
      set_deadline(now() + limits.head_timeout);
    }
    const auto found = find_head_end(view_of(buffer_), seen, framing_limits());
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
      refuse(*refusal);
      co_return 0;
    }
    if (const std::size_t bytes = std::get<std::size_t>(found); bytes != 0) co_return bytes;
    seen = buffer_.size();
    const bool more = co_await read_more();
    if (more) continue;
    if (expired_ && begun && !io_.stopping()) refuse(Fault::kTooSlow, "the header was not complete in time");
    co_return 0;
  }
}

// Charges the body's bytes as they arrive, so that a large Content-Length alone takes nothing from other callers.
Session::Task<bool> Session::read_body() {
  const ConnectionLimits& limits = io_.config.limits;
  const TimePoint end = now() + limits.body_timeout;
  concurrent::ByteBudget& budget = io_.services.budgets.bodies;
  for (;;) {
    const BodyReader::Taken taken = reader_->put(view_of(buffer_));
    if (taken.refusal) co_return refuse(*taken.refusal);
    buffer_.consume(taken.bytes);
    const auto full = budget.take(body_share_, caller_, reader_->body_bytes() - body_share_.bytes());
    if (full != concurrent::ByteBudget::Full::kNo) {
      early_ = bodies_full(budget, full == concurrent::ByteBudget::Full::kCaller, exchange_.shape);
      exchange_.keep_alive = false;
      io_.services.metrics.admission_rejections.add();
      co_return true;
    }
    if (reader_->done()) co_return true;
    if (buffer_.size() == buffer_.max_size()) co_return refuse(Fault::kMalformed, "a chunk header is too long");
    set_deadline(std::min(end, now() + limits.body_read_timeout));
    const bool more = co_await read_more();
    if (more) continue;
    if (expired_ && !io_.stopping()) refuse(Fault::kTooSlow, "the body was not complete in time");
    co_return false;
  }
}

Session::Task<bool> Session::discard_body() {
  set_deadline(now() + kDiscardTime);
  while (reader_->body_bytes() <= kDiscardBytes) {
    const BodyReader::Taken taken = reader_->put(view_of(buffer_));
    if (taken.refusal) co_return false;
    buffer_.consume(taken.bytes);
    if (reader_->done()) co_return true;
    if (buffer_.size() == buffer_.max_size()) co_return false;
    const bool more = co_await read_more();
    if (!more) co_return false;
  }
  co_return false;
}

// False: the client closed, reset or ran out of time, or the server is stopping.
Session::Task<bool> Session::read_more() {
  if (expired_ || io_.stopping()) co_return false;
  const auto space = buffer_.prepare(std::min(buffer_.max_size() - buffer_.size(), kReadBytes));
  const Connection::Read read = co_await connection_.read(space);
  buffer_.commit(read.bytes);
  if (read.error && read.error != asio::error::operation_aborted) gone_ = true;
  co_return !read.error;
}

// Reads on for a moment after the last write, so that the client receives it before a reset could discard it.
Session::Task<void> Session::linger() {
  connection_.end_writing();
  buffer_.clear();
  set_deadline(now() + io_.config.limits.linger_timeout);
  for (std::size_t read = 0; read < kLingerBytes && !expired_;) {
    const Connection::Read more = co_await connection_.read(buffer_.prepare(buffer_.max_size()));
    if (more.error) break;
    read += more.bytes;
  }
}

// One timer serves reads and writes. A later deadline leaves the timer as it is: on firing it checks deadline_ again.
void Session::set_deadline(TimePoint deadline) {
  deadline_ = deadline;
  expired_ = false;
  if (deadline_ < deadline_armed_) arm_deadline();
}

void Session::arm_deadline() {
  deadline_armed_ = deadline_;
  if (deadline_ == TimePoint::max()) return;
  deadline_timer_.expires_at(deadline_);
  deadline_timer_.async_wait([weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    if (error || !self || self->closed_) return;
    self->deadline_armed_ = TimePoint::max();
    if (now() < self->deadline_) return self->arm_deadline();
    self->expired_ = true;
    self->connection_.cancel();
  });
}

}  // namespace quire::api::http
