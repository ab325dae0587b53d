// Worker threads shared fairly among callers: of the callers with waiting jobs, the one whose jobs have used the least
// CPU time is served next. So a caller with many jobs delays another caller by at most one job.
// Shape   a caller's jobs start in the order given. At most num_threads - 1 jobs of one caller run at once (at least
//         one), so that a thread is free for other callers, or soon will be. `bytes` is the memory that a job holds:
//         the sum over waiting and running jobs is at most max_bytes, for one caller 3/4 of that; the number of jobs is
//         limited likewise. A pool that holds no bytes takes one job of any size.
// Time    a job's CPU time is charged to its caller when the job ends. A caller that comes back starts at the least
//         time of the callers that are there: idle time earns no credit, and time used while alone is not held against
//         it.
// Owner   app; the destructor runs the queued jobs, then joins. A job's closures are destroyed before its bytes are
//         returned.
// Thread  post(), drop(), figures(): any.
// Fails   post(): returns whose limit is reached; the job was not taken. If a job throws, its `failed` is called.
// Source  start-time fair queueing (Goyal et al. 1996), with CPU time as cost; ours: the cost is known only at the end.
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

namespace quire::concurrent {

class FairWorkers {
 public:
  struct Options {
    std::uint32_t num_threads = 2;
    std::size_t max_jobs = std::size_t{1} << 20;
    std::size_t max_bytes = ~std::size_t{0};
    int nice = 0;  // niceness of its threads, as in nice(1)
  };

  class Job {
   public:
    // True once the job is dropped: its result is not wanted any more. The running job checks it; any thread.
    bool dropped() const { return dropped_.load(std::memory_order_relaxed); }

   private:
    friend class FairWorkers;
    std::string caller_;
    std::size_t bytes_ = 0;
    std::function<void(const Job&)> run_;
    std::function<void()> failed_;
    std::atomic<bool> dropped_{false};  // written by drop(), read by the running job; relaxed: it publishes nothing
    bool begun_ = false;                // guarded by the pool's mutex
  };
  using Ticket = std::shared_ptr<Job>;

  enum class Full : std::uint8_t { kNo, kCaller, kAll };
  struct Posted {
    Ticket ticket;  // null: the job was not taken
    Full full = Full::kNo;
  };

  explicit FairWorkers(const Options& options);
  ~FairWorkers();

  // All that `run` refers to must outlive the job. `run` reports its end itself; if it throws, `failed` is called.
  Posted post(std::string_view caller, std::size_t bytes, std::function<void(const Job&)> run,
              std::function<void()> failed);
  // True: the job had not begun, and never will. False: it runs or has ended, and reports its end itself.
  bool drop(const Ticket& ticket);

  struct Figures {
    std::size_t jobs = 0;  // waiting and running
    std::size_t bytes = 0;
    double processor_s = 0.0;  // CPU time of all ended jobs
    std::uint64_t refused = 0;
  };
  Figures figures() const;

 private:
  struct Caller {
    std::deque<Ticket> waiting;
    std::size_t running = 0;
    std::size_t bytes = 0;
    double used_s = 0.0;
    std::uint64_t served_at = 0;  // value of served_ when it came or was last served; breaks ties, lowest first
    std::size_t jobs() const { return waiting.size() + running; }
  };
  using Callers = std::map<std::string, Caller, std::less<>>;

  void work();
  Callers::iterator next();
  void leave(Callers::iterator at, std::size_t bytes);

  const Options options_;
  const std::size_t most_running_;  // jobs of one caller
  mutable std::mutex mutex_;        // guards everything below
  std::condition_variable condition_;
  Callers callers_;  // callers with waiting or running jobs
  Figures figures_;
  std::uint64_t served_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace quire::concurrent
