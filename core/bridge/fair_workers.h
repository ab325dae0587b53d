// Threads whose time is shared among callers: of those who have work waiting, the one goes next whose work has had the
// least of a processor. So a caller with much work delays nobody else by more than one job.
// Shape   a caller's jobs run in the order given. Of one caller at most threads - 1 run at once (one where there are
//         two), so that one thread is always free for somebody else, or soon is. `bytes` is what a job holds: the sum
//         over waiting and running jobs stays within max_bytes, of one caller within 3/4 of that; likewise with jobs.
//         An empty pool takes one job of any size.
// Time    a job's processor time is its caller's when it ends. A caller that comes back begins where the least of the
//         others is: nobody saves up, and nobody pays for having had the threads alone.
// Owner   app; the destructor runs what is queued, then joins. A job's own objects go before its bytes are given back.
// Thread  post(), drop(), figures(): any.
// Fails   post(): says who has too much there; the job was not taken. What a job throws goes to its `failed`.
// Source  start-time fair queueing (Goyal et al. 1996), with time as cost; ours: cost is known at the end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace quire::bridge {

class FairWorkers {
 public:
  struct Options {
    std::uint32_t num_threads = 2;
    std::size_t max_jobs = std::size_t{1} << 20;
    std::size_t max_bytes = ~std::size_t{0};
    int nice = 0;  // of its threads, as nice(1) has it
  };

  class Job {
   public:
    // Nobody waits for it any more. Looked at by what it runs; any thread.
    bool dropped() const { return dropped_.load(std::memory_order_relaxed); }

   private:
    friend class FairWorkers;
    std::string caller_;
    std::size_t bytes_ = 0;
    std::function<void(const Job&)> run_;
    std::function<void()> failed_;
    std::atomic<bool> dropped_{
        false};           // written by drop(), read by the one that runs it: relaxed, it publishes nothing
    bool begun_ = false;  // under the pool's mutex
  };
  using Ticket = std::shared_ptr<Job>;

  enum class Full : std::uint8_t { kNo, kCaller, kAll };
  struct Posted {
    Ticket ticket;  // null: not taken
    Full full = Full::kNo;
  };

  explicit FairWorkers(const Options& options);
  ~FairWorkers();

  // `run` must not outlive what it refers to; it reports its end itself. `failed` is called instead, where it throws.
  Posted post(std::string_view caller, std::size_t bytes, std::function<void(const Job&)> run,
              std::function<void()> failed);
  // True: it had not begun, and never will. False: it runs, or has ended, and reports that.
  bool drop(const Ticket& ticket);

  struct Figures {
    std::size_t jobs = 0;  // waiting and running
    std::size_t bytes = 0;
    double processor_s = 0.0;  // of all jobs that have ended
    std::uint64_t refused = 0;
  };
  Figures figures() const;

 private:
  struct Caller {
    std::deque<Ticket> waiting;
    std::size_t running = 0;
    std::size_t bytes = 0;
    double used_s = 0.0;
    std::uint64_t turn = 0;  // when it came or was served last: of equals the first one goes next
    std::size_t jobs() const { return waiting.size() + running; }
  };
  using Callers = std::map<std::string, Caller, std::less<>>;

  void work();
  Callers::iterator next();
  void leave(Callers::iterator at, std::size_t bytes);

  const Options options_;
  const std::size_t most_running_;  // of one caller
  mutable std::mutex mutex_;        // guards everything below
  std::condition_variable condition_;
  Callers callers_;  // that have jobs here
  Figures figures_;
  std::uint64_t turns_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace quire::bridge
