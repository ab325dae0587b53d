// The version, as `quire --version`, the API and the metrics say it. The same as the project's in CMakeLists.txt: a test compares.
#pragma once

#include <string_view>

namespace quire::app {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace quire::app
