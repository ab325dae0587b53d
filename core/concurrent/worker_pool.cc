#include "core/concurrent/worker_pool.h"

#include <pthread.h>

#include <utility>

#include "core/base/check.h"

namespace quire::concurrent {

void name_thread(const char* name) { CHECK_EQ(pthread_setname_np(pthread_self(), name), 0); }

WorkerPool::WorkerPool(std::uint32_t num_threads, std::size_t max_bytes) : max_bytes_(max_bytes) {
  threads_.reserve(num_threads);
  for (std::uint32_t i = 0; i < num_threads; ++i) threads_.emplace_back([this] { work(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  condition_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::post(std::size_t bytes, std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ != 0 && bytes_ + bytes > max_bytes_) return false;
    bytes_ += bytes;
    jobs_.push_back({bytes, std::move(job)});
  }
  condition_.notify_one();
  return true;
}

void WorkerPool::work() {
  name_thread("quire-worker");
  std::unique_lock lock(mutex_);
  for (;;) {
    condition_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;  // stopping, and all jobs are done
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.run();
    job.run = nullptr;  // its closure is destroyed before its bytes are returned
    lock.lock();
    bytes_ -= job.bytes;
  }
}

}  // namespace quire::concurrent
