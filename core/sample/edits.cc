#include "core/sample/edits.h"

#include <algorithm>
#include <cstddef>

namespace quire::sample {
namespace {

constexpr std::size_t kWordTokens = 32;

// Copies the allowed logits, one mask word at a time: most words of a grammar's mask allow all of their tokens or none.
void copy_allowed(std::span<const float> logits, std::span<const std::uint32_t> allowed, float* out) {
  for (std::size_t first = 0; first < logits.size(); first += kWordTokens) {
    const std::size_t count = std::min(kWordTokens, logits.size() - first);
    const std::uint32_t word = first / kWordTokens < allowed.size() ? allowed[first / kWordTokens] : 0;
    if (word == ~0u) {
      std::copy_n(logits.data() + first, count, out + first);
    } else if (word == 0) {
      std::fill_n(out + first, count, kMasked);
    } else {
      for (std::size_t i = 0; i < count; ++i) out[first + i] = (word >> i & 1u) != 0 ? logits[first + i] : kMasked;
    }
  }
}

}  // namespace

std::span<const float> adjust(std::span<const float> logits, const Edits& edits, Scratch& scratch) {
  const std::span<float> row = std::span(scratch.adjusted).first(logits.size());
  if (edits.allowed.empty()) {
    std::ranges::copy(logits, row.begin());
  } else {
    copy_allowed(logits, edits.allowed, row.data());
  }
  for (const Edit& edit : edits.each) {
    const auto at = static_cast<std::size_t>(edit.token);
    if (at < row.size()) row[at] = edited(row[at], edit, edits.repetition, edits.frequency, edits.presence);
  }
  for (const TokenId token : edits.forbidden) {
    const auto at = static_cast<std::size_t>(token);
    if (at < row.size()) row[at] = kMasked;
  }
  return row;
}

}  // namespace quire::sample
