// How many cases a test of a law or a property tries.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace quire::testing {

#if defined(QUIRE_ADDRESS_SANITIZER) || defined(QUIRE_THREAD_SANITIZER)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// An ordinary build tries all of them and judges the law. A sanitizer watches memory, which a twentieth of them touches
// as well, and takes ten times as long for each.
constexpr std::uint32_t cases(std::uint32_t count) { return kSanitized ? (count + 19) / 20 : count; }

// All of a list of cases; for a sanitizer the first and the last.
template <typename T>
std::vector<T> sampled(std::initializer_list<T> all) {
  if (!kSanitized || all.size() < 3) return all;
  return {*all.begin(), *(all.end() - 1)};
}

}  // namespace quire::testing
