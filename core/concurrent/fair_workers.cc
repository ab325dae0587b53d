#include "core/concurrent/fair_workers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "core/base/processor_time.h"
#include "core/concurrent/worker_pool.h"

namespace quire::concurrent {
namespace {

// One caller's part of a limit: 3/4.
std::size_t share_of(std::size_t limit) { return limit - limit / 4; }

}  // namespace

FairWorkers::FairWorkers(const Options& options)
    : options_(options), most_running_(std::max<std::size_t>(options.num_threads, 2) - 1) {
  threads_.reserve(options.num_threads);
  for (std::uint32_t i = 0; i < options.num_threads; ++i) threads_.emplace_back([this] { work(); });
}

FairWorkers::~FairWorkers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  condition_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

FairWorkers::Posted FairWorkers::post(std::string_view caller, std::size_t bytes, std::function<void(const Job&)> run,
                                      std::function<void()> failed) {
  auto job = std::make_shared<Job>();
  job->caller_ = caller;
  job->bytes_ = bytes;
  job->run_ = std::move(run);
  job->failed_ = std::move(failed);
  {
    const std::lock_guard lock(mutex_);
    auto at = callers_.find(caller);
    const bool is_new = at == callers_.end();
    const std::size_t own_jobs = is_new ? 0 : at->second.jobs();
    const std::size_t own_bytes = is_new ? 0 : at->second.bytes;
    const auto fits = [](std::size_t held, std::size_t more, std::size_t most) {
      return held == 0 || (held <= most && more <= most - held);
    };
    Full full = Full::kNo;
    if (!fits(figures_.bytes, bytes, options_.max_bytes) || figures_.jobs >= options_.max_jobs) full = Full::kAll;
    if (!fits(own_bytes, bytes, share_of(options_.max_bytes)) || own_jobs >= share_of(options_.max_jobs)) {
      full = Full::kCaller;
    }
    if (full != Full::kNo) {
      ++figures_.refused;
      return {nullptr, full};
    }
    if (is_new) {
      double least = 0.0;
      for (auto one = callers_.begin(); one != callers_.end(); ++one) {
        least = one == callers_.begin() ? one->second.used_s : std::min(least, one->second.used_s);
      }
      at = callers_.try_emplace(std::string(caller)).first;
      at->second.used_s = least;
      at->second.served_at = ++served_;
    }
    at->second.bytes += bytes;
    at->second.waiting.push_back(job);
    figures_.bytes += bytes;
    ++figures_.jobs;
  }
  condition_.notify_one();
  return {std::move(job), Full::kNo};
}

bool FairWorkers::drop(const Ticket& ticket) {
  ticket->dropped_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (ticket->begun_) return false;
  const auto at = callers_.find(ticket->caller_);
  std::erase(at->second.waiting, ticket);
  leave(at, ticket->bytes_);
  return true;
}

FairWorkers::Figures FairWorkers::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

// The caller to serve next, among those that have a waiting job and may run another; end(): none.
FairWorkers::Callers::iterator FairWorkers::next() {
  auto best = callers_.end();
  for (auto at = callers_.begin(); at != callers_.end(); ++at) {
    const Caller& one = at->second;
    if (one.waiting.empty() || one.running >= most_running_) continue;
    const auto key = [](const Caller& caller) { return std::pair(caller.used_s, caller.served_at); };
    if (best == callers_.end() || key(one) < key(best->second)) best = at;
  }
  return best;
}

void FairWorkers::leave(Callers::iterator at, std::size_t bytes) {
  at->second.bytes -= bytes;
  figures_.bytes -= bytes;
  --figures_.jobs;
  if (at->second.jobs() == 0) callers_.erase(at);
}

void FairWorkers::work() {
  name_thread("quire-worker");
  if (options_.nice != 0) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), options_.nice);
  std::unique_lock lock(mutex_);
  for (;;) {
    auto at = callers_.end();
    condition_.wait(lock, [&] { return (at = next()) != callers_.end() || (stopping_ && callers_.empty()); });
    if (at == callers_.end()) return;  // stopping, and all jobs are done
    Ticket job = std::move(at->second.waiting.front());
    at->second.waiting.pop_front();
    job->begun_ = true;
    ++at->second.running;
    at->second.served_at = ++served_;
    lock.unlock();
    const std::chrono::nanoseconds begun = processor_time();
    try {
      job->run_(*job);
    } catch (...) {  // above all bad_alloc: it fails this job alone
      job->failed_();
    }
    job->run_ = nullptr;
    job->failed_ = nullptr;
    const double took_s = std::chrono::duration<double>(processor_time() - begun).count();
    lock.lock();
    at = callers_.find(job->caller_);
    at->second.used_s += took_s;
    figures_.processor_s += took_s;
    --at->second.running;
    leave(at, job->bytes_);
    job.reset();
    // The caller may run another job now. While stopping, every thread checks if all jobs are done.
    if (stopping_) {
      condition_.notify_all();
    } else {
      condition_.notify_one();
    }
  }
}

}  // namespace quire::concurrent
