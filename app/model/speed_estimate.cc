#include "app/model/speed_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/config/units.h"
#include "app/model/machine.h"
#include "app/model/read_bandwidth.h"

namespace quire::app {
namespace {

// Median over a time in which all of a small buffer is read often.
double read_bandwidth(std::uint32_t threads, std::uint64_t buffer_bytes) {
  constexpr std::uint64_t kAllBytes = std::uint64_t{2} << 30;
  const auto runs = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kAllBytes / buffer_bytes, 5, 101));
  std::vector<double> figures = measure_read_bandwidth(threads, buffer_bytes, runs);
  const auto middle = figures.begin() + static_cast<std::ptrdiff_t>(figures.size() / 2);
  std::ranges::nth_element(figures, middle);
  return *middle;
}

// Two digits, so that an estimate does not look measured.
std::string rounded(double number) {
  return number < 9.95 ? fmt::format("{:.1f}", number)
                       : fmt::format("{:.0f}", number < 99.5 ? number : std::round(number / 10) * 10);
}

}  // namespace

SpeedEstimate estimate_speed(std::uint64_t step_bytes, std::optional<std::uint64_t> free_bytes) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{256} << 20;  // far beyond most caches
  SpeedEstimate out;
  out.threads = usable_cpus();
  out.step_bytes = std::max<std::uint64_t>(step_bytes, 1);
  const std::uint64_t most = std::max(kLeast, std::min(kMost, free_bytes.value_or(kMost) / 4));
  out.bytes_per_s = read_bandwidth(out.threads, std::clamp(out.step_bytes, kLeast, most));
  return out;
}

std::string speed_text(const SpeedEstimate& speed, std::uint32_t context, std::uint64_t kv_bytes) {
  return fmt::format("about {} tokens/s for one stream on the CPU, {} at {} tokens of context",
                     rounded(speed.tokens_per_s(0)), rounded(speed.tokens_per_s(kv_bytes)), context);
}

std::string speed_source_text(const SpeedEstimate& speed) {
  return fmt::format("an estimate: {} of weights read per token at {:.1f} GB/s, measured now with {} threads",
                     bytes_text(speed.step_bytes), speed.bytes_per_s * 1e-9, speed.threads);
}

}  // namespace quire::app
