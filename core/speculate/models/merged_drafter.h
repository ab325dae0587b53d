// Several drafters' guesses as one tree: where they agree their paths are one, and where there is room for fewer nodes
// than they name the likelier ones are in it. Drawn guesses (core/sample/accept.h) stand side by side instead, each with what it was
// drawn from, those of two that agree too: what is there must not depend on what was drawn. Every member has its part of the
// nodes, the first ones one more where they do not come out even.
// Shape   nodes in descending likelihood, so that a tree cut short is the best of its size; drawn ones member by member.
// Owner   owns its members.
// Thread  engine.
// Members draw with noise of their own each (Wanted::drafter).
// Fails   StartError: no member, or two that want states of the target.
// Source  SpecInfer (Miao et al. 2023), merge-based trees, and its sampling in several rounds, one for each sibling.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/speculate/drafter.h"

namespace quire::speculate {

// The union of `trees`, at most max_nodes of it, into `merged`, which is empty. A path that two trees name is as likely as the
// surer one says.
class TreeMerger {
 public:
  void add(const sample::TokenTree& tree);
  void take(std::uint32_t max_nodes, sample::TokenTree& merged);  // and is empty again

 private:
  struct Node {
    TokenId token;
    int parent;
    float likely;
  };
  int find_or_add(TokenId token, int parent, float likely);

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> order_;
  std::vector<int> places_;  // in the merged tree, by node
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
  void follow(std::span<const flow::BlockOp> ops) override REQUIRES(engine_role);

 private:
  std::uint32_t nodes_of(const Asked& asked, std::size_t member) const;
  void put_side_by_side(std::span<const Asked> asked, std::size_t i, sample::TokenTree& tree);

  std::string method_;
  std::vector<std::unique_ptr<Drafter>> members_;
  std::vector<Asked> asked_;                // what a member is asked
  std::vector<sample::TokenTree> trees_;    // [members, asked]
  std::vector<sample::ProposalLaws> laws_;  // [asked]
  TreeMerger merger_;
};

}  // namespace quire::speculate
