// Threads for work that must not hold up an io thread: reading bodies, tokenising, templates, grammars.
// Shape   a bounded line of jobs, in bytes of input or whatever else their sizes are counted in; jobs run in the order given.
// Owner   app; the destructor runs what is queued, then joins.
// Thread  post(): any.
// Fails   post(): false when the line is full; the job was not taken.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace quire::bridge {

// The calling thread, for top -H and debuggers; at most 15 characters.
void name_thread(const char* name);

class WorkerPool {
 public:
  WorkerPool(std::uint32_t num_threads, std::size_t max_bytes);
  ~WorkerPool();

  // `bytes` is what the job holds (its body): the sum over waiting and running jobs stays at or below max_bytes, except
  // that an idle pool takes any single job.
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

}  // namespace quire::bridge
