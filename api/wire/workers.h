// Worker threads that relieve the io threads: they read requests before these run, and write long answers. Lanes keep
// long jobs from delaying short ones.
// Shape   kQuick: parses and tokenises bodies and compiles grammars, each job for kQuickTime of CPU time. A job that
//         takes longer is stopped and starts again in kSlow, within kSlowTime; a body above kQuickBytes starts there.
//         kWriting: writes long answers. In kQuick and kSlow a caller with many jobs delays another caller by at most
//         one job, in kQuick by at most kQuickTime.
// Owner   app; the destructor runs the queued jobs, then joins.
// Thread  post(), drop(), figures(): any.
// Fails   post(): Posted::full says which limit is reached, the caller's or the lane's; the job was not taken.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/base/allowance.h"
#include "core/concurrent/fair_workers.h"
#include "core/concurrent/worker_pool.h"

namespace quire::api {

enum class Lane : std::uint8_t { kQuick, kSlow, kWriting };

class Workers {
 public:
  static constexpr std::chrono::milliseconds kQuickTime{20};
  static constexpr std::chrono::milliseconds kSlowTime{10'000};
  static constexpr std::size_t kQuickBytes = std::size_t{128} << 10;  // a larger body starts in kSlow
  static constexpr std::size_t kMaxSlowJobs = 1024;
  static constexpr int kSlowNice = 10;

  // The limit of a lane that is reached: the caller's share of it, or all of it.
  using Full = concurrent::FairWorkers::Full;
  using Posted = concurrent::FairWorkers::Posted;

  struct Work {
    std::string caller;
    std::size_t bytes = 0;  // bytes that it holds: its body
    std::function<void(Allowance&)> run;
    std::function<void(bool failed)> done;  // called after run(); failed: run() threw
  };

  Workers(std::uint32_t num_threads, std::size_t max_bytes)
      : quick_({.num_threads = std::max(num_threads, 2u), .max_bytes = max_bytes}),
        slow_({.num_threads = std::max(num_threads, 2u),
               .max_jobs = kMaxSlowJobs,
               .max_bytes = max_bytes,
               .nice = kSlowNice}),
        writing_(1, ~std::size_t{0}) {}

  // kWriting accepts every job and returns no ticket.
  Posted post(Lane lane, Work work) {
    if (lane == Lane::kWriting) {
      writing_.post(0, [work = std::move(work)] { work.done(!completes(work, std::chrono::hours(24), {})); });
      return {};
    }
    const auto time = lane == Lane::kQuick ? kQuickTime : kSlowTime;
    auto failed = [done = work.done] { done(true); };
    const std::string caller = work.caller;
    const std::size_t bytes = work.bytes;
    auto run = [work = std::move(work), time](const concurrent::FairWorkers::Job& job) {
      Allowance allowance(time, [&job] { return job.dropped(); });
      work.run(allowance);
      work.done(false);
    };
    return pool(lane).post(caller, bytes, std::move(run), std::move(failed));
  }

  // True: the job had not started and never will; done() is not called. False: it ends soon, and calls done().
  bool drop(Lane lane, const concurrent::FairWorkers::Ticket& ticket) { return pool(lane).drop(ticket); }

  concurrent::FairWorkers::Figures figures(Lane lane) const {
    return lane == Lane::kQuick ? quick_.figures() : slow_.figures();
  }

 private:
  concurrent::FairWorkers& pool(Lane lane) { return lane == Lane::kQuick ? quick_ : slow_; }

  static bool completes(const Work& work, std::chrono::nanoseconds time, std::function<bool()> is_dropped) try {
    Allowance allowance(time, std::move(is_dropped));
    work.run(allowance);
    return true;
  } catch (...) {  // above all bad_alloc: it fails this job alone
    return false;
  }

  concurrent::FairWorkers quick_;
  concurrent::FairWorkers slow_;
  concurrent::WorkerPool writing_;
};

}  // namespace quire::api
