// The bytes every token adds to an answer, as a tree: what a grammar is matched against.
// Shape   pieces[id] are the bytes of a token; empty: never part of an answer that a grammar governs (special tokens, gaps).
//         `ends` finish an answer and add nothing to it, whatever their piece; they are allowed where the text so far is
//         complete, and only there.
//         tree() holds every beginning of a piece once, the empty one first, in the order of their bytes: what a node is a
//         beginning of lies right behind it, up to the node's `end`. One more node ends the list.
// Owner   shared_ptr<const Vocabulary>: made once at start, immutable.
// Thread  any.
// Source  ours; a trie flattened in preorder, so that a walk goes forward through memory and drops a subtree in one jump.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"

namespace quire::grammar {

class Vocabulary {
 public:
  struct Node {
    std::uint32_t end = 0;          // behind the last node of which this is a beginning
    std::uint32_t first_token = 0;  // in sorted(): those that are this node lie before the next node's first
    std::uint16_t depth = 0;        // bytes
    std::uint8_t byte = 0;          // the last of them
    std::uint8_t reach = 0;         // bytes of the longest piece that this begins; 255: or more
  };

  // Fails   CHECK: a piece of 65,536 bytes or more.
  Vocabulary(std::vector<std::string> pieces, std::vector<TokenId> ends);

  std::size_t size() const { return pieces_.size(); }            // V
  std::size_t mask_words() const { return (size() + 31) / 32; }  // of a token mask
  std::string_view piece(TokenId id) const { return pieces_[static_cast<std::size_t>(id)]; }
  std::span<const TokenId> ends() const { return ends_; }
  bool is_end(TokenId id) const;

  std::span<const TokenId> sorted() const { return sorted_; }  // with bytes, by bytes
  std::span<const Node> tree() const { return tree_; }
  std::span<const TokenId> tokens_at(std::uint32_t node) const {
    const std::uint32_t first = tree_[node].first_token;
    return sorted().subspan(first, tree_[node + 1].first_token - first);
  }

 private:
  void grow_tree();

  std::vector<std::string> pieces_;
  std::vector<TokenId> ends_;
  std::vector<TokenId> sorted_;
  std::vector<Node> tree_;
};

}  // namespace quire::grammar
