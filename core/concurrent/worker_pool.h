// Threads that run jobs in the order given, for work without limits per caller (fair_workers.h has those): writing long
// answers, and the loops of the io threads.
// Shape   a queue of jobs, bounded by the sum of their bytes, or of any other unit of size.
// Owner   the pool's user; the destructor runs the queued jobs, then joins.
// Thread  post(): any.
// Fails   post(): false if the queue is full; the job was not taken.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace quire::concurrent {

// Names the calling thread, for top -H and debuggers; at most 15 characters.
void name_thread(const char* name);

class WorkerPool {
 public:
  WorkerPool(std::uint32_t num_threads, std::size_t max_bytes);
  ~WorkerPool();

  // `bytes` is the memory that the job holds: the sum over waiting and running jobs is at most max_bytes, except that a
  // pool that holds no bytes takes one job of any size.
  bool post(std::size_t bytes, std::function<void()> job);

 private:
  struct Job {
    std::size_t bytes;
    std::function<void()> run;
  };
  void work();

  const std::size_t max_bytes_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable condition_;
  std::deque<Job> jobs_;
  std::size_t bytes_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace quire::concurrent
