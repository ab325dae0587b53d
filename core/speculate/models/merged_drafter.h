// Drafter that merges several drafters' trees into one: common paths become one path, and if the nodes are more than
// the limit, the likeliest stay. Drawn draft tokens (core/sample/accept.h) are put side by side instead, each with its
// own proposal distribution, even if two are equal: the tree must not depend on the tokens drawn. Each member then gets
// its share of the nodes, the first ones one more if the division leaves a rest, and draws with noise of its own
// (Wanted::drafter).
// Shape   nodes by descending likelihood, so a shortened tree is the best of its size; drawn nodes member by member.
// Owner   owns its members.
// Thread  engine.
// Fails   StartError: no member, or more than one that needs states of the target.
// Source  SpecInfer (Miao et al. 2023): merge-based trees, and multi-round sampling, a round per sibling.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/speculate/drafter.h"

namespace quire::speculate {

// Merges the added trees into their union and writes its likeliest nodes. A path in two trees has the higher
// likelihood.
class TreeMerger {
 public:
  void add(const sample::TokenTree& tree);
  // Writes at most max_nodes nodes into `merged`, which is empty, and forgets the added trees.
  void take(std::uint32_t max_nodes, sample::TokenTree& merged);

 private:
  struct Node {
    TokenId token;
    int parent;
    float likely;
  };
  int find_or_add(TokenId token, int parent, float likely);

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> order_;
  std::vector<int> merged_index_;  // index in the merged tree, by node
};

class MergedDrafter final : public Drafter {
 public:
  MergedDrafter(std::string method, std::vector<std::unique_ptr<Drafter>> members);

  std::string method() const override { return method_; }
  Needs needs() const override;
  void admit(const Admitted& sequence) override REQUIRES(engine_role);
  void observe(const ObservedStep& step) override REQUIRES(engine_role);
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  void release(SeqId seq, bool ended) override REQUIRES(engine_role);
  void track(std::span<const flow::BlockOp> ops) override REQUIRES(engine_role);

 private:
  std::uint32_t nodes_of(const Asked& asked, std::size_t member) const;
  void put_side_by_side(std::span<const Asked> asked, std::size_t i, sample::TokenTree& tree);

  std::string method_;
  std::vector<std::unique_ptr<Drafter>> members_;
  std::vector<Asked> asked_;                                  // as passed to a member
  std::vector<sample::TokenTree> trees_;                      // [members, asked]
  std::vector<sample::ProposalDistributions> distributions_;  // [asked]
  TreeMerger merger_;
};

}  // namespace quire::speculate
