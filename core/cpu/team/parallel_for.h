// A fixed team of threads that shares the chunks of one job after another. The caller is worker 0 and works, too.
// Shape   a job is chunks [0, n). A free worker takes the next one, so a worker that lost its core delays only its
//         chunk. A job may have two parts: chunks of the second wait for all chunks of the first, which were taken
//         before them.
// Owner   CpuOps. Destruction joins the threads.
// Thread  for_chunks(): one caller at a time. The only place in core/cpu with threads and atomics.
// Waits   idle workers spin with pause for 50 us after the last job, then sleep on a futex; with more threads than
//         cores they sleep at once.
// Fails   StartError: the system starts no more threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace quire::cpu {

class Team {
 public:
  explicit Team(std::uint32_t num_threads);  // 0: as many as the process may run on
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::uint32_t size() const { return static_cast<std::uint32_t>(threads_.size()) + 1; }

  // Calls body(chunk, worker) once for every chunk in [0, num_chunks); returns when all are done. Never allocates. A
  // body must not call the team. A single chunk runs on the caller alone.
  template <typename Body>
  void for_chunks(std::uint32_t num_chunks, const Body& body) {
    if (num_chunks <= 1 || threads_.empty()) {
      for (std::uint32_t chunk = 0; chunk < num_chunks; ++chunk) body(chunk, 0);
      return;
    }
    share(num_chunks, &body, [](const void* context, std::uint32_t chunk, std::uint32_t worker) {
      (*static_cast<const Body*>(context))(chunk, worker);
    });
  }

  // Calls first(chunk, worker) for every chunk in [0, num_first) and, when all of them are done, then(chunk, worker)
  // for every chunk in [0, num_then): one job, one wake-up. A single first chunk runs on the caller before the others
  // are woken.
  template <typename First, typename Then>
  void for_chunks(std::uint32_t num_first, const First& first, std::uint32_t num_then, const Then& then) {
    if (num_first <= 1 || threads_.empty()) {
      for (std::uint32_t chunk = 0; chunk < num_first; ++chunk) first(chunk, 0);
      return for_chunks(num_then, then);
    }
    first_left_.store(num_first, std::memory_order_relaxed);
    for_chunks(num_first + num_then, [&](std::uint32_t chunk, std::uint32_t worker) {
      if (chunk < num_first) {
        first(chunk, worker);
        finish_first();
      } else {
        wait_for_zero(first_left_);
        then(chunk - num_first, worker);
      }
    });
  }

  // Number of jobs that other threads were woken for since the start: for tests and measurements.
  std::uint64_t num_jobs() const { return num_jobs_; }

 private:
  using Call = void (*)(const void* context, std::uint32_t chunk, std::uint32_t worker);

  void share(std::uint32_t num_chunks, const void* context, Call call);
  void finish_first();
  void wait_for_zero(const std::atomic<std::uint32_t>& count) const;
  bool take_and_run(std::uint32_t worker);
  void work(std::uint32_t worker);
  void stop();
  void wait_for_job(std::uint32_t seen_job);

  // The job, plain: written by the caller before the release store of ticket_; read by a worker only while it holds a
  // chunk (acquired through ticket_), and the caller does not return before every chunk is done.
  const void* context_ = nullptr;
  Call call_ = nullptr;
  std::uint32_t num_chunks_ = 0;
  std::uint64_t num_jobs_ = 0;  // caller only

  // Job number << 32 | chunks not yet taken. Written by the caller (release: publishes the job) and counted down by all
  // (acquire). The job number keeps a late worker's compare-exchange from touching the next job.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  // Chunks not yet done. Set by the caller, counted down by all (release), read by the caller (acquire: sees results).
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};
  // Chunks of a job's first part not yet done. Set by the caller (published by ticket_), counted down by the worker
  // that ran one (release), read by a worker that took one of the second part (acquire: sees what the first part
  // wrote).
  alignas(64) std::atomic<std::uint32_t> first_left_{0};
  // Number of the newest job, on which idle workers sleep. Written by the caller (release), read by workers (acquire).
  alignas(64) std::atomic<std::uint32_t> job_{0};
  // Written by the caller before job_ moves (release), read by workers after (acquire).
  std::atomic<bool> stop_{false};

  bool may_spin_ = false;
  std::vector<std::thread> threads_;
};

// Sets the calling thread's floating-point mode, which every result assumes: round to nearest even, subnormals kept.
void set_float_mode();

}  // namespace quire::cpu
