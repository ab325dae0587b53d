// The values of --device.
// Thread  any; pure functions but takes_gpu(), which counts the GPUs.
#pragma once

#include <optional>
#include <string_view>

#include "app/config/config.h"

namespace quire::app {

// The number after "cuda:"; 0 for "cuda" without a number; empty for any other text.
std::optional<int> cuda_number(std::string_view text);
// True for "auto", "cpu", "cuda", "cuda:0" and so on, and for the undocumented "simulated" and "null".
bool is_device(std::string_view text);
// True if make_compute_device() will use a GPU, by name or by auto. Only looks: creates nothing.
bool takes_gpu(const Config& config) noexcept;

}  // namespace quire::app
