#include "core/speculate/lookup/continuations.h"

#include <algorithm>
#include <tuple>

namespace quire::speculate {

float Continuations::grow(const Followers& followers, std::uint32_t num_occurrences, const GrowLimits& limits,
                          sample::TokenTree& tree) {
  members_.resize(num_occurrences);
  for (std::uint32_t i = 0; i < num_occurrences; ++i) members_[i] = {Followers::kNothing, i};
  frontier_.clear();
  num_found_ = 0;
  float sum = 0.0f;
  const std::uint32_t max_nodes = std::min(limits.max_nodes, sample::TokenTree::kMaxNodes);
  branch_out(followers, {1.0f, 0, sample::TokenTree::kRoot, 0, 0, num_occurrences}, sample::TokenTree::kRoot, limits);
  while (!frontier_.empty() && tree.size() < max_nodes) {
    std::ranges::pop_heap(frontier_, later);
    const Branch best = frontier_.back();
    frontier_.pop_back();
    const int node = tree.add(members_[best.first].token, best.parent, best.likely);
    sum += best.likely;
    branch_out(followers, best, node, limits);
  }
  return sum;
}

void Continuations::branch_out(const Followers& followers, const Branch& of, int node, const GrowLimits& limits) {
  if (of.depth == limits.max_depth) return;
  const auto begin = members_.begin() + of.first;
  const auto end = begin + of.count;
  for (auto member = begin; member != end; ++member) {
    member->token = followers.after(member->occurrence, of.depth);
  }
  std::sort(begin, end, [](const Member& a, const Member& b) {
    return std::tie(a.token, a.occurrence) < std::tie(b.token, b.occurrence);
  });
  siblings_.clear();
  for (auto first = begin; first != end;) {
    const auto last = std::find_if(first, end, [&](const Member& member) { return member.token != first->token; });
    const auto count = static_cast<std::uint32_t>(last - first);
    const float likely = of.likely * static_cast<float>(count) / static_cast<float>(of.count);
    if (first->token != Followers::kNothing && likely >= limits.min_likely) {
      siblings_.push_back({likely, 0, node, of.depth + 1, static_cast<std::uint32_t>(first - members_.begin()), count});
    }
    first = last;
  }
  std::sort(siblings_.begin(), siblings_.end(), [this](const Branch& a, const Branch& b) {
    return a.count != b.count ? a.count > b.count : members_[a.first].occurrence < members_[b.first].occurrence;
  });
  for (std::size_t i = 0; i < std::min<std::size_t>(siblings_.size(), limits.width); ++i) {
    siblings_[i].order = num_found_++;
    frontier_.push_back(siblings_[i]);
    std::ranges::push_heap(frontier_, later);
  }
}

}  // namespace quire::speculate
