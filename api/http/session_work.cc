// The part of a session that hands long work to workers: parsing of bodies, writing of answers.
#include <boost/asio/post.hpp>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "api/http/session.h"
#include "api/wire/errors.h"
#include "api/wire/response_head.h"
#include "api/wire/sse_writer.h"
#include "api/wire/writing.h"

namespace quire::api::http {

namespace asio = boost::asio;

namespace {

Response too_much_work(bool of_caller, int retry_after_s, ErrorShape shape) {
  const char* whose = of_caller ? "too many request bytes of this client are waiting to be parsed"
                                : "too many request bytes are waiting to be parsed";
  return error_response(Error{Code::kQueueFull, std::string(whose) + "; try again later", "", retry_after_s}, shape);
}

}  // namespace

// Returns a refusal; none if the work is done, or if the client has gone meanwhile.
Session::Task<std::optional<Response>> Session::work(Answer& answer) {
  std::optional<Lane> next = answer.work_bytes() > Workers::kQuickBytes ? Lane::kSlow : Lane::kQuick;
  while (next && !gone_) {
    const Lane lane = *next;
    const std::function<void(Allowance&)> job = [&answer, &next, lane](Allowance& allowance) {
      next = answer.work(lane, allowance);
    };
    const Ran ran = co_await run_on(lane, answer.work_bytes(), job);
    if (ran != Ran::kDone && !gone_) co_return not_run(ran);
  }
  co_return std::nullopt;
}

Response Session::not_run(Ran why) const {
  if (why == Ran::kDropped) return error_response(shutting_down(), exchange_.shape);
  if (why == Ran::kFailed) {
    return error_response(
        Error{Code::kInternal, "the server could not parse this request: it may be out of memory", "", 0},
        exchange_.shape);
  }
  io_.services.metrics.admission_rejections.add();
  return too_much_work(why == Ran::kCallerFull, io_.services.queue.retry_after_s(), exchange_.shape);
}

// Runs a job on a worker. The caller's coroutine frame stays until the job has reported or will never run, so that all
// it refers to outlives it. The report holds the io_context, because the worker may still be inside post() when the
// server ends. The job is dropped if the client has gone, or once the time to drain is over.
Session::Task<Session::Ran> Session::run_on(Lane lane, std::size_t bytes, std::function<void(Allowance&)> job) {
  work_done_ = false;
  work_failed_ = false;
  Workers::Work work{.caller = caller_, .bytes = bytes, .run = std::move(job), .done = {}};
  work.done = [this, context = io_.context](bool failed) {
    asio::post(*context, [this, failed] {
      work_done_ = true;
      work_failed_ = failed;
      wake();
    });
  };
  const Workers::Posted posted = io_.services.workers.post(lane, std::move(work));
  if (posted.full != Workers::Full::kNo) {
    co_return posted.full == Workers::Full::kCaller ? Ran::kCallerFull : Ran::kFull;
  }
  bool dropped = false;
  while (!work_done_) {
    co_await wait_until(TimePoint::max());
    if ((!gone_ && !cut_) || dropped || posted.ticket == nullptr) continue;
    dropped = true;
    if (io_.services.workers.drop(lane, posted.ticket)) break;
  }
  awake_ = true;  // a wake-up meanwhile may have been for an event
  if (dropped) co_return Ran::kDropped;
  if (work_failed_) io_.services.metrics.internal_errors.add();
  co_return work_failed_ ? Ran::kFailed : Ran::kDone;
}

// Runs the job here if it is short, else on a worker.
Session::Task<void> Session::write_aside(std::size_t size, std::function<void()> job) {
  if (size < kSliceSize) {
    job();
    co_return;
  }
  const std::function<void(Allowance&)> aside = [&job](Allowance&) { job(); };
  const Ran ran = co_await run_on(Lane::kWriting, 0, aside);
  if (ran == Ran::kFailed) throw std::bad_alloc();
}

// Takes budget for a part of an answer, until the client has read it. If the budget is used up, waits for other clients
// to read, at most write_timeout. False: there was none in time, the answer is cut short, or the client is gone.
Session::Task<bool> Session::take_room(concurrent::ByteBudget::Share& room) {
  static constexpr auto kPause = std::chrono::milliseconds(20);
  const TimePoint until = now() + io_.config.limits.write_timeout;
  while (io_.services.budgets.answers.take(room, caller_, kPartBytes) != concurrent::ByteBudget::Full::kNo) {
    if (now() >= until || cut_ || gone_) co_return false;
    co_await wait_until(now() + kPause);
  }
  co_return true;
}

// Sends a long answer, which is never in memory as a whole: the next part is made when the client has taken the last.
Session::Task<bool> Session::send_in_parts(Response response, Answer& answer) {
  const bool again = keeps_alive() && exchange_.http_1_1;
  for (Field& field : answer.fields()) response.fields.push_back(std::move(field));
  std::string head = response_head(response, head_facts(again, std::nullopt));
  if (probe_sent_) head.erase(0, kProbe.size());
  probe_sent_ = false;
  note_status(response.status);
  std::string part = std::move(response.body);
  const std::function<void()> write_next = [&answer, &part] { part = answer.more(); };
  for (bool first = true;; first = false) {
    if (!first) co_await write_aside(kSliceSize, write_next);
    const std::string body = exchange_.http_1_1 ? chunk_of(part, !answer.has_more()) : std::exchange(part, {});
    const bool written = gone_ || cut_ ? false : co_await write(head, body);
    head.clear();
    if (!written) {
      gone_ = true;
      co_return false;
    }
    if (!answer.has_more()) break;
  }
  note_done(response.status, &answer);
  co_return again;
}

// Frees a long body on a worker: returning tens of megabytes to the system takes milliseconds.
void Session::drop(std::string body) {
  constexpr std::size_t kLongBytes = std::size_t{1} << 20;
  if (body.size() < kLongBytes) return;
  auto held = std::make_shared<const std::string>(std::move(body));  // std::function must be copyable
  Workers::Work work;
  work.run = [held = std::move(held)](Allowance&) {};
  work.done = [](bool) {};
  io_.services.workers.post(Lane::kWriting, std::move(work));
}

}  // namespace quire::api::http
