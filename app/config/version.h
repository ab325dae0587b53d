// The version in `quire --version`, the API and the metrics. A test checks that CMakeLists.txt has the same.
#pragma once

#include <string>
#include <string_view>

namespace quire::app {

inline constexpr std::string_view kVersion = "0.1.0";

// "quire 0.1.0 (3c7a1f0b)": with the commit that it was configured from, if that was a git checkout.
std::string version_text();

}  // namespace quire::app
