// How many cases a test of a law or a property tries.
#pragma once

#include <cstdint>

namespace quire::testing {

// An ordinary build tries all of them and judges the law. A sanitizer watches memory, which a twentieth of them touches
// as well, and takes ten times as long for each.
constexpr std::uint32_t cases(std::uint32_t count) {
#if defined(QUIRE_ADDRESS_SANITIZER) || defined(QUIRE_THREAD_SANITIZER)
  return (count + 19) / 20;
#else
  return count;
#endif
}

}  // namespace quire::testing
