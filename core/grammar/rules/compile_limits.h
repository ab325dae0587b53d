// The limits of compiling one grammar.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace quire::grammar {

struct CompileLimits {
  std::uint32_t max_states = 200'000;
  std::chrono::milliseconds max_time{2'000};
  std::function<bool()> is_dropped{};  // true: the client has left, and compile() ends with kTimeout
};

}  // namespace quire::grammar
