// The token masks of a grammar: which tokens may come next on given stacks, with a cache that makes this cheap.
// Shape   a token either stays within the rule on top of a stack (and rules called from there), or that rule ends
//         inside the token and the state below decides about the rest. So a stack is read from its top. A *reading* of
//         one state, begun at some nodes of the vocabulary's trie, is (a) the tokens that stay inside the state's rule
//         and (b) the trie nodes at which the rule ends; the state below goes on from those nodes. The top state begins
//         at the root. A reading does not depend on the stack, is found once by a traversal of the trie, and cached:
//         the mask of a position seen before is the union of cached readings. Tokens of up to kAlikeBytes[i] bytes are
//         read once for all states that are equivalent for so many bytes (alike.h); there are few longer tokens.
//         If classes of bytes lead back to the same stacks, as letters do inside a string, all tokens made of these
//         classes are accepted without visiting their nodes.
//         Cached tokens are a list if they are few, a mask otherwise. The memory of the cache is fixed; when it is
//         full, the whole cache is dropped.
// Owner   Grammar; every sequence that it governs shares it.
// Thread  one at a time: the one that compiles, then the engine's.
// Fails   allowed(): false, and an empty mask, if the readings of one mask take more than `most_work` to find, or more
//         memory than the cache has. This depends on the stacks alone, not on the content of the cache.
// Source  the split of tokens by whether they depend on the rest of the stack is XGrammar's (Dong et al., MLSys 2025);
//         ours also splits below the top, and is made when a state is first met.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/grammar/automaton/automaton.h"
#include "core/grammar/automaton/frontier.h"
#include "core/grammar/automaton/number_row.h"
#include "core/grammar/automaton/stacks.h"
#include "core/grammar/rules/vocabulary.h"

namespace quire::grammar {

// Work is counted in trie nodes and stacks visited, a million of them in some 15 ms.
inline constexpr std::uint64_t kMaxMaskWork = 1 << 22;
inline constexpr std::uint64_t kPrepareWork = 1 << 21;

class Masks {
 public:
  Masks(const Automaton& automaton, const Vocabulary& vocabulary);

  // Replaces `tops` by the stacks after `bytes`. False, and nothing changed, if the grammar has no such text. True, and
  // `tops` empty, if there are more than kMaxStacks: nothing is allowed after such a text.
  bool advance(Stacks& stacks, std::vector<Stack>& tops, std::string_view bytes);
  // Overwrites `mask` with the allowed tokens that add bytes (not with those that end an answer).
  bool allowed(const Stacks& stacks, std::span<const Stack> tops, std::span<std::uint32_t> mask,
               std::uint64_t most_work = kMaxMaskWork);
  // Finds the readings that the masks of short texts need, the shortest first, up to `most_work`.
  void prepare(std::uint64_t most_work = kPrepareWork);

  Frontier& frontier() { return frontier_; }
  std::uint64_t work() const { return num_nodes_seen_ + frontier_.work(); }  // done so far
  // The most memory that it may take.
  std::size_t num_bytes() const { return room_words_ * sizeof(std::uint32_t) + follow_.size() * sizeof(ByteSet); }

 private:
  static constexpr std::uint32_t kIsMask = UINT32_MAX;
  static constexpr std::uint32_t kNoNodes = UINT32_MAX;
  static constexpr std::uint32_t kNumBands = kAlikeBytes.size() + 1;

  struct NodeList {  // trie nodes of one band; list b is the root, of band b
    std::uint32_t band = 0;
    std::uint32_t offset = 0;  // into room_
    std::uint32_t size = 0;    // nodes
    bool is_mask = false;      // stored as a mask of all nodes
  };
  struct Reading {
    std::uint32_t offset = 0;       // into room_
    std::uint32_t num_tokens = 0;   // kIsMask: stored as a mask
    std::uint32_t ends = kNoNodes;  // the NodeList from which the state below on the stack goes on
    std::uint32_t work = 0;         // spent to find it
    std::uint64_t last_mask = 0;    // number of the last mask that it is part of
  };
  struct Open {  // a state still to be read for a mask, from a NodeList
    std::uint32_t nodes = 0;
    Stack stack;
    friend auto operator<=>(const Open&, const Open&) = default;
  };
  struct Place {  // a position that prepare() visits
    Stacks stacks;
    std::vector<Stack> tops;
  };

  bool find(const Stacks& stacks, std::span<const Stack> tops, std::uint64_t most_work, std::span<std::uint32_t>* mask);
  Reading* reading_of(std::uint32_t band, const Open& open, std::uint64_t most_work);
  void find_follow();
  bool may_go_on(std::uint32_t node, const ByteSet& follow) const;
  // A band is the tokens of more than above(band) bytes and up to upto(band).
  static std::uint32_t above(std::uint32_t band) { return band == 0 ? 0 : kAlikeBytes[band - 1]; }
  static std::uint32_t upto(std::uint32_t band) { return band < kAlikeBytes.size() ? kAlikeBytes[band] : UINT32_MAX; }
  std::uint32_t class_of(std::uint32_t band, std::uint32_t state) const;
  // The byte classes all texts of which lead back to the stacks at this depth of the frontier, or to equivalent ones.
  Vocabulary::Classes find_loops(std::uint32_t band, std::size_t depth);
  bool leads_back(std::uint32_t band, std::size_t depth, std::size_t then) const;
  bool characters_lead_back(std::uint32_t band, std::size_t depth, std::size_t then, std::uint32_t left,
                            std::uint8_t first, std::uint8_t last);
  // Marks in mask_ the tokens below `root`, which is depth 0 of the frontier, and lists in nodes_ the nodes at which
  // the bottom is reached. False: it took more than `end_work`.
  bool walk(std::uint32_t root, std::uint32_t band, const ByteSet& follow, std::uint64_t end_work);
  Vocabulary::Classes loops_behind(std::uint32_t node, std::uint32_t band, std::size_t before);
  void mark(std::span<const TokenId> tokens, std::uint32_t above);
  Reading* keep(std::uint64_t key, std::uint32_t band, std::uint64_t work);
  std::uint32_t keep_nodes(std::uint32_t band);
  void read_nodes(const NodeList& list, std::vector<std::uint32_t>& nodes) const;
  std::size_t node_words() const { return (vocabulary_.tree().size() + 31) / 32; }
  void forget();
  void merge(const Reading& reading, std::span<std::uint32_t> mask) const;
  std::bitset<256> bytes_to_try(Place& place);
  NumberRow look_of(const Place& place) const;

  const Automaton& automaton_;
  const Vocabulary& vocabulary_;
  Frontier frontier_;
  std::vector<std::uint32_t> unit_of_;  // by state: its rule, as an index into follow_
  std::vector<ByteSet> follow_;         // bytes that may follow a rule's end; by rule, then by class of alike[0]
  Stacks local_stacks_;
  std::unordered_map<std::uint64_t, Reading> readings_;  // by number of the NodeList, and state or its equivalent
  std::vector<NodeList> lists_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> list_with_hash_;
  std::uint32_t round_ = 0;  // times that the cache was dropped
  std::size_t room_words_;
  std::unique_ptr<std::uint32_t[]> room_;
  std::size_t num_used_ = 0;
  std::uint64_t num_nodes_seen_ = 0;
  std::uint64_t num_masks_ = 0;
  std::vector<std::uint32_t> mask_;         // tokens of the reading being found
  std::vector<std::uint32_t> nodes_;        // nodes at which its rule ends
  std::vector<std::uint32_t> roots_;        // nodes at which it begins
  std::vector<Open> open_, next_;           // scratch of find()
  std::vector<Vocabulary::Classes> loops_;  // of walk(), by depth: see find_loops()
};

}  // namespace quire::grammar
