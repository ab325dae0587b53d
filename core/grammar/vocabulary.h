// The bytes every token adds to an answer, as a tree: what a grammar is matched against.
// Shape   pieces[id] are the bytes of a token; empty: never part of an answer that a grammar governs (special tokens, gaps).
//         `ends` finish an answer and add nothing to it, whatever their piece; they are allowed where the text so far is
//         complete, and only there.
//         tree() holds every beginning of a piece once, the empty one first, in the order of their bytes: what a node is a
//         beginning of lies right behind it, up to the node's `end`. One more node ends the list.
//         Bytes are of 42 classes: those of letters, digits, marks each, parts of well-formed characters beyond ASCII, and others
//         beyond ASCII. A character begins where the last one ended, or at what cannot go on with it.
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

  // What the text of a node and of those below it consists of, as bits; its ancestors' not.
  using Classes = std::uint64_t;
  static constexpr std::uint32_t kNumAsciiClasses = 40;
  static constexpr Classes kCharacter = Classes{1} << kNumAsciiClasses;  // a byte of one beyond ASCII
  static constexpr Classes kMalformed = Classes{2} << kNumAsciiClasses;  // what is part of none
  static constexpr Classes kEndsWithin = Classes{1} << 63;               // the node's own text ends within a character
  static constexpr Classes kOwnMalformed = Classes{1} << 62;             // its own byte is part of none
  static std::uint32_t ascii_class(std::uint8_t byte);                   // byte < 128

  // Fails   CHECK: a piece of 65,536 bytes or more.
  Vocabulary(std::vector<std::string> pieces, std::vector<TokenId> ends);

  std::size_t size() const { return pieces_.size(); }            // V
  std::size_t mask_words() const { return (size() + 31) / 32; }  // of a token mask
  std::string_view piece(TokenId id) const { return pieces_[static_cast<std::size_t>(id)]; }
  std::span<const TokenId> ends() const { return ends_; }
  bool is_end(TokenId id) const;

  std::span<const TokenId> sorted() const { return sorted_; }  // with bytes, by bytes
  std::span<const Node> tree() const { return tree_; }
  Classes classes(std::uint32_t node) const { return classes_[node]; }
  std::span<const TokenId> tokens_in(std::uint32_t node) const {  // of it and of those below it
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
