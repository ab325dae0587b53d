#include "core/speculate/models/merged_drafter.h"

#include <algorithm>
#include <numeric>

#include "core/base/check.h"
#include "core/base/start_error.h"
#include "core/speculate/children.h"

namespace quire::speculate {

using sample::TokenTree;

namespace {

bool is_drawn(const Asked& asked) { return asked.sampling != nullptr && sample::accepts_by_rejection(*asked.sampling); }

}  // namespace

void TreeMerger::add(const TokenTree& tree) {
  std::array<int, TokenTree::kMaxNodes> merged_index;
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    const int parent = tree.parent(i);
    const int merged = parent == TokenTree::kRoot ? parent : merged_index[static_cast<std::size_t>(parent)];
    const float limit = merged == TokenTree::kRoot ? 1.0f : nodes_[static_cast<std::size_t>(merged)].likely;
    merged_index[i] = find_or_add(tree.token(i), merged, std::min(tree.likely(i), limit));  // never above its parent
  }
}

void TreeMerger::take(std::uint32_t max_nodes, TokenTree& merged) {
  order_.resize(nodes_.size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::stable_sort(order_.begin(), order_.end(),
                   [this](std::uint32_t a, std::uint32_t b) { return nodes_[a].likely > nodes_[b].likely; });
  merged_index_.assign(nodes_.size(), TokenTree::kRoot);
  const std::size_t count = std::min<std::size_t>({order_.size(), max_nodes, TokenTree::kMaxNodes});
  for (const std::uint32_t i : std::span(order_).first(count)) {
    const Node& node = nodes_[i];
    const int parent =
        node.parent == TokenTree::kRoot ? node.parent : merged_index_[static_cast<std::size_t>(node.parent)];
    merged_index_[i] = merged.add(node.token, parent, node.likely);
  }
  nodes_.clear();
}

int TreeMerger::find_or_add(TokenId token, int parent, float likely) {
  for (auto i = static_cast<std::size_t>(parent + 1); i < nodes_.size(); ++i) {
    if (nodes_[i].parent != parent || nodes_[i].token != token) continue;
    nodes_[i].likely = std::max(nodes_[i].likely, likely);
    return static_cast<int>(i);
  }
  nodes_.push_back({token, parent, likely});
  return static_cast<int>(nodes_.size()) - 1;
}

MergedDrafter::MergedDrafter(std::string method, std::vector<std::unique_ptr<Drafter>> members)
    : method_(std::move(method)), members_(std::move(members)) {
  if (members_.empty()) throw StartError(method_ + ": it needs at least one drafter");
  const auto wanting = std::ranges::count_if(members_, [](const auto& member) { return member->needs().any(); });
  if (wanting > 1) throw StartError(method_ + ": only one of its drafters can read the target's states");
}

Needs MergedDrafter::needs() const {
  for (const auto& member : members_) {
    if (Needs needs = member->needs(); needs.any()) return needs;
  }
  return {};
}

void MergedDrafter::admit(const Admitted& sequence) {
  for (const auto& member : members_) member->admit(sequence);
}

void MergedDrafter::observe(const ObservedStep& step) {
  for (const auto& member : members_) member->observe(step);
}

void MergedDrafter::propose(std::span<const Asked> asked, std::span<TokenTree> trees) {
  CHECK_EQ(asked.size(), trees.size());
  trees_.resize(members_.size() * asked.size());
  distributions_.resize(std::max(distributions_.size(), asked.size()));
  for (TokenTree& tree : trees_) tree.clear();
  for (std::size_t m = 0; m < members_.size(); ++m) {
    asked_.assign(asked.begin(), asked.end());
    for (Asked& one : asked_) one.max_nodes = std::max(nodes_of(one, m), 1u);
    members_[m]->propose(asked_, std::span(trees_).subspan(m * asked.size(), asked.size()));
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (is_drawn(asked[i])) {
      put_side_by_side(asked, i, trees[i]);
      continue;
    }
    for (std::size_t m = 0; m < members_.size(); ++m) merger_.add(trees_[m * asked.size() + i]);
    merger_.take(asked[i].max_nodes, trees[i]);
  }
}

std::uint32_t MergedDrafter::nodes_of(const Asked& asked, std::size_t member) const {
  if (!is_drawn(asked)) return asked.max_nodes;
  const auto num = static_cast<std::uint32_t>(members_.size());
  return asked.max_nodes / num + (member < asked.max_nodes % num ? 1 : 0);
}

void MergedDrafter::put_side_by_side(std::span<const Asked> asked, std::size_t i, TokenTree& tree) {
  distributions_[i].clear();
  for (std::size_t m = 0; m < members_.size(); ++m) {
    if (nodes_of(asked[i], m) == 0) break;
    const TokenTree& part = trees_[m * asked.size() + i];
    const auto before = static_cast<int>(tree.size());
    for (std::uint32_t node = 0; node < part.size(); ++node) {
      const int parent = part.parent(node);
      tree.add(part.token(node), parent == TokenTree::kRoot ? parent : parent + before, part.likely(node));
      add_distribution(part.distribution(node), distributions_[i]);
    }
  }
  tree.set_distributions(&distributions_[i]);
}

void MergedDrafter::release(SeqId seq, bool ended) {
  for (const auto& member : members_) member->release(seq, ended);
}

void MergedDrafter::track(std::span<const flow::BlockOp> ops) {
  for (const auto& member : members_) member->track(ops);
}

}  // namespace quire::speculate
