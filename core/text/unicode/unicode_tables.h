// The generated data of unicode.h: sorted tables, searched by bisection.
// Shape   make_unicode_tables.py writes lengths and contents; the records are described here.
// Source  Unicode Character Database 16.0.0.
#pragma once

#include <array>
#include <cstdint>

namespace quire::text::unicode_tables {

struct Decomposition {
  std::uint32_t key;     // code point * 2, + 1 for a compatibility decomposition that differs from the canonical one
  std::uint16_t offset;  // in kDecompositionPool; always the full decomposition, in canonical order
  std::uint8_t length;
};

struct Composition {  // sorted by (first, second)
  std::uint32_t first, second, composite;
};

struct LowercaseRun {  // first, first + step ... last become lower case by adding delta
  std::uint32_t first, last;
  std::uint8_t step;
  std::int32_t delta;
};

// Runs of code points with one value, as first << bits | value: a category (5 bits), a combining class (8), or 1 for an
// accent (1). A run ends before the next run's first code point.
extern const std::array<std::uint32_t, 4099> kCategoryRuns;
extern const std::array<std::uint32_t, 590> kCombiningRuns;
extern const std::array<std::uint32_t, 501> kAccentRuns;
extern const std::array<Decomposition, 5929> kDecompositions;
extern const std::array<std::uint32_t, 9221> kDecompositionPool;
extern const std::array<Composition, 961> kCompositions;
extern const std::array<LowercaseRun, 186> kLowercaseRuns;

}  // namespace quire::text::unicode_tables
