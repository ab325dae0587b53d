#include "gpu/runtime/host_threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace quire::gpu {

void for_each_part(std::uint32_t count, const std::function<void(std::uint32_t)>& part) {
  std::atomic<std::uint32_t> next{0};
  const auto work = [&](std::exception_ptr& failed) {
    try {
      for (std::uint32_t i = next++; i < count; i = next++) part(i);
    } catch (...) {
      failed = std::current_exception();
      next = count;
    }
  };
  const std::uint32_t wanted = std::min(count, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::exception_ptr> failures(std::max(1u, wanted));
  {
    std::vector<std::jthread> others;
    for (std::uint32_t i = 1; i < wanted; ++i) others.emplace_back([&, i] { work(failures[i]); });
    work(failures[0]);
  }
  for (const std::exception_ptr& failed : failures) {
    if (failed) std::rethrow_exception(failed);
  }
}

}  // namespace quire::gpu
