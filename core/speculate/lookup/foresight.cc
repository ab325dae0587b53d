#include "core/speculate/lookup/foresight.h"

#include <algorithm>
#include <bit>

namespace quire::speculate {
namespace {

constexpr float kKeep = 0.998f;
constexpr float kPriorWorth = 2.0f;

// Upper ends of the bins of fractions; the last bin has no upper end.
constexpr std::array kPartBins = {0.25f, 0.5f, 0.75f, 0.999f};

}  // namespace

void StepCalibration::learn(Draft& draft, std::span<const TokenId> tokens) {
  int at = sample::TokenTree::kRoot;
  for (std::size_t next = draft.num_tokens; next < tokens.size(); ++next) {
    int right = sample::TokenTree::kRoot;
    for (std::uint32_t i = 0; i < draft.size; ++i) {
      const Draft::Node& node = draft.nodes[i];
      if (node.parent != at) continue;
      Kind& kind = kinds_[node.kind];
      const bool is_right = node.token == tokens[next];
      kind.tried = kind.tried * kKeep + 1.0f;
      kind.right = kind.right * kKeep + (is_right ? 1.0f : 0.0f);
      if (is_right) right = static_cast<int>(i);
    }
    if (right == sample::TokenTree::kRoot) break;
    at = right;
  }
  draft.size = 0;
}

void StepCalibration::promise(sample::TokenTree& tree, std::uint32_t alike, std::size_t num_tokens,
                              Draft& draft) const {
  const sample::TokenTree counted = tree;
  tree.clear();
  draft.num_tokens = num_tokens;
  draft.size = counted.size();
  for (std::uint32_t i = 0; i < counted.size(); ++i) {
    const int parent = counted.parent(i);
    const bool is_first = parent == sample::TokenTree::kRoot;
    const float above = is_first ? 1.0f : counted.likely(static_cast<std::uint32_t>(parent));
    const float part = above > 0.0f ? std::min(counted.likely(i) / above, 1.0f) : 0.0f;
    const std::uint32_t length = std::max(alike + counted.depth(i) - 1, 1u);
    const auto part_bin = static_cast<std::size_t>(std::ranges::upper_bound(kPartBins, part) - kPartBins.begin());
    const std::size_t length_bin = std::min<std::size_t>(std::bit_width(length), kLengths) - 1;
    const auto kind = static_cast<std::uint8_t>(part_bin * kLengths + length_bin);
    const float before = is_first ? 1.0f : tree.likely(static_cast<std::uint32_t>(parent));
    tree.add(counted.token(i), parent, before * chance(kind, part, length));
    draft.nodes[i] = {counted.token(i), static_cast<std::int8_t>(parent), kind};
  }
}

float StepCalibration::chance(std::uint8_t kind, float part, std::uint32_t alike) const {
  const Kind& seen = kinds_[kind];
  const float prior = part * static_cast<float>(alike) / static_cast<float>(alike + 1);
  return (seen.right + kPriorWorth * prior) / (seen.tried + kPriorWorth);
}

}  // namespace quire::speculate
