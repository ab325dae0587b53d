// Which tokens may come next, and what is remembered so that this is cheap.
// Shape   a token either stays within the rule on top of a stack (or enters others from there), or that rule ends inside the
//         token and what lies below decides. So a stack is read from its top: a *reading* is the tokens that one state allows
//         below some nodes of the vocabulary's tree, and the nodes at which its rule ends, below which the state under it
//         reads on; the top begins at the root. Readings do not know the stack, are found once by a walk over the tree, and
//         kept: a mask of what was seen before is their union. Tokens of up to kAlikeBytes[i] bytes are read once for all
//         states that are alike for so many bytes (alike.h); of longer ones there are few.
//         Where letters lead back to where they were met, as inside a string, all that is written with them is read at once.
//         Kept tokens are a list where they are few, a mask otherwise. Their room is fixed; when it is full, all are
//         forgotten.
// Owner   Grammar; every sequence that it governs shares it.
// Thread  one at a time: that which compiles, then the engine's.
// Fails   allowed(): false, and none, where the readings of one mask take more than `most_work` to find, or more than the room
//         to keep; whether they do depends on the stacks alone, not on what is kept.
// Source  the split by what tokens depend on is XGrammar's (Dong et al., MLSys 2025); here it goes on below the top, and is
//         made when a state is first met.
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
#include "core/grammar/vocabulary.h"

namespace quire::grammar {

// Nodes of the tree and stacks on them that are looked at, a million of them in some 15 ms.
inline constexpr std::uint64_t kMaxMaskWork = 1 << 22;
inline constexpr std::uint64_t kPrepareWork = 1 << 21;

class Masks {
 public:
  Masks(const Automaton& automaton, const Vocabulary& vocabulary);

  // The stacks once `bytes` were read on `tops`. False where the grammar has no such text; then nothing changed. True and none
  // where there are more than kMaxStacks: nothing follows such a text.
  bool advance(Stacks& stacks, std::vector<Stack>& tops, std::string_view bytes);
  // Overwrites `mask` by the tokens that add bytes.
  bool allowed(const Stacks& stacks, std::span<const Stack> tops, std::span<std::uint32_t> mask,
               std::uint64_t most_work = kMaxMaskWork);
  // Finds what the masks of short texts need, the shortest first, up to so much work.
  void prepare(std::uint64_t most_work = kPrepareWork);

  Frontier& frontier() { return frontier_; }
  std::uint64_t work() const { return num_nodes_seen_ + frontier_.work(); }  // done so far
  // The most that it may come to hold.
  std::size_t num_bytes() const { return room_words_ * sizeof(std::uint32_t) + follow_.size() * sizeof(ByteSet); }

 private:
  static constexpr std::uint32_t kIsMask = UINT32_MAX;
  static constexpr std::uint32_t kNoNodes = UINT32_MAX;
  static constexpr std::uint32_t kNumBands = kAlikeBytes.size() + 1;

  struct NodeList {  // of one band; list b is the root, of band b
    std::uint32_t band = 0;
    std::uint32_t offset = 0;  // in room_
    std::uint32_t size = 0;    // nodes
    bool is_mask = false;      // of all nodes
  };
  struct Reading {
    std::uint32_t offset = 0;       // into room_
    std::uint32_t num_tokens = 0;   // kIsMask: a mask
    std::uint32_t ends = kNoNodes;  // a list: below these nodes what lies below the state decides
    std::uint32_t work = 0;         // that it took to find
    std::uint64_t last_mask = 0;    // that it is part of
  };
  struct Open {  // what is still to be read for a mask
    std::uint32_t nodes = 0;
    Stack stack;
    friend auto operator<=>(const Open&, const Open&) = default;
  };
  struct Place {  // that prepare() comes to
    Stacks stacks;
    std::vector<Stack> tops;
  };

  bool find(const Stacks& stacks, std::span<const Stack> tops, std::uint64_t most_work, std::span<std::uint32_t>* mask);
  Reading* reading_of(std::uint32_t band, const Open& open, std::uint64_t most_work);
  // A band is the tokens of more than `above` bytes and up to `upto`.
  void find_follow();
  bool may_go_on(std::uint32_t node, const ByteSet& follow) const;
  static std::uint32_t above(std::uint32_t band) { return band == 0 ? 0 : kAlikeBytes[band - 1]; }
  static std::uint32_t upto(std::uint32_t band) { return band < kAlikeBytes.size() ? kAlikeBytes[band] : UINT32_MAX; }
  std::uint32_t class_of(std::uint32_t band, std::uint32_t state) const;
  // Of what a text may consist so that it leads back to what is at this depth of the frontier, or is like it in this band.
  Vocabulary::Classes find_loops(std::uint32_t band, std::size_t depth);
  bool leads_back(std::uint32_t band, std::size_t depth, std::size_t then) const;
  bool characters_lead_back(std::uint32_t band, std::size_t depth, std::size_t then, std::uint32_t left,
                            std::uint8_t first, std::uint8_t last);
  // Marks in mask_ the tokens below `root`, where depth 0 of the frontier is; lists in nodes_ where the bottom is reached.
  // False: it took more.
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
  std::vector<std::uint32_t> unit_of_;  // by state: the rule it belongs to, as a place in follow_
  std::vector<ByteSet> follow_;         // bytes that may come where the rule is over; first by rule, then by alike[0]
  Stacks local_stacks_;
  std::unordered_map<std::uint64_t, Reading> readings_;  // by list of nodes, and state or what it is alike to
  std::vector<NodeList> lists_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> list_with_hash_;
  std::uint32_t round_ = 0;  // of the room
  std::size_t room_words_;
  std::unique_ptr<std::uint32_t[]> room_;
  std::size_t num_used_ = 0;
  std::uint64_t num_nodes_seen_ = 0;
  std::uint64_t num_masks_ = 0;
  std::vector<std::uint32_t> mask_;         // of the reading being found
  std::vector<std::uint32_t> nodes_;        // in the same way
  std::vector<std::uint32_t> roots_;        // in the same way: where it begins
  std::vector<Open> open_, next_;           // scratch of find()
  std::vector<Vocabulary::Classes> loops_;  // of walk(), by depth
};

}  // namespace quire::grammar
