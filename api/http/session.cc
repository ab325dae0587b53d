#include "api/http/session.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#include "api/routes/router.h"
#include "api/tracing/request_log.h"
#include "api/tracing/tracer.h"
#include "api/wire/errors.h"
#include "api/wire/response_head.h"
#include "api/wire/sse_writer.h"
#include "api/wire/writing.h"
#include "core/base/log.h"

namespace quire::api::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr int kSendBufferBytes = 128 * 1024;  // of the kernel: bounds the unread data of a client that stops reading

std::int64_t unix_ns() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count();
}
double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
Error no_room() {
  return {Code::kUnavailable,
          "the memory for answers is used up by answers that clients have not read; try again later", "", 5};
}

}  // namespace

// Watches the client while it waits for an answer, and not while a request is read.
class Session::WatchScope {
 public:
  explicit WatchScope(Session& session) : session_(session) {
    session_.watched_ = true;
    session_.probe_due_ = session_.read_closed_;
    session_.watch();
  }
  ~WatchScope() { session_.watched_ = false; }
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;

 private:
  Session& session_;
};

Error Session::shutting_down() {
  return {Code::kUnavailable, "the server is shutting down; the answer was cut short", "", 5};
}

Session::Session(IoThread& io, Socket socket, concurrent::Gate::Holder place)
    : io_(io),
      connection_(std::move(socket)),
      place_(std::move(place)),
      buffer_(io.config.limits.head_bytes),
      events_timer_(*io.context),
      deadline_timer_(*io.context) {}

void Session::start() {
  if (io_.stopping()) return;
  connection_.open(kSendBufferBytes);
  io_.enter(*this);
  asio::co_spawn(*io_.context, run(), [self = shared_from_this()](const std::exception_ptr& failure) {
    if (failure) {
      self->io_.services.metrics.internal_errors.add();
      log_error("connection_failed", {{"id", log_safe(self->exchange_.id)}});
    }
    self->closed_ = true;
    self->deadline_timer_.cancel();
    self->connection_.close();
    self->io_.leave(*self);
  });
}

void Session::cut() {
  cut_ = true;
  set_deadline(std::min(deadline_, now() + io_.config.limits.linger_timeout));  // ends a write that nobody reads, too
  wake();
}

void Session::stop() {
  set_deadline(std::min(deadline_, now() + io_.config.limits.linger_timeout));
  if (reading_) connection_.cancel();
}

Session::Task<void> Session::run() {
  const bool greeted = co_await greet();
  bool spoken = !greeted;
  while (!spoken) {
    const bool asked = co_await read_request();
    if (!asked) break;
    const bool again = co_await respond();
    note_end();
    spoken = !again;
  }
  if (refusal_) {
    exchange_.keep_alive = false;
    if (exchange_.id.empty()) exchange_.id = request_id_of({});
    if (exchange_.trace.trace_id.empty()) exchange_.trace = tracing::begin(io_.services.tracer, std::nullopt, {});
    Response refused = error_response(*refusal_, exchange_.shape);
    co_await send(std::move(refused), nullptr);
    note_end();
    spoken = true;
  }
  // Closing while the client still sends would reset the connection, and could discard the answer.
  const bool still_sending = refusal_.has_value() || unread_ || buffer_.size() != 0;
  if (spoken && still_sending && !gone_ && !read_closed_) co_await linger();
}

Session::Task<bool> Session::greet() {
  if (!io_.tls) co_return true;
  reading_ = true;
  set_deadline(now() + io_.config.limits.head_timeout);
  std::shared_ptr<const TlsContext> tls = io_.tls;
  const Connection::Greeting greeting = co_await connection_.secure(std::move(tls));
  if (greeting == Connection::Greeting::kPlainHttp) refuse(Fault::kMalformed, "this port speaks TLS: use https://");
  co_return greeting == Connection::Greeting::kDone;
}

// ---- answering

// An exception ends only the request that it comes from.
Session::Task<bool> Session::respond() {
  bool again = false;
  bool failed = false;
  try {
    again = co_await reply();
  } catch (const std::exception& failure) {  // mostly bad_alloc
    io_.services.metrics.internal_errors.add();
    log_error("request_failed", {{"id", log_safe(exchange_.id)}, {"message", log_safe(failure.what())}});
    failed = true;
  }
  body_share_.give_back();
  if (failed) again = co_await answer_fault();
  co_return again;
}

Session::Task<bool> Session::reply() {
  if (early_) {
    const bool refused = co_await refuse_early();
    co_return refused;
  }
  Reply reply = route(std::move(request_), io_.services, io_.serving, io_.entrance.surface);
  if (auto* response = std::get_if<Response>(&reply)) {
    const bool again = co_await send(std::move(*response), nullptr);
    if (gone_ && !is_probe(exchange_.path)) note_done(status_of(Code::kCancelled), nullptr);
    co_return again;
  }
  std::unique_ptr<Answer> pending = std::move(std::get<std::unique_ptr<Answer>>(reply));
  co_return co_await answer(std::move(pending));
}

// Sends a refusal that was decided before the whole body had come, then reads the rest of the body and discards it, so
// that the client gets the answer and not a reset.
Session::Task<bool> Session::refuse_early() {
  Response refused = std::move(*early_);
  early_.reset();
  const bool again = co_await send(std::move(refused), nullptr);
  if (gone_ || reader_->done()) co_return again;
  unread_ = true;
  const bool whole = co_await discard_body();
  if (whole) unread_ = false;
  co_return again&& whole;
}

// Counts the response, unless a probe or a scraper gets it: those come every few seconds and would hide the others.
void Session::note_status(int status) {
  exchange_.status = status;
  if (!is_probe(exchange_.path)) io_.services.metrics.http_responses[static_cast<std::size_t>(status) / 100].add();
}

void Session::note_end() const {
  if (exchange_.status == 0 || is_probe(exchange_.path)) return;
  const std::string_view route = route_of(exchange_.path);
  const TimePoint begin = exchange_.arrival == TimePoint{} ? now() : exchange_.arrival;
  io_.services.metrics.http_requests.count(exchange_.method, route, exchange_.status, seconds(now() - begin));
}

HeadFacts Session::head_facts(bool keep_alive, std::optional<std::size_t> body_bytes) const {
  const bool anthropics = exchange_.shape == ErrorShape::kAnthropic;
  return {exchange_.id, exchange_.http_1_1, keep_alive, body_bytes, anthropics, exchange_.cors};
}

// Answers an exception with an error if no byte of an answer is written yet. The connection ends.
Session::Task<bool> Session::answer_fault() {
  exchange_.keep_alive = false;
  if (gone_ || exchange_.first_write != TimePoint{}) co_return false;
  Response fault =
      error_response(Error{Code::kInternal, "the server could not answer this request: it may be out of memory", "", 0},
                     exchange_.shape);
  co_await send(std::move(fault), nullptr);
  co_return false;
}

Session::Task<bool> Session::answer(std::unique_ptr<Answer> owned) {
  Answer& answer = *owned;
  const IoThread::AnswerScope counted(io_);
  const WatchScope watched(*this);
  set_deadline(TimePoint::max());  // the engine decides how long an answer takes; writes have their own deadlines
  buffer_.shrink_to_fit();         // many connections wait at once, and for long
  std::optional<Response> refused = co_await work(answer);
  body_share_.give_back();
  if (!refused && !gone_) {
    const IoHandle io_handle = make_io_handle();
    while (answer.open(io_handle) && !gone_) co_await give_way();
    if (!gone_) refused = answer.admit(io_handle);
  }
  bool again = false;
  if (!gone_) {
    if (refused) {
      again = co_await send(std::move(*refused), &answer);
    } else if (answer.streams()) {
      again = co_await stream(answer);
    } else {
      again = co_await collect(answer);
    }
  }
  if (gone_) {
    io_.services.metrics.client_disconnects.add();
    note_done(status_of(Code::kCancelled), &answer);
  }
  co_return again;
}

IoHandle Session::make_io_handle() {
  return {io_.hub,
          [weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->take_events();
          },
          [context = io_.context](std::function<void()> job) { asio::post(*context, std::move(job)); }};
}

Session::Task<void> Session::give_way() { co_await asio::post(*io_.context, kToken); }

Session::Task<bool> Session::collect(Answer& answer) {
  for (;;) {
    if (cut_) answer.fail(shutting_down());
    const Taken taken = answer.take();
    if (answer.finished()) break;
    if (probe_due_ && !probe_sent_) {
      probe_sent_ = true;
      const bool written = co_await write(kProbe, std::string_view());
      if (!written) gone_ = true;
    }
    if (gone_) co_return false;
    if (taken.more) {
      co_await give_way();
    } else {
      co_await wait_until(TimePoint::max());
    }
  }
  Response response;
  concurrent::ByteBudget::Share room;
  if (answer.whole_size() >= kSliceSize) {
    const bool has_room = co_await take_room(room);
    if (gone_) co_return false;
    if (!has_room) co_return co_await send(error_response(no_room(), exchange_.shape), &answer);
  }
  const std::function<void()> write_all = [&answer, &response] { response = answer.whole(); };
  co_await write_aside(answer.whole_size(), write_all);
  if (answer.has_more()) co_return co_await send_in_parts(std::move(response), answer);
  co_return co_await send(std::move(response), &answer);
}

Session::Task<bool> Session::stream(Answer& answer) {
  const ConnectionLimits& limits = io_.config.limits;
  const bool again = keeps_alive();
  std::string head = stream_head(answer, again);  // empty once sent
  TimePoint ping_at = now() + limits.first_byte_delay;
  std::string body;
  for (;;) {
    if (cut_) answer.fail(shutting_down());
    const TimePoint pending_since = std::exchange(pending_since_, {});
    const Taken taken = answer.take();
    if (answer.failed() && !head.empty()) {
      Response failed = answer.whole();
      co_return co_await send(std::move(failed), &answer);
    }
    std::string events;
    const std::function<void()> write_events = [&answer, &events] { events = answer.events(); };
    const std::function<void()> write_more = [&answer, &events] { events = answer.more(); };
    co_await write_aside(taken.size, write_events);
    while (answer.has_more() && !gone_) {
      const std::string chunk = exchange_.http_1_1 ? chunk_of(events, false) : std::exchange(events, {});
      if (!head.empty()) note_status(kStatusOk);
      const bool written = co_await write(head, chunk);
      head.clear();
      if (!written) gone_ = true;
      if (!gone_) co_await write_aside(kSliceSize, write_more);
    }
    if (gone_) co_return false;
    if (taken.more && pending_since != TimePoint{}) pending_since_ = pending_since;
    const bool has_events = pending_since != TimePoint{} && !events.empty();
    if (events.empty() && (probe_due_ || now() >= ping_at)) events = kSseComment;
    probe_due_ = false;
    if (!events.empty()) {
      body.clear();
      if (exchange_.http_1_1) {
        append_chunk(body, events);
        if (answer.finished()) body += kLastChunk;
      } else {
        body = std::move(events);
      }
      if (!head.empty()) note_status(kStatusOk);
      const bool written = co_await write(head, body);
      head.clear();
      ping_at = now() + limits.ping_interval;
      if (has_events && written) io_.services.metrics.event_to_socket_s.observe(seconds(now() - pending_since));
      if (!written) gone_ = true;
    }
    if (gone_) co_return false;
    if (answer.finished()) break;
    if (taken.more) {
      co_await give_way();
    } else {
      co_await wait_until(ping_at);
    }
    if (gone_) co_return false;
  }
  note_done(kStatusOk, &answer);
  const bool next = again && exchange_.http_1_1 && keeps_alive();
  co_return next;
}

std::string Session::stream_head(const Answer& answer, bool keep_alive) const {
  Response response;
  response.content_type = "text/event-stream; charset=utf-8";
  response.fields = answer.fields();
  response.fields.push_back({"Cache-Control", "no-cache"});
  response.fields.push_back({"X-Accel-Buffering", "no"});
  return response_head(response, head_facts(keep_alive && exchange_.http_1_1, std::nullopt));
}

bool Session::keeps_alive() const {
  const bool more_may_come = !read_closed_ || buffer_.size() != 0;
  return exchange_.keep_alive && more_may_come && !io_.serving.draining && !io_.stopping();
}

Session::Task<bool> Session::send(Response response, const Answer* answer) {
  const bool again = keeps_alive();
  if (answer != nullptr) {
    for (Field& field : answer->fields()) response.fields.push_back(std::move(field));
  }
  const std::string head = response_head(response, head_facts(again, response.body.size()));
  std::string_view head_view = head;
  if (probe_sent_) head_view.remove_prefix(kProbe.size());
  const std::string_view body = exchange_.method == "HEAD" ? std::string_view() : std::string_view(response.body);
  note_status(response.status);
  const std::optional<ReportedError> error = std::move(response.error);
  const bool written = co_await write(head_view, body);
  drop(std::move(response.body));
  probe_sent_ = false;
  if (!written) {
    gone_ = true;
    co_return false;
  }
  if (!is_probe(exchange_.path)) note_done(response.status, answer, error);
  co_return again;
}

// Writes both texts in one call.
Session::Task<bool> Session::write(std::string_view first, std::string_view second) {
  const TimePoint begun = now();
  if (exchange_.first_write == TimePoint{}) exchange_.first_write = begun;
  set_deadline(begun + (cut_ || io_.stopping() ? io_.config.limits.linger_timeout : io_.config.limits.write_timeout));
  const error_code error = co_await connection_.write(first, second);
  set_deadline(TimePoint::max());
  co_return !error;
}

void Session::note_done(int status, const Answer* answer, const std::optional<ReportedError>& error) const {
  if (io_.config.log_requests == tracing::LogRequests::kOff && !exchange_.trace.sampled()) return;
  std::optional<ReportedError> failure = error;
  if (!failure && answer != nullptr && answer->failed()) failure = reported(*answer->failure());
  std::optional<tracing::Generated> generated;
  if (answer != nullptr) generated = answer->generated();
  const tracing::EndedRequest ended{.id = exchange_.id,
                                    .method = exchange_.method,
                                    .path = exchange_.path,
                                    .status = status,
                                    .error = failure ? &*failure : nullptr,
                                    .generated = generated ? &*generated : nullptr,
                                    .key = exchange_.key,
                                    .client = connection_.peer(),
                                    .trace_id = exchange_.trace.trace_id,
                                    .labels = exchange_.labels,
                                    .content = exchange_.content,
                                    .arrival = exchange_.arrival,
                                    .first_write = exchange_.first_write,
                                    .end = now()};
  if (tracing::is_logged(io_.config.log_requests, ended)) log_info("request", tracing::fields_of(ended));
  if (exchange_.trace.sampled()) trace(status, std::move(generated));
}

void Session::trace(int status, std::optional<tracing::Generated> generated) const {
  const TimePoint end = now();
  // Read after `end`: a delay in between moves the span later, so that it does not begin before its parent span.
  const std::int64_t end_ns = unix_ns();
  const TimePoint begin = exchange_.arrival == TimePoint{} ? end : exchange_.arrival;
  tracing::RequestSpan span{.context = exchange_.trace,
                            .request_id = exchange_.id,
                            .method = log_safe(exchange_.method),
                            .path = log_safe(exchange_.path),
                            .route = route_of(exchange_.path),
                            .https = io_.tls != nullptr,
                            .status = status,
                            .start_ns = end_ns - (end - begin).count(),
                            .end_ns = end_ns,
                            .generated = std::move(generated)};
  io_.services.tracer->end(std::move(span));
}

}  // namespace quire::api::http
