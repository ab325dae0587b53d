// Several drafters' guesses as one tree: where they agree their paths are one, and where there is room for fewer nodes
// than they name the likelier ones are in it.
// Shape   nodes in descending likelihood, so that a tree cut short is the best of its size.
// Owner   owns its members.
// Thread  engine.
// Members that draw their guesses (core/sample/accept.h) have no place here: what was drawn from is lost in the union.
// Fails   StartError: no member, or two that want states of the target.
// Source  SpecInfer (Miao et al. 2023), merge-based trees.
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
  std::string method_;
  std::vector<std::unique_ptr<Drafter>> members_;
  std::vector<sample::TokenTree> trees_;  // [members, asked]
  TreeMerger merger_;
};

}  // namespace quire::speculate
