// A draft: draft tokens for the next positions of a sequence, as a tree below its last token, the root.
// Shape   at most 64 nodes, not counting the root; a parent comes before its children. A node's `ancestors` has one bit
//         for itself and each of its ancestors: the node's row attends to no other node, and lies popcount(ancestors)
//         positions after the root.
//         In slot order node i lies i + 1 slots after the root; in a chain that is its position, too.
// LookaheadNodes  nodes whose row results the drafter wants even if they are not accepted. Each has a number of the
//         drafter's choosing, which is returned with the result (speculate::LookaheadResult). Otherwise they are nodes
//         as all others.
// Owner   the drafter; then the sequence, until its step is committed. The distributions that nodes were drawn from are
//         borrowed and found by node index (proposal_distributions.h): such a tree is used whole or not at all.
// Thread  one at a time. Nothing allocates.
// Fails   add(): -1, and nothing changed, if the tree is full or there is no such parent. Cycles cannot be expressed.
// Source  SpecInfer (Miao et al. 2023), tree attention; EAGLE-2 (Li et al. 2024).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "core/base/ids.h"
#include "core/sample/proposal_distributions.h"

namespace quire::sample {

class TokenTree {
 public:
  static constexpr std::uint32_t kMaxNodes = 64;
  static constexpr int kRoot = -1;

  // Adds a node and returns its index. `likely`: the drafter's estimate of the probability that its whole path is
  // accepted, used for budgets only.
  int add(TokenId token, int parent, float likely = 0.0f) {
    if (size_ == kMaxNodes || parent < kRoot || parent >= static_cast<int>(size_)) return -1;
    const std::uint32_t i = size_++;
    nodes_[i] = {(parent == kRoot ? 0 : ancestors(static_cast<std::uint32_t>(parent))) | std::uint64_t{1} << i, token,
                 likely, static_cast<std::int8_t>(parent), 0};
    return static_cast<int>(i);
  }
  void make_lookahead_node(std::uint32_t i, std::uint8_t number) {
    lookahead_nodes_ |= std::uint64_t{1} << i;
    nodes_[i].lookahead_node = number;
  }
  void clear() {
    shrink_to(0);
    distributions_ = nullptr;
  }
  // Keeps the first `size` nodes, which are still a tree, since parents come first.
  void shrink_to(std::uint32_t size) {
    size_ = size < size_ ? size : size_;
    lookahead_nodes_ = lookahead_nodes(size_);
  }

  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  TokenId token(std::uint32_t i) const { return nodes_[i].token; }
  int parent(std::uint32_t i) const { return nodes_[i].parent; }
  std::uint64_t ancestors(std::uint32_t i) const { return nodes_[i].ancestors; }  // itself included
  std::uint32_t depth(std::uint32_t i) const { return static_cast<std::uint32_t>(std::popcount(nodes_[i].ancestors)); }
  float likely(std::uint32_t i) const { return nodes_[i].likely; }
  void set_distributions(const ProposalDistributions* distributions) { distributions_ = distributions; }
  const ProposalDistributions* distributions() const { return distributions_; }
  // The distribution that node i was drawn from; empty: not drawn at random.
  std::span<const TokenProbability> distribution(std::uint32_t i) const {
    return distributions_ == nullptr ? std::span<const TokenProbability>() : distributions_->of(i);
  }
  // Bit i: node i is a lookahead node and i < first.
  std::uint64_t lookahead_nodes(std::uint32_t first) const {
    return first >= kMaxNodes ? lookahead_nodes_ : lookahead_nodes_ & ((std::uint64_t{1} << first) - 1);
  }
  bool is_lookahead_node(std::uint32_t i) const { return (lookahead_nodes_ >> i & 1) != 0; }
  std::uint8_t lookahead_node(std::uint32_t i) const { return nodes_[i].lookahead_node; }  // its number
  // The first child that carries the token; -1: none.
  int child(int parent, TokenId token) const {
    for (auto i = static_cast<std::uint32_t>(parent + 1); i < size_; ++i) {
      if (nodes_[i].parent == parent && nodes_[i].token == token) return static_cast<int>(i);
    }
    return -1;
  }
  bool is_chain() const {
    for (std::uint32_t i = 0; i < size_; ++i) {
      if (nodes_[i].parent != static_cast<int>(i) - 1) return false;
    }
    return true;
  }

 private:
  struct Node {
    std::uint64_t ancestors;
    TokenId token;
    float likely;
    std::int8_t parent;
    std::uint8_t lookahead_node;
  };
  std::uint32_t size_ = 0;
  const ProposalDistributions* distributions_ = nullptr;
  std::uint64_t lookahead_nodes_ = 0;
  std::array<Node, kMaxNodes> nodes_;
};

}  // namespace quire::sample
