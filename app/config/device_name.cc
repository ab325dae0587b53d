#include "app/config/device_name.h"

#include <charconv>
#include <system_error>

#include "gpu/cuda/cuda_device.h"

namespace quire::app {
namespace {

constexpr std::string_view kCuda = "cuda";
constexpr int kMostDevices = 64;

}  // namespace

std::optional<int> cuda_number(std::string_view text) {
  if (!text.starts_with(kCuda)) return std::nullopt;
  text.remove_prefix(kCuda.size());
  if (text.empty()) return 0;
  int number = -1;
  const char* end = text.data() + text.size();
  const bool whole = text[0] == ':' && text.size() > 1 && text[1] != '-' &&
                     std::from_chars(text.data() + 1, end, number) == std::from_chars_result{end, std::errc()};
  return whole && number < kMostDevices ? std::optional(number) : std::nullopt;
}

bool takes_gpu(const Config& config) noexcept {
  if (config.device != "auto") return cuda_number(config.device).has_value();
  return config.tensor_parallel_size > 1 || gpu::num_cuda_devices() > 0;
}

bool is_device(std::string_view text) {
  return text == "auto" || text == "cpu" || text == "simulated" || text == "null" || cuda_number(text).has_value();
}

}  // namespace quire::app
