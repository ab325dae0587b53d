#include "tools/common/mix.h"

#include <algorithm>

namespace quire::tools {

void sort_by_arrival(std::vector<Job>& jobs) {
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const Job& a, const Job& b) { return a.arrival_step < b.arrival_step; });
}

std::uint32_t longest(std::span<const Job> jobs) {
  std::uint32_t out = 0;
  for (const Job& job : jobs) out = std::max(out, job.final_length());
  return out;
}

}  // namespace quire::tools
