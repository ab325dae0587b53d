#include "core/cpu/team/parallel_for.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>

#include "core/base/start_error.h"

namespace quire::cpu {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);  // longer than the gap between two ops of a step
constexpr std::uint64_t kChunkMask = 0xffffffffu;
constexpr unsigned kDefaultMode = 0x1f80;  // all exceptions masked, round to nearest even, no FTZ, no DAZ

// Spins until done() is true or the time is over; returns done()'s last answer.
template <typename Done>
bool spin_until(const Done& done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      _mm_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

}  // namespace

void set_float_mode() { _mm_setcsr(kDefaultMode); }

Team::Team(std::uint32_t num_threads) {
  const std::uint32_t num_cores = std::max(1u, std::thread::hardware_concurrency());  // honours the affinity mask
  if (num_threads == 0) num_threads = num_cores;
  may_spin_ = num_threads <= num_cores;
  threads_.reserve(num_threads - 1);
  try {
    for (std::uint32_t worker = 1; worker < num_threads; ++worker)
      threads_.emplace_back([this, worker] { work(worker); });
  } catch (const std::system_error& error) {
    const std::size_t num_started = threads_.size() + 1;
    stop();
    throw StartError("cannot start " + std::to_string(num_threads) + " compute threads (got " +
                     std::to_string(num_started) + "): " + error.what() + "; lower --threads");
  }
}

Team::~Team() { stop(); }

void Team::stop() {
  stop_.store(true, std::memory_order_release);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::share(std::uint32_t num_chunks, const void* context, Call call) {
  ++num_jobs_;
  context_ = context;
  call_ = call;
  num_chunks_ = num_chunks;
  unfinished_.store(num_chunks, std::memory_order_relaxed);
  const std::uint32_t job = job_.load(std::memory_order_relaxed) + 1;
  ticket_.store(std::uint64_t{job} << 32 | num_chunks, std::memory_order_release);
  // Not release: notify_all() must not look for sleepers before the store is visible.
  job_.store(job, std::memory_order_seq_cst);
  job_.notify_all();

  while (take_and_run(0)) {
  }
  wait_for_zero(unfinished_);
}

void Team::finish_first() {
  if (first_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) first_left_.notify_all();
}

// Also ends for the first part of a job: a worker that runs one of its chunks waits for nothing.
void Team::wait_for_zero(const std::atomic<std::uint32_t>& count) const {
  const auto is_zero = [&] { return count.load(std::memory_order_acquire) == 0; };
  if (is_zero() || (may_spin_ && spin_until(is_zero))) return;
  for (std::uint32_t left; (left = count.load(std::memory_order_acquire)) != 0;) {
    count.wait(left, std::memory_order_acquire);
  }
}

bool Team::take_and_run(std::uint32_t worker) {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  do {
    if ((ticket & kChunkMask) == 0) return false;
  } while (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acquire, std::memory_order_acquire));
  const auto left = static_cast<std::uint32_t>(ticket & kChunkMask);
  call_(context_, num_chunks_ - left, worker);
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
  return true;
}

void Team::work(std::uint32_t worker) {
  set_float_mode();
  for (std::uint32_t seen = 0;;) {
    wait_for_job(seen);
    seen = job_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_acquire)) return;
    while (take_and_run(worker)) {
    }
  }
}

void Team::wait_for_job(std::uint32_t seen_job) {
  const auto moved = [&] { return job_.load(std::memory_order_acquire) != seen_job; };
  if (may_spin_ && spin_until(moved)) return;
  while (!moved()) job_.wait(seen_job, std::memory_order_acquire);
}

}  // namespace quire::cpu
