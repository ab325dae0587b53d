// The half of a session that has workers do what takes long: bodies read, answers written.
#include <boost/asio/post.hpp>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "api/http/session.h"
#include "api/openai/errors.h"
#include "api/openai/generation/writing.h"

namespace quire::api::http {

namespace asio = boost::asio;

namespace {

Response too_much_work(bool of_caller, int retry_after_s, openai::ErrorShape shape) {
  const char* whose = of_caller ? "too much of this client's work waits to be read" : "too much work waits to be read";
  return openai::error_response(Error{Code::kQueueFull, std::string(whose) + "; try again later", "", retry_after_s},
                                shape);
}

}  // namespace

// A refusal, or none: the work is done, or the client went away meanwhile.
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
  if (why == Ran::kDropped) return openai::error_response(shutting_down(), exchange_.shape);
  if (why == Ran::kFailed) {
    return openai::error_response(
        Error{Code::kInternal, "the server could not read this request: it may have too little memory for it", "", 0},
        exchange_.shape);
  }
  io_.services.metrics.admission_rejections.add();
  return too_much_work(why == Ran::kCallerFull, io_.services.queue.retry_after_s(), exchange_.shape);
}

// Our caller's frame stays until the job has reported, or will never run: what the job refers to is alive. The
// context is held, because the worker may still be inside post() when the server ends. Nobody waits for the work of a
// client that has left, nor for any once the time to drain is over.
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
  awake_ = true;  // what woke us meanwhile may have been news
  if (dropped) co_return Ran::kDropped;
  if (work_failed_) io_.services.metrics.internal_errors.add();
  co_return work_failed_ ? Ran::kFailed : Ran::kDone;
}

// A worker does it where it would take long here.
Session::Task<void> Session::write_aside(std::size_t size, std::function<void()> job) {
  if (size < kTurnSize) {
    job();
    co_return;
  }
  const std::function<void(Allowance&)> aside = [&job](Allowance&) { job(); };
  const Ran ran = co_await run_on(Lane::kWriting, 0, aside);
  if (ran == Ran::kFailed) throw std::bad_alloc();
}

// For a part of an answer, until its client has read it: where all together hold too much, it waits for others to read.
Session::Task<bool> Session::take_room(bridge::ByteBudget::Share& room) {
  static constexpr auto kPause = std::chrono::milliseconds(20);
  const TimePoint until = now() + io_.config.limits.write_timeout;
  while (io_.services.budgets.answers.take(room, caller_, openai::kPartBytes) != bridge::ByteBudget::Full::kNo) {
    if (now() >= until || cut_ || gone_) co_return false;
    co_await wait_until(now() + kPause);
  }
  co_return true;
}

// To give tens of megabytes back to the system takes milliseconds.
void Session::drop(std::string body) {
  constexpr std::size_t kLongBytes = std::size_t{1} << 20;
  if (body.size() < kLongBytes) return;
  auto held = std::make_shared<const std::string>(std::move(body));  // a job can be copied
  Workers::Work work;
  work.run = [held = std::move(held)](Allowance&) {};
  work.done = [](bool) {};
  io_.services.workers.post(Lane::kWriting, std::move(work));
}

}  // namespace quire::api::http
