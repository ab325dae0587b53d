#include "app/model/read_bandwidth.h"

#include <barrier>
#include <chrono>
#include <cstddef>
#include <thread>

namespace quire::app {

std::vector<double> measure_read_bandwidth(std::uint32_t num_threads, std::uint64_t buffer_bytes, std::uint32_t runs) {
  const std::size_t part = buffer_bytes / sizeof(std::uint64_t) / num_threads;
  std::vector<std::uint64_t> buffer(part * num_threads, 1);  // written, so that the pages exist
  std::vector<double> figures(runs);
  std::vector<std::uint64_t> sums(num_threads * 8);  // one cache line each
  std::barrier together(num_threads);
  const auto work = [&](std::uint32_t thread) {
    const std::uint64_t* from = buffer.data() + part * thread;
    for (double& figure : figures) {
      together.arrive_and_wait();
      const auto start = std::chrono::steady_clock::now();
      std::uint64_t lanes[16] = {};
      for (std::size_t i = 0; i + 16 <= part; i += 16) {
        for (std::size_t lane = 0; lane < 16; ++lane) lanes[lane] += from[i + lane];
      }
      // Stored, so that the loads are not optimised away.
      for (const std::uint64_t lane : lanes) sums[thread * 8] += lane;
      together.arrive_and_wait();
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      if (thread == 0) figure = static_cast<double>(part * num_threads * sizeof(std::uint64_t)) / seconds.count();
    }
  };
  std::vector<std::jthread> threads;
  for (std::uint32_t thread = 1; thread < num_threads; ++thread) threads.emplace_back(work, thread);
  work(0);
  threads.clear();
  return figures;
}

}  // namespace quire::app
