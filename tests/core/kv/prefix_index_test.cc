#include "core/kv/prefix_index.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <vector>

namespace quire::kv {
namespace {

constexpr std::uint32_t kBlock = 4;

class PrefixIndexTest : public ::testing::Test {
 protected:
  static constexpr CacheNamespace kOne{0, 1};
  static constexpr CacheNamespace kOther{0, 2};

  struct Hit {
    EntryId entry;
    BlockId block;
  };
  // The hits of full blocks.
  static std::vector<Hit> full_hits(PrefixIndex& index, std::span<const TokenId> prompt) REQUIRES(engine_role) {
    std::vector<Hit> hits;
    const PrefixIndex::Match match = index.match(kOne, prompt);
    for (std::size_t i = 0; i < match.num_tokens / kBlock; ++i) hits.push_back({match.entries[i], match.blocks[i]});
    return hits;
  }
  static std::uint32_t num_hit(PrefixIndex& index, CacheNamespace cache_namespace, std::span<const TokenId> prompt)
      REQUIRES(engine_role) {
    return index.match(cache_namespace, prompt).num_tokens;
  }
  // Enters a block; the entry, and the block to use.
  static Hit insert(PrefixIndex& index, CacheNamespace cache_namespace, EntryId parent, std::span<const TokenId> tokens,
                    BlockId block) REQUIRES(engine_role) {
    const std::optional<EntryId> entry = index.insert(cache_namespace, parent, tokens, std::span(&block, 1));
    return {entry.value(), block};
  }
  static void insert_partial(PrefixIndex& index, EntryId parent, std::span<const TokenId> tokens, BlockId block)
      REQUIRES(engine_role) {
    (void)index.insert_partial(kOne, parent, tokens, std::span(&block, 1));
  }

  static std::vector<TokenId> tokens(std::initializer_list<TokenId> values) { return values; }

  // Blocks of `tokens`, taken, put in and held; the entry of the last.
  EntryId put(BlockPool& pool, PrefixIndex& index, std::span<const TokenId> tokens, std::vector<BlockId>& held) {
    EntryId parent = PrefixIndex::kRoot;
    for (; tokens.size() >= kBlock; tokens = tokens.subspan(kBlock)) {
      const BlockId block = *pool.take();
      const Hit hit = insert(index, kOne, parent, tokens.first(kBlock), block);
      parent = hit.entry;
      held.push_back(block);
    }
    return parent;
  }

  RoleScope role_{engine_role};
};

TEST_F(PrefixIndexTest, FindsTheLongestChainOfFullBlocksAndNoMoreThanAsked) {
  BlockPool pool(8, kBlock);
  PrefixIndex index(pool, {});
  std::vector<BlockId> held;
  const auto prompt = tokens({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  put(pool, index, prompt, held);
  EXPECT_EQ(full_hits(index, prompt).size(), 3u);
  EXPECT_EQ(full_hits(index, std::span(prompt).first(8)).size(), 2u);
  EXPECT_EQ(full_hits(index, std::span(prompt).first(11)).size(), 2u);
  EXPECT_EQ(full_hits(index, std::span(prompt).first(3)).size(), 0u);
  EXPECT_EQ(full_hits(index, tokens({1, 2, 3, 4, 5, 6, 7, 99})).size(), 1u);
  EXPECT_EQ(full_hits(index, tokens({5, 6, 7, 8})).size(), 0u) << "the same tokens behind another parent";
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(full_hits(index, prompt)[i].block, held[i]);
}

TEST_F(PrefixIndexTest, CollidingBucketsAndParentsNeverServeAnotherPrompt) {
  for (const std::uint32_t bits : {0u, 1u, 8u, 64u}) {
    BlockPool pool(600, kBlock);
    PrefixIndex index(pool, {.hash_key = 7, .hash_bits = bits});
    std::mt19937 random(bits);
    std::map<std::vector<TokenId>, BlockId> truth;  // every prefix of full blocks that went in → its block
    std::vector<BlockId> held;
    for (int prompt_index = 0; prompt_index < 150; ++prompt_index) {
      std::vector<TokenId> prompt;
      EntryId parent = PrefixIndex::kRoot;
      for (std::size_t i = 0; i < 1 + random() % 4; ++i) {
        for (std::uint32_t k = 0; k < kBlock; ++k) prompt.push_back(static_cast<TokenId>(random() % 2));
        const BlockId block = *pool.take();
        const auto hit = insert(index, kOne, parent, std::span(prompt).last(kBlock), block);
        const auto [at, is_new] = truth.emplace(prompt, block);
        ASSERT_EQ(hit.block, at->second);
        ASSERT_EQ(hit.block == block, is_new);
        if (!is_new) pool.give_back(block);
        parent = hit.entry;
      }
      const auto hits = full_hits(index, prompt);
      ASSERT_EQ(hits.size(), prompt.size() / kBlock);
      for (std::size_t i = 0; i < hits.size(); ++i) {
        const std::vector<TokenId> prefix(prompt.begin(),
                                          prompt.begin() + static_cast<std::ptrdiff_t>((i + 1) * kBlock));
        ASSERT_EQ(hits[i].block, truth.at(prefix));
      }
    }
    EXPECT_EQ(index.num_entries(), truth.size());
  }
}

TEST_F(PrefixIndexTest, BlocksNobodyHoldsAreKeptUntilTheRoomIsNeededLeastRecentlyWantedFirst) {
  BlockPool pool(4, kBlock);
  PrefixIndex index(pool, {});
  std::vector<BlockId> old_blocks;
  std::vector<BlockId> new_blocks;
  const auto old_prompt = tokens({1, 1, 1, 1, 2, 2, 2, 2});
  const auto new_prompt = tokens({3, 3, 3, 3, 4, 4, 4, 4});
  put(pool, index, old_prompt, old_blocks);
  put(pool, index, new_prompt, new_blocks);
  pool.give_back(old_blocks[1]);
  pool.give_back(old_blocks[0]);
  pool.give_back(new_blocks[1]);
  pool.give_back(new_blocks[0]);
  EXPECT_EQ(pool.num_free(), 4u);
  EXPECT_EQ(pool.num_cached_blocks(), 4u);
  pool.check_invariants();

  for (const Hit& hit : full_hits(index, old_prompt)) pool.share(hit.block);  // wanted again
  pool.give_back(old_blocks[1]);
  pool.give_back(old_blocks[0]);
  EXPECT_EQ(*pool.take(), new_blocks[1]) << "the leaf before its parent";
  EXPECT_EQ(full_hits(index, new_prompt).size(), 1u);
  EXPECT_EQ(*pool.take(), new_blocks[0]);
  EXPECT_EQ(full_hits(index, new_prompt).size(), 0u);
  EXPECT_EQ(full_hits(index, old_prompt).size(), 2u);
  EXPECT_EQ(index.num_entries(), 2u);
  pool.check_invariants();
}

TEST_F(PrefixIndexTest, AHeldBlockIsNeverEmptied) {
  BlockPool pool(2, kBlock);
  PrefixIndex index(pool, {});
  std::vector<BlockId> held;
  const auto prompt = tokens({1, 2, 3, 4, 5, 6, 7, 8});
  put(pool, index, prompt, held);
  EXPECT_FALSE(pool.take());
  EXPECT_EQ(full_hits(index, prompt).size(), 2u);
}

TEST_F(PrefixIndexTest, AnEntryWhoseParentHasLostItsBlockIsNotFoundUntilThatHasOneAgain) {
  BlockPool pool(3, kBlock);
  PrefixIndex index(pool, {});
  const auto first = tokens({1, 1, 1, 1});
  const auto child = tokens({9, 9, 9, 9});
  const BlockId parent_block = *pool.take();
  const EntryId parent = insert(index, kOne, PrefixIndex::kRoot, first, parent_block).entry;
  const BlockId child_block = *pool.take();
  (void)insert(index, kOne, parent, child, child_block);
  pool.give_back(parent_block);  // against the usual order: the parent goes first
  (void)*pool.take();
  ASSERT_EQ(*pool.take(), parent_block);
  const EntryId other = insert(index, kOne, PrefixIndex::kRoot, tokens({2, 2, 2, 2}), parent_block).entry;
  EXPECT_NE(other, parent) << "an id is never used again";
  EXPECT_EQ(full_hits(index, tokens({2, 2, 2, 2, 9, 9, 9, 9})).size(), 1u);
  EXPECT_EQ(full_hits(index, tokens({1, 1, 1, 1, 9, 9, 9, 9})).size(), 0u);
  EXPECT_EQ(index.num_entries(), 3u);
  index.check_invariants();
  pool.give_back(parent_block);
  ASSERT_EQ(*pool.take(), parent_block);
  EXPECT_EQ(insert(index, kOne, PrefixIndex::kRoot, first, parent_block).entry, parent);
  EXPECT_EQ(full_hits(index, tokens({1, 1, 1, 1, 9, 9, 9, 9})).size(), 2u);
}

TEST_F(PrefixIndexTest, EvictingABlockOfAFullGroupEvictsThoseBehindItThatNobodyHolds) {
  BlockPool pool(4, kBlock);
  PrefixIndex index(pool, {});
  std::vector<BlockId> held;
  put(pool, index, tokens({1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4}), held);
  for (const std::size_t i : {0, 1, 3}) pool.give_back(held[i]);  // against the usual order
  EXPECT_EQ(*pool.take(), held[0]);
  EXPECT_EQ(pool.num_empty(), 2u);
  EXPECT_EQ(pool.num_evicted(), 3u);
  EXPECT_EQ(index.num_relied_tokens(held[2]), kBlock) << "a held block stays";
  EXPECT_EQ(index.num_entries(), 3u) << "and so do the entries before it";
  index.check_invariants();
  pool.give_back(held[2]);
  pool.evict_all();
  EXPECT_EQ(index.num_entries(), 0u);
  index.check_invariants();
}

TEST_F(PrefixIndexTest, PromptsMeetInEqualNamespacesAlone) {
  for (const std::uint32_t bits : {0u, 8u, 64u}) {
    BlockPool pool(8, kBlock);
    PrefixIndex index(pool, {.hash_bits = bits});
    const auto prompt = tokens({1, 2, 3, 4, 5, 6});
    const BlockId full = *pool.take();
    const BlockId partial = *pool.take();
    const EntryId parent = insert(index, kOne, PrefixIndex::kRoot, std::span(prompt).first(4), full).entry;
    insert_partial(index, parent, std::span(prompt).subspan(4), partial);
    EXPECT_EQ(num_hit(index, kOne, prompt), 6u);
    EXPECT_EQ(num_hit(index, kOther, prompt), 0u);
    EXPECT_EQ(num_hit(index, CacheNamespace{1, 1}, prompt), 0u);
    const BlockId own = *pool.take();
    EXPECT_EQ(insert(index, kOther, PrefixIndex::kRoot, std::span(prompt).first(4), own).block, own) << "not folded";
    EXPECT_EQ(num_hit(index, kOther, prompt), 4u);
  }
}

TEST_F(PrefixIndexTest, PartOfABlockIsFoundForAsManyTokensAsAgree) {
  BlockPool pool(8, kBlock);
  PrefixIndex index(pool, {});
  std::vector<BlockId> held;
  put(pool, index, tokens({1, 2, 3, 4, 5, 6, 7, 8}), held);
  for (const auto& [prompt, expected] :
       {std::pair(tokens({1, 2, 3, 4, 5, 6, 7}), 7u), std::pair(tokens({1, 2, 3, 4, 5, 6, 99, 98}), 6u),
        std::pair(tokens({1, 2, 99}), 2u), std::pair(tokens({1}), 1u), std::pair(tokens({9}), 0u)}) {
    EXPECT_EQ(num_hit(index, kOne, prompt), expected);
  }
  EXPECT_EQ(index.num_relied_tokens(held[1]), kBlock);
}

TEST_F(PrefixIndexTest, APartialBlockGrowsInItsOwnBlockAndBecomesAFullEntry) {
  BlockPool pool(4, kBlock);
  PrefixIndex index(pool, {});
  const auto prompt = tokens({1, 2, 3, 4});
  const BlockId block = *pool.take();
  for (std::uint32_t n = 1; n < kBlock; ++n) {
    insert_partial(index, PrefixIndex::kRoot, std::span(prompt).first(n), block);
    EXPECT_EQ(num_hit(index, kOne, prompt), n);
    EXPECT_EQ(index.num_relied_tokens(block), n);
    EXPECT_EQ(index.num_entries(), 1u);
  }
  EXPECT_EQ(insert(index, kOne, PrefixIndex::kRoot, prompt, block).block, block);
  EXPECT_EQ(full_hits(index, prompt).size(), 1u);
  EXPECT_EQ(index.num_entries(), 1u);
  const BlockId other = *pool.take();
  insert_partial(index, PrefixIndex::kRoot, std::span(prompt).first(3), other);
  EXPECT_EQ(index.num_relied_tokens(other), 0u) << "the full block begins with them already";
}

TEST_F(PrefixIndexTest, WithoutKeepingEntriesLiveAsLongAsSomebodyHoldsTheirBlocks) {
  BlockPool pool(4, kBlock);
  PrefixIndex index(pool, {.keep = false});
  std::vector<BlockId> held;
  const auto prompt = tokens({1, 2, 3, 4});
  put(pool, index, prompt, held);
  pool.share(held[0]);
  pool.give_back(held[0]);
  EXPECT_EQ(num_hit(index, kOne, prompt), 4u);
  pool.give_back(held[0]);
  EXPECT_EQ(num_hit(index, kOne, prompt), 0u);
  EXPECT_EQ(index.num_entries(), 0u);
  EXPECT_EQ(pool.num_empty(), 4u);
  pool.check_invariants();
}

TEST_F(PrefixIndexTest, WithoutPartialBlocksOnlyFullBlocksAreFound) {
  BlockPool pool(4, kBlock);
  PrefixIndex index(pool, {.partial_blocks = false});
  std::vector<BlockId> held;
  put(pool, index, tokens({1, 2, 3, 4, 5, 6, 7, 8}), held);
  EXPECT_EQ(num_hit(index, kOne, tokens({1, 2, 3, 4, 5, 6, 7})), 4u);
}

class Received final : public PrefixIndex::Listener {
 public:
  void on_stored(const PrefixIndex::Entry& entry, std::span<const TokenId> tokens) override {
    EXPECT_EQ(tokens.size(), kBlock);
    EXPECT_TRUE(entries.emplace(entry.id, std::vector(tokens.begin(), tokens.end())).second) << "it was there already";
  }
  void on_removed(EntryId entry) override { EXPECT_EQ(entries.erase(entry), 1u) << "nobody said that it was there"; }

  std::map<EntryId, std::vector<TokenId>> entries;
};

TEST_F(PrefixIndexTest, ItsListenerGetsTheFullEntries) {
  for (const bool keep : {true, false}) {
    BlockPool pool(24, kBlock);
    PrefixIndex index(pool, {.keep = keep});
    Received heard;
    index.listen(heard);
    std::mt19937 random(3);
    std::vector<BlockId> held;
    for (int turn = 0; turn < 3000; ++turn) {
      EntryId parent = PrefixIndex::kRoot;
      for (int depth = 0; depth < 4 && pool.num_free() > 0; ++depth) {
        std::vector<TokenId> block_tokens(1 + random() % kBlock);
        for (TokenId& token : block_tokens) token = static_cast<TokenId>(random() % 2);
        const BlockId block = *pool.take();
        held.push_back(block);
        if (block_tokens.size() < kBlock) {
          insert_partial(index, parent, block_tokens, block);
          if (random() % 2 == 0) break;
          block_tokens.resize(kBlock, 1);  // the block grows full
        }
        const Hit hit = insert(index, kOne, parent, block_tokens, block);
        parent = hit.entry;
        if (hit.block == block) continue;
        pool.share(hit.block);
        pool.give_back(block);
        held.back() = hit.block;
      }
      while (held.size() > 12) {
        std::swap(held[random() % held.size()], held.back());
        pool.give_back(held.back());
        held.pop_back();
      }
      if (random() % 50 == 0) pool.evict_all();
      std::map<EntryId, std::vector<TokenId>> full;
      for (std::uint32_t i = 0; i < pool.num_blocks(); ++i) {
        const auto tokens = index.tokens(BlockId(i));
        if (tokens.size() == kBlock) full[index.entry(BlockId(i)).id].assign(tokens.begin(), tokens.end());
      }
      ASSERT_EQ(heard.entries, full) << "turn " << turn;
    }
    EXPECT_EQ(pool.num_evicted() > 0, keep);
  }
}

TEST_F(PrefixIndexTest, SharingAnEmptyBlockDies) {
  BlockPool pool(2, kBlock);
  const BlockId block = *pool.take();
  pool.give_back(block);
  EXPECT_DEATH(pool.share(block), "CHECK failed");
}

}  // namespace
}  // namespace quire::kv
