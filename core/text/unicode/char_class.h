// A set of characters: the content of [ and ] in a pattern.
// Shape   one bit for each character of the basic plane (8 KiB), ascending ranges for the planes above. Lookup takes
//         constant time in the basic plane, bisection above.
// Thread  any, once built.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/text/unicode/unicode.h"

namespace quire::text {

class CharClass {
 public:
  explicit CharClass(std::vector<CodeRange> ranges);

  bool contains(char32_t code) const {
    if (code < kPlaneSize) return (plane_[code / 64] >> (code % 64) & 1) != 0;
    return contains_above(code);
  }

 private:
  static constexpr char32_t kPlaneSize = 0x10000;
  bool contains_above(char32_t code) const;

  std::array<std::uint64_t, kPlaneSize / 64> plane_{};
  std::vector<CodeRange> above_;
};

// The characters that are in no range.
std::vector<CodeRange> complement(std::vector<CodeRange> ranges);

}  // namespace quire::text
