// The bytes that each token adds to an answer, and a trie of them, against which a grammar is matched.
// Shape   pieces[id] are the bytes of a token; empty: never part of an answer that a grammar governs (special tokens,
//         gaps). `ends` are the tokens that end an answer. They add no bytes, whatever their piece, and are allowed if
//         and only if the text so far is complete.
//         tree() is the trie in preorder, children in the order of their bytes; node 0 is the empty prefix. The subtree
//         of node i is [i, end of i). A sentinel node ends the list.
//         Bytes have 42 classes: 40 of ASCII (lower-case letters, upper-case letters, digits, each blank, the other
//         control characters, each punctuation mark), bytes of characters beyond ASCII, and bytes that break UTF-8. A
//         character begins after the last one, or at a byte that cannot continue it.
// Owner   shared_ptr<const Vocabulary>: made once at start, immutable.
// Thread  any.
// Source  ours; a trie flattened in preorder: a traversal goes forward through memory and skips a subtree in one jump.
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
    std::uint32_t end = 0;          // one past the last node of its subtree
    std::uint32_t first_token = 0;  // in sorted(): its own tokens end at the next node's first_token
    std::uint16_t depth = 0;        // bytes
    std::uint8_t byte = 0;          // the last byte
    std::uint8_t reach = 0;         // bytes of the longest piece in its subtree; 255: or more
  };

  // The byte classes, as bits, of a node's own byte and of the nodes below it; those of its ancestors are not included.
  using Classes = std::uint64_t;
  static constexpr std::uint32_t kNumAsciiClasses = 40;
  static constexpr Classes kCharacter = Classes{1} << kNumAsciiClasses;  // a byte of a character beyond ASCII
  static constexpr Classes kMalformed = Classes{2} << kNumAsciiClasses;  // a byte that breaks UTF-8
  static constexpr Classes kEndsWithin = Classes{1} << 63;               // the node's prefix ends within a character
  static constexpr Classes kOwnMalformed = Classes{1} << 62;             // the node's own byte breaks UTF-8
  static std::uint32_t ascii_class(std::uint8_t byte);                   // byte < 128

  // Fails   CHECK: a piece of 65,536 bytes or more.
  Vocabulary(std::vector<std::string> pieces, std::vector<TokenId> ends);

  std::size_t size() const { return pieces_.size(); }            // V
  std::size_t mask_words() const { return (size() + 31) / 32; }  // of a token mask
  std::string_view piece(TokenId id) const { return pieces_[static_cast<std::size_t>(id)]; }
  std::span<const TokenId> ends() const { return ends_; }
  bool is_end(TokenId id) const;

  std::span<const TokenId> sorted() const { return sorted_; }  // the tokens with bytes, in the order of their bytes
  std::span<const Node> tree() const { return tree_; }
  Classes classes(std::uint32_t node) const { return classes_[node]; }
  std::span<const TokenId> tokens_in(std::uint32_t node) const {  // of its subtree
    const std::uint32_t first = tree_[node].first_token;
    return sorted().subspan(first, tree_[tree_[node].end].first_token - first);
  }
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
  std::vector<Classes> classes_;  // by node
};

}  // namespace quire::grammar
