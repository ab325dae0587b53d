#include "api/http/session.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "api/http/response_head.h"
#include "api/http/router.h"
#include "api/http/sse_writer.h"
#include "api/openai/errors.h"
#include "api/tracing/tracer.h"
#include "core/base/log.h"

namespace quire::api::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr int kSendBufferBytes = 128 * 1024;      // of the kernel: what a reader that stopped can make us hold
constexpr std::string_view kProbe = "HTTP/1.1 ";  // how every response begins

std::int64_t unix_ns() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count();
}
double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
// Beware: g++ 12 copies the bytes of a braced temporary inside a co_await expression and destroys it twice. Whatever
// owns memory is made by a function, or named, before it is awaited on.
Error shutting_down() { return {Code::kUnavailable, "the server is shutting down; the answer was cut short", "", 5}; }
Response line_is_full(Lane lane, int retry_after_s) {
  const char* waits =
      lane == Lane::kReading ? "too much text waits to be read" : "too many grammars wait to be compiled";
  return openai::error_response(Error{Code::kQueueFull, std::string(waits) + "; try again later", "", retry_after_s});
}

}  // namespace

// The client is watched for as long as it waits for an answer, and not while a request is read.
class Session::WatchScope {
 public:
  explicit WatchScope(Session& session) : session_(session) {
    ++session_.watch_id_;
    session_.probe_due_ = session_.read_closed_;
    session_.watch();
  }
  ~WatchScope() { ++session_.watch_id_; }
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;

 private:
  Session& session_;
};

Session::Session(IoThread& io, Socket socket, bridge::Gate::Holder place)
    : io_(io),
      connection_(std::move(socket)),
      place_(std::move(place)),
      buffer_(io.config.limits.head_bytes),
      news_timer_(*io.context),
      deadline_timer_(*io.context) {}

void Session::start() {
  if (io_.stopping()) return;
  connection_.open(kSendBufferBytes);
  io_.enter(*this);
  asio::co_spawn(*io_.context, run(), [self = shared_from_this()](const std::exception_ptr& failure) {
    if (failure) log_error("connection_failed", "id={}", log_safe(self->exchange_.id));
    self->closed_ = true;
    self->deadline_timer_.cancel();
    self->connection_.close();
    self->io_.leave(*self);
  });
}

void Session::cut() {
  cut_ = true;
  set_deadline(std::min(deadline_, now() + io_.config.limits.linger_timeout));  // also of a write that nobody reads
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
    spoken = !again;
  }
  if (refusal_) {
    exchange_.keep_alive = false;
    if (exchange_.id.empty()) exchange_.id = request_id_of({});
    if (exchange_.trace.trace_id.empty()) exchange_.trace = tracing::begin(io_.services.tracer, std::nullopt, {});
    Response refused = openai::error_response(*refusal_);
    co_await send(std::move(refused), nullptr);
    spoken = true;
  }
  // Closing while the client still sends would reset the connection, and take our last words away.
  const bool still_sending = refusal_.has_value() || buffer_.size() != 0;
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

Session::Task<bool> Session::respond() {
  Reply reply = route(std::move(request_), io_.services, io_.serving, io_.entrance.surface);
  if (auto* response = std::get_if<Response>(&reply)) {
    const bool again = co_await send(std::move(*response), nullptr);
    if (gone_ && !is_probe(exchange_.path)) note_done(openai::status_of(Code::kCancelled), nullptr);
    co_return again;
  }
  std::unique_ptr<Answer> pending = std::move(std::get<std::unique_ptr<Answer>>(reply));
  co_return co_await answer(std::move(pending));
}

Session::Task<bool> Session::answer(std::unique_ptr<Answer> owned) {
  Answer& answer = *owned;
  const IoThread::AnswerScope counted(io_);
  const WatchScope watched(*this);
  set_deadline(TimePoint::max());  // the engine decides how long it takes; writes have deadlines of their own
  buffer_.shrink_to_fit();         // so many connections wait, and for so long
  const std::optional<Lane> full = co_await work(answer);
  std::optional<Response> refused;
  if (full) {
    io_.services.metrics.admission_rejections.add();
    refused = line_is_full(*full, io_.services.queue.retry_after_s());
  } else if (!gone_) {
    const IoDoor door = io_door();
    while (answer.open(door) && !gone_) co_await give_way();
    if (!gone_) refused = answer.admit(door);
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
    note_done(openai::status_of(Code::kCancelled), &answer);
  }
  co_return again;
}

IoDoor Session::io_door() {
  return {io_.hub,
          [weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->take_news();
          },
          [context = io_.context](std::function<void()> job) { asio::post(*context, std::move(job)); }};
}

// The lane whose line is full, if one is. Also none when the client went away meanwhile: gone_ says so.
Session::Task<std::optional<Lane>> Session::work(Answer& answer) {
  std::optional<Lane> next = Lane::kReading;
  const std::function<void()> job = [&answer, &next] { next = answer.work(); };
  while (next && !gone_) {
    const Lane lane = *next;
    const bool taken = co_await run_on(lane, answer.work_bytes(), job);
    if (!taken) co_return lane;
  }
  co_return std::nullopt;
}

// False: the lane's line is full. Our caller's frame stays until the job has reported: what the job refers to is alive. The context
// is held, because the worker may still be inside post() when the server ends.
Session::Task<bool> Session::run_on(Lane lane, std::size_t bytes, std::function<void()> job) {
  work_done_ = false;
  const bool taken = io_.services.workers.post(lane, bytes, [this, job = std::move(job), context = io_.context] {
    job();
    asio::post(*context, [this] {
      work_done_ = true;
      wake();
    });
  });
  while (taken && !work_done_) co_await wait_until(TimePoint::max());
  awake_ = true;  // what woke us meanwhile may have been news
  co_return taken;
}

// A worker does it where it would take long here.
Session::Task<void> Session::write_aside(std::size_t size, std::function<void()> job) {
  bool done = false;
  if (size >= kTurnSize) done = co_await run_on(Lane::kWriting, 0, job);
  if (!done) job();
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
  const std::function<void()> write_all = [&answer, &response] { response = answer.whole(); };
  co_await write_aside(answer.whole_size(), write_all);
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
    const TimePoint news_since = std::exchange(news_since_, {});
    const Taken taken = answer.take();
    if (answer.failed() && !head.empty()) {
      Response failed = answer.whole();
      co_return co_await send(std::move(failed), &answer);
    }
    std::string events;
    const std::function<void()> write_events = [&answer, &events] { events = answer.events(); };
    co_await write_aside(taken.size, write_events);
    if (gone_) co_return false;
    if (taken.more && news_since != TimePoint{}) news_since_ = news_since;
    const bool news = news_since != TimePoint{} && !events.empty();
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
      if (!head.empty()) io_.services.metrics.http_responses[kStatusOk / 100].add();
      const bool written = co_await write(head, body);
      head.clear();
      ping_at = now() + limits.ping_interval;
      if (news && written) io_.services.metrics.event_to_socket_s.observe(seconds(now() - news_since));
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
  return response_head(response, {exchange_.id, exchange_.http_1_1, keep_alive && exchange_.http_1_1, std::nullopt});
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
  const std::string head = response_head(response, {exchange_.id, exchange_.http_1_1, again, response.body.size()});
  std::string_view head_view = head;
  if (probe_sent_) head_view.remove_prefix(kProbe.size());
  const std::string_view body = exchange_.method == "HEAD" ? std::string_view() : std::string_view(response.body);
  io_.services.metrics.http_responses[static_cast<std::size_t>(response.status) / 100].add();
  const bool written = co_await write(head_view, body);
  drop(std::move(response.body));
  probe_sent_ = false;
  if (!written) {
    gone_ = true;
    co_return false;
  }
  if (!is_probe(exchange_.path)) note_done(response.status, answer);
  co_return again;
}

// To give tens of megabytes back to the system takes milliseconds.
void Session::drop(std::string body) {
  constexpr std::size_t kLongBytes = std::size_t{1} << 20;
  if (body.size() < kLongBytes) return;
  auto held = std::make_shared<const std::string>(std::move(body));  // a job can be copied
  io_.services.workers.post(Lane::kWriting, 0, [held = std::move(held)] {});
}

// Both in one write.
Session::Task<bool> Session::write(std::string_view first, std::string_view second) {
  const TimePoint begun = now();
  if (exchange_.first_write == TimePoint{}) exchange_.first_write = begun;
  set_deadline(begun + (cut_ || io_.stopping() ? io_.config.limits.linger_timeout : io_.config.limits.write_timeout));
  const error_code error = co_await connection_.write(first, second);
  set_deadline(TimePoint::max());
  co_return !error;
}

void Session::note_done(int status, const Answer* answer) const {
  const Tally tally = answer != nullptr ? answer->tally() : Tally{};
  const auto since_arrival = [this](TimePoint then) {  // milliseconds; 0 for what never was
    const bool known = exchange_.arrival != TimePoint{} && then != TimePoint{};
    return known ? std::chrono::duration<double, std::milli>(then - exchange_.arrival).count() : 0.0;
  };
  log_info("request",
           "id={} method={} path={} status={} prompt_tokens={} completion_tokens={} first_ms={:.1f} ms={:.1f} "
           "trace_id={} labels={}",
           exchange_.id, log_safe(exchange_.method), log_safe(exchange_.path), status, tally.prompt_tokens,
           tally.completion_tokens, since_arrival(exchange_.first_write), since_arrival(now()),
           exchange_.trace.trace_id, exchange_.labels);
  if (exchange_.trace.sampled()) trace(status, answer);
}

void Session::trace(int status, const Answer* answer) const {
  const TimePoint end = now();
  const std::int64_t end_ns = unix_ns();  // behind it: whatever comes between, no span begins before its caller's
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
                            .generated = answer != nullptr ? answer->generated() : std::nullopt};
  io_.services.tracer->end(std::move(span));
}

// ---- waiting, and the client meanwhile

void Session::wake() {
  awake_ = true;
  news_timer_.cancel();
}

void Session::take_news() {
  if (news_since_ == TimePoint{}) news_since_ = io_.hub->news_since();
  wake();
}

Session::Task<void> Session::wait_until(TimePoint until) {
  if (!awake_) {
    news_timer_.expires_at(until);
    co_await news_timer_.async_wait(kToken);
  }
  awake_ = false;
}

// Waits for the end of what the client sends, a reset, or its next request.
void Session::watch() {
  const bool room = !read_closed_ && buffer_.size() < buffer_.max_size();
  auto then = [weak = weak_from_this(), id = watch_id_, room](error_code error) {
    const auto self = weak.lock();
    if (!self || self->closed_ || id != self->watch_id_ || error == asio::error::operation_aborted) return;
    if (error || !room) {
      self->gone_ = true;
      return self->wake();
    }
    self->on_readable();
  };
  if (room) {
    connection_.when_readable(std::move(then));
  } else {
    connection_.when_broken(std::move(then));
  }
}

void Session::on_readable() {
  error_code error;
  const std::size_t bytes = connection_.read_some(buffer_.prepare(buffer_.max_size() - buffer_.size()), error);
  buffer_.commit(bytes);
  if (error == asio::error::eof) {
    // It will send no more. Whether it still reads is not known yet: bytes that an answer begins with bring a reset
    // from a client that went away, and are the beginning of its answer to one that did not.
    read_closed_ = true;
    probe_due_ = true;
    wake();
  } else if (error && error != asio::error::would_block) {
    gone_ = true;
    return wake();
  }
  watch();
}

}  // namespace quire::api::http
