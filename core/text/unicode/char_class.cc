#include "core/text/unicode/char_class.h"

#include <algorithm>

namespace quire::text {
namespace {

// Sorts and merges ranges: the result is ascending, disjoint and without adjacent ranges.
std::vector<CodeRange> joined(std::vector<CodeRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
  std::vector<CodeRange> out;
  for (const CodeRange& range : ranges) {
    if (!out.empty() && range.first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, range.last);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

}  // namespace

CharClass::CharClass(std::vector<CodeRange> ranges) {
  for (const CodeRange& range : joined(std::move(ranges))) {
    for (char32_t code = range.first; code <= range.last && code < kPlaneSize; ++code) {
      plane_[code / 64] |= std::uint64_t{1} << (code % 64);
    }
    if (range.last >= kPlaneSize) above_.push_back({std::max(range.first, kPlaneSize), range.last});
  }
}

bool CharClass::contains_above(char32_t code) const {
  const auto after = std::upper_bound(above_.begin(), above_.end(), code,
                                      [](char32_t c, const CodeRange& range) { return c < range.first; });
  return after != above_.begin() && code <= std::prev(after)->last;
}

std::vector<CodeRange> complement(std::vector<CodeRange> ranges) {
  std::vector<CodeRange> out;
  char32_t next = 0;
  for (const CodeRange& range : joined(std::move(ranges))) {
    if (next < range.first) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kMaxCodePoint) out.push_back({next, kMaxCodePoint});
  return out;
}

}  // namespace quire::text
