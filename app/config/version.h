// The version in `quire --version`, the API and the metrics. A test checks that CMakeLists.txt has the same.
#pragma once

#include <string_view>

namespace quire::app {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace quire::app
