// Work for requests before they run, and for their answers, off the io threads: in lanes, so that long work holds up
// only its like.
// Shape   kQuick: bodies parsed and tokenised, grammars made, each for kQuickTime of a processor. Work that takes
//         longer ends there and begins again in kSlow, within kSlowTime; a large body begins there. kWriting: long
//         answers. In kQuick and kSlow a caller with much to do delays another by one job at most, and in kQuick by
//         kQuickTime.
// Owner   app; the destructor runs what is queued, then joins.
// Thread  post(), drop(), figures(): any.
// Fails   post(): says whose line is full; the work was not taken.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/base/allowance.h"
#include "core/bridge/fair_workers.h"
#include "core/bridge/worker_pool.h"

namespace quire::api {

enum class Lane : std::uint8_t { kQuick, kSlow, kWriting };

class Workers {
 public:
  static constexpr std::chrono::milliseconds kQuickTime{20};
  static constexpr std::chrono::milliseconds kSlowTime{10'000};
  static constexpr std::size_t kQuickBytes = std::size_t{128} << 10;  // a larger body begins in kSlow
  static constexpr std::size_t kMaxSlowJobs = 1024;
  static constexpr int kSlowNice = 10;

  // A lane's full line: the caller's own share, or all of it.
  using Full = bridge::FairWorkers::Full;
  using Posted = bridge::FairWorkers::Posted;

  struct Work {
    std::string caller;
    std::size_t bytes = 0;  // that it holds: its body
    std::function<void(Allowance&)> run;
    std::function<void(bool failed)> done;  // after run(), or where run() has thrown
  };

  Workers(std::uint32_t num_threads, std::size_t max_bytes)
      : quick_({.num_threads = std::max(num_threads, 2u), .max_bytes = max_bytes}),
        slow_({.num_threads = std::max(num_threads, 2u),
               .max_jobs = kMaxSlowJobs,
               .max_bytes = max_bytes,
               .nice = kSlowNice}),
        writing_(1, ~std::size_t{0}) {}

  // kWriting takes everything, and has no ticket.
  Posted post(Lane lane, Work work) {
    if (lane == Lane::kWriting) {
      writing_.post(0, [work = std::move(work)] { work.done(!completes(work, std::chrono::hours(24), {})); });
      return {};
    }
    const auto time = lane == Lane::kQuick ? kQuickTime : kSlowTime;
    auto failed = [done = work.done] { done(true); };
    const std::string caller = work.caller;
    const std::size_t bytes = work.bytes;
    auto run = [work = std::move(work), time](const bridge::FairWorkers::Job& job) {
      Allowance allowance(time, [&job] { return job.dropped(); });
      work.run(allowance);
      work.done(false);
    };
    return pool(lane).post(caller, bytes, std::move(run), std::move(failed));
  }

  // True: it had not begun, and will not; done() is not called. Else it ends soon, and calls it.
  bool drop(Lane lane, const bridge::FairWorkers::Ticket& ticket) { return pool(lane).drop(ticket); }

  bridge::FairWorkers::Figures figures(Lane lane) const {
    return lane == Lane::kQuick ? quick_.figures() : slow_.figures();
  }

 private:
  bridge::FairWorkers& pool(Lane lane) { return lane == Lane::kQuick ? quick_ : slow_; }

  static bool completes(const Work& work, std::chrono::nanoseconds time, std::function<bool()> is_dropped) try {
    Allowance allowance(time, std::move(is_dropped));
    work.run(allowance);
    return true;
  } catch (...) {  // bad_alloc most of all: it ends this work alone
    return false;
  }

  bridge::FairWorkers quick_;
  bridge::FairWorkers slow_;
  bridge::WorkerPool writing_;
};

}  // namespace quire::api
