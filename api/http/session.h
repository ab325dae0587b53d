// One connection: reads requests, has them answered, writes the answers, one after the other.
// Owner   its own coroutine, which holds it until the connection is closed; callbacks of others hold it weakly.
// Thread  its io thread.
// Fails   never outwards: every fault is a reply, or a close where nobody is left to reply to.
// Source  RFC 9112, and TLS below it where the server has a certificate. Ours: a client that half-closes while it waits
//         gets its answer; one that went away is found out by writing bytes that are right in either case (see
//         probe()).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/body_reader.h"
#include "api/http/exchange.h"
#include "api/http/framing_guard.h"
#include "api/http/io_thread.h"
#include "api/http/response_head.h"
#include "api/http/transport/connection.h"
#include "api/openai/errors.h"
#include "api/tracing/request_span.h"
#include "core/base/allowance.h"
#include "core/bridge/byte_budget.h"
#include "core/bridge/gate.h"

namespace quire::api::http {

class Session : public std::enable_shared_from_this<Session> {
 public:
  template <typename T>
  using Task = boost::asio::awaitable<T>;

  Session(IoThread& io, Socket socket, bridge::Gate::Holder place);

  void start();  // once; on its io thread
  void cut();    // an answer under way ends with an error
  void stop();   // and the connection is closed, within the linger time

 private:
  // What is remembered of the request while it is answered.
  struct Exchange {
    std::string method;
    std::string path;
    std::string id;
    std::string labels;  // key=value,key=value …, for the log
    openai::ErrorShape shape = openai::ErrorShape::kOpenAi;
    bool http_1_1 = true;
    bool keep_alive = false;
    TimePoint arrival;
    TimePoint first_write;
    int status = 0;    // of the answer, once its head is written
    std::string cors;  // lines of its head for web pages of other origins
    tracing::Context trace;
  };
  class WatchScope;

  Task<void> run();
  Task<bool> greet();             // false: no connection, or a refusal_
  Task<bool> read_request();      // false: no request; refusal_ says whether a reply is due
  Task<std::size_t> read_head();  // bytes of the head, 0: as above
  Task<bool> read_body();
  Task<bool> discard_body();  // true: all of it
  Task<bool> read_more();
  void read_fields(const BodyReader& reader);
  std::optional<Response> answer_to_browser(const BodyReader& reader);
  Task<bool> respond();  // false: the connection ends
  Task<bool> reply();    // may throw
  Task<bool> refuse_early();
  Task<bool> answer_fault();
  void note_status(int status);  // its head is written
  void note_end() const;         // all of it is
  HeadFacts head_facts(bool keep_alive, std::optional<std::size_t> body_bytes) const;
  Task<bool> answer(std::unique_ptr<Answer> answer);
  IoHandle io_door();
  Task<std::optional<Response>> work(Answer& answer);  // a refusal
  enum class Ran : std::uint8_t { kDone, kFailed, kDropped, kCallerFull, kFull };
  Task<Ran> run_on(Lane lane, std::size_t bytes, std::function<void(Allowance&)> job);
  Response not_run(Ran why) const;
  static Error shutting_down();
  Task<void> write_aside(std::size_t size, std::function<void()> job);
  Task<void> give_way();  // others on this thread have their turn
  void drop(std::string body);
  Task<bool> stream(Answer& answer);
  Task<bool> collect(Answer& answer);
  Task<bool> send(Response response, const Answer* answer);
  Task<bool> take_room(bridge::ByteBudget::Share& room);
  Task<bool> send_in_parts(Response response, Answer& answer);
  Task<bool> write(std::string_view first, std::string_view second);
  Task<void> linger();
  Task<void> wait_until(TimePoint until);  // or until wake()

  bool refuse(const Refusal& refusal);  // false, for co_return
  bool refuse(Fault fault, const char* message);
  FramingLimits framing_limits() const;
  bool keeps_alive() const;
  std::string stream_head(const Answer& answer, bool keep_alive) const;
  void wake();
  void take_news();
  void watch();
  void on_readable();
  static TimePoint now() { return std::chrono::steady_clock::now(); }
  void set_deadline(TimePoint deadline);
  void arm_deadline();
  void note_done(int status, const Answer* answer) const;  // for the log, and for its trace
  void trace(int status, const Answer* answer) const;

  IoThread& io_;
  Connection connection_;
  bridge::Gate::Holder place_;
  boost::beast::flat_buffer buffer_;  // read and not yet parsed; also what comes while an answer is under way
  Request request_;                   // while it is read
  std::unique_ptr<BodyReader> reader_;
  std::optional<Response> early_;  // the answer of a request whose body was not read
  bool unread_ = false;            // the client may still send that
  std::string caller_;             // whose budgets the request is charged to: its key, or where it comes from
  bridge::ByteBudget::Share body_share_;
  Exchange exchange_;
  std::optional<Refusal> refusal_;

  boost::asio::steady_timer news_timer_;
  bool awake_ = false;      // there is news for wait_until()
  TimePoint news_since_{};  // the engine's first of those not written yet; zero: there is none
  bool work_done_ = false;
  bool work_failed_ = false;

  boost::asio::steady_timer deadline_timer_;
  TimePoint deadline_ = TimePoint::max();
  TimePoint deadline_armed_ = TimePoint::max();
  bool expired_ = false;  // the deadline passed: reads and writes were cancelled

  bool watched_ = false;          // somebody wants to know of the client
  bool awaits_readable_ = false;  // one wait of each kind is under way at most, whoever began it
  bool awaits_broken_ = false;
  bool read_closed_ = false;  // the client will send no more
  bool gone_ = false;         // the client cannot be reached
  bool probe_due_ = false;    // it closed its side: is it still there?
  bool probe_sent_ = false;   // the first bytes of the status line are out
  bool reading_ = false;      // waiting for a request
  bool cut_ = false;
  bool closed_ = false;
};

}  // namespace quire::api::http
