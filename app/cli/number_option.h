// The text of a command's own option as a number, read after parsing, so that all problems are reported together.
// Thread  main.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <type_traits>

#include "app/config/config.h"
#include "app/config/units.h"
#include "core/base/log.h"

namespace quire::app {

// `out` is left as it is if the text is empty.
template <typename T>
void convert(const std::string& flag, const std::string& text, std::type_identity_t<T> low,
             std::type_identity_t<T> high, std::optional<T>& out, Problems& problems) {
  if (text.empty()) return;
  out = number_in<T>(text, low, high);
  if (!out) problems.push_back(fmt::format("{} '{}': expected a number in {}..{}", flag, log_safe(text), low, high));
}

}  // namespace quire::app
