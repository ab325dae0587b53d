// One connection: reads requests, has them answered, and writes the answers, one after the other.
// Owner   its own coroutine, until the connection is closed; callbacks elsewhere hold weak references.
// Thread  its io thread.
// Fails   never outwards: every fault is answered, or closes the connection if the client is gone.
// Source  RFC 9112, over TLS if the server has a certificate. Ours: a client that half-closes while it waits still gets
//         its answer. A client that is gone is detected by writing the first bytes of the answer early (on_readable(),
//         kProbe): these bytes are right in either case.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/body_reader.h"
#include "api/http/framing_guard.h"
#include "api/http/io_thread.h"
#include "api/http/transport/connection.h"
#include "api/wire/errors.h"
#include "api/wire/exchange.h"
#include "api/wire/request_span.h"
#include "api/wire/response_head.h"
#include "core/base/allowance.h"
#include "core/concurrent/byte_budget.h"
#include "core/concurrent/gate.h"

namespace quire::api::http {

class Session : public std::enable_shared_from_this<Session> {
 public:
  template <typename T>
  using Task = boost::asio::awaitable<T>;

  Session(IoThread& io, Socket socket, concurrent::Gate::Holder place);

  void start();  // once; on its io thread
  void cut();    // ends an answer under way with an error
  void stop();   // closes the connection: at once while a request is awaited or read, else within linger_timeout

 private:
  // Data of the current request that its answer, the log and the trace need.
  struct Exchange {
    std::string method;
    std::string path;
    std::string id;
    std::string labels;   // key=value,key=value …, for the log
    std::string key;      // name of its API key; empty: the server has no keys
    std::string content;  // first bytes of the body, if the log has them
    ErrorShape shape = ErrorShape::kOpenAi;
    bool http_1_1 = true;
    bool keep_alive = false;
    TimePoint arrival;
    TimePoint first_write;
    int status = 0;    // status of the answer, once its head is written
    std::string cors;  // CORS lines for the head of the answer
    tracing::Context trace;
  };
  class WatchScope;
  static constexpr std::string_view kProbe = "HTTP/1.1 ";  // the first bytes of every response

  Task<void> run();
  Task<bool> greet();             // TLS handshake; false: it failed, and a reply is due if refusal_ is set
  Task<bool> read_request();      // false: there is none, and a reply is due if refusal_ is set
  Task<std::size_t> read_head();  // size in bytes; 0: there is none, as above
  Task<bool> read_body();
  Task<bool> discard_body();  // true: the body was read to its end
  Task<bool> read_more();
  void read_fields(const BodyReader& reader);
  std::optional<Response> answer_to_browser(const BodyReader& reader);
  Task<bool> respond();  // false: the connection ends
  Task<bool> reply();    // may throw
  Task<bool> refuse_early();
  Task<bool> answer_fault();
  void note_status(int status);  // the head of the answer is being written
  void note_end() const;         // the answer has ended
  HeadFacts head_facts(bool keep_alive, std::optional<std::size_t> body_bytes) const;
  Task<bool> answer(std::unique_ptr<Answer> answer);
  IoHandle make_io_handle();
  Task<std::optional<Response>> work(Answer& answer);  // none: there is no refusal
  enum class Ran : std::uint8_t { kDone, kFailed, kDropped, kCallerFull, kFull };
  Task<Ran> run_on(Lane lane, std::size_t bytes, std::function<void(Allowance&)> job);
  Response not_run(Ran why) const;
  static Error shutting_down();
  Task<void> write_aside(std::size_t size, std::function<void()> job);
  Task<void> give_way();  // ends the time slice: other handlers of the io thread run
  void drop(std::string body);
  Task<bool> stream(Answer& answer);
  Task<bool> collect(Answer& answer);
  Task<bool> send(Response response, const Answer* answer);
  Task<bool> take_room(concurrent::ByteBudget::Share& room);
  Task<bool> send_in_parts(Response response, Answer& answer);
  Task<bool> write(std::string_view first, std::string_view second);
  Task<void> linger();
  Task<void> wait_until(TimePoint until);  // or until wake()

  bool refuse(const Refusal& refusal);  // returns false, for co_return
  bool refuse(Fault fault, const char* message);
  FramingLimits framing_limits() const;
  bool keeps_alive() const;
  std::string stream_head(const Answer& answer, bool keep_alive) const;
  void wake();
  void take_events();
  void watch();
  void on_readable();
  static TimePoint now() { return std::chrono::steady_clock::now(); }
  void set_deadline(TimePoint deadline);
  void arm_deadline();
  // Writes the log line and the trace. error: the one that was answered, unless it is the answer's own.
  void note_done(int status, const Answer* answer, const std::optional<ReportedError>& error = std::nullopt) const;
  void trace(int status, std::optional<tracing::Generated> generated) const;

  IoThread& io_;
  Connection connection_;
  concurrent::Gate::Holder place_;
  boost::beast::flat_buffer buffer_;  // bytes read and not yet parsed, also those that arrive during an answer
  Request request_;                   // while it is read
  std::unique_ptr<BodyReader> reader_;
  std::optional<Response> early_;  // the answer to a request whose body is not read, or not to its end
  bool unread_ = false;            // the client may still be sending that body
  std::string caller_;             // name that budgets charge: the API key's, or the client's address
  concurrent::ByteBudget::Share body_share_;
  Exchange exchange_;
  std::optional<Refusal> refusal_;

  boost::asio::steady_timer events_timer_;
  bool awake_ = false;         // wait_until() returns at once: there may be events
  TimePoint pending_since_{};  // time of the engine's oldest event that is not written yet; zero: there is none
  bool work_done_ = false;
  bool work_failed_ = false;

  boost::asio::steady_timer deadline_timer_;
  TimePoint deadline_ = TimePoint::max();
  TimePoint deadline_armed_ = TimePoint::max();
  bool expired_ = false;  // the deadline passed: reads and writes were cancelled

  bool watched_ = false;          // an answer is under way, so the client is watched
  bool awaits_readable_ = false;  // at most one wait of each kind is under way, even over several requests
  bool awaits_broken_ = false;
  bool read_closed_ = false;  // the client will send no more
  bool gone_ = false;         // the client cannot be reached
  bool probe_due_ = false;    // the client closed its side: writing will show if it still reads
  bool probe_sent_ = false;   // the first bytes of the status line were written
  bool reading_ = false;      // a request is awaited or being read
  bool cut_ = false;
  bool closed_ = false;
};

}  // namespace quire::api::http
