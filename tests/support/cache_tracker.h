// What somebody outside knows of a prefix cache who hears its changes and nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "core/bridge/cache_feed.h"
#include "core/flow/cache_changes.h"
#include "core/kv/prefix_index.h"

namespace quire::testing {

class CacheTracker {
 public:
  explicit CacheTracker(std::uint32_t block_tokens) : block_tokens_(block_tokens) {}

  // Takes what waits. Dies of what cannot be true: a block that comes twice, goes unknown or stands behind a block that
  // was never there, and a lost batch that nothing makes good.
  void drain(bridge::CacheFeed& feed) {
    while (const bridge::CacheFeed::Batch batch = feed.take()) receive(*batch);
  }
  void receive(const flow::CacheChanges& batch) {
    using Kind = flow::CacheChange::Kind;
    CHECK(!batch.changes.empty());
    CHECK_GE(batch.number, next_number_);
    CHECK(batch.number == next_number_ || batch.changes.front().kind == Kind::kCleared);
    num_lost_ += batch.number - next_number_;
    next_number_ = batch.number + 1;
    std::span<const TokenId> tokens = batch.tokens;
    for (const flow::CacheChange& change : batch.changes) {
      if (change.kind == Kind::kCleared) {
        known_.clear();
        ++num_cleared_;
      } else if (change.kind == Kind::kRemoved) {
        CHECK_EQ(known_.erase(change.entry), std::size_t{1});
      } else {
        CHECK_GT(change.entry, change.parent);
        const auto of_block = tokens.first(block_tokens_);
        tokens = tokens.subspan(block_tokens_);
        const bool is_new =
            known_
                .emplace(change.entry, Known{change.parent, change.cache_namespace, {of_block.begin(), of_block.end()}})
                .second;
        CHECK(is_new);
      }
    }
    CHECK(tokens.empty());
  }

  // Every full entry of the index is known with its tokens, and nothing else is.
  bool knows(const kv::PrefixIndex& index) const {
    std::size_t num_full = 0;
    for (std::uint32_t place = 0; place < index.num_places(); ++place) {
      const kv::PrefixIndex::Entry& entry = index.entry_at(place);
      if (entry.num_tokens != block_tokens_ || index.slots_at(place)[0] == kNoBlock) continue;
      ++num_full;
      const auto known = known_.find(entry.id.value);
      if (known == known_.end() || known->second.parent != entry.parent.value ||
          known->second.cache_namespace != entry.cache_namespace ||
          !std::ranges::equal(known->second.tokens, index.tokens_at(place))) {
        return false;
      }
    }
    return num_full == known_.size();
  }

  // How much of a prompt lies in whole blocks that follow each other from the root.
  std::uint32_t num_cached(CacheNamespace cache_namespace, std::span<const TokenId> prompt) const {
    std::uint64_t parent = 0;
    std::uint32_t num = 0;
    for (; prompt.size() >= block_tokens_; prompt = prompt.subspan(block_tokens_), num += block_tokens_) {
      const auto next = std::ranges::find_if(known_, [&](const auto& one) {
        return one.second.parent == parent && one.second.cache_namespace == cache_namespace &&
               std::ranges::equal(one.second.tokens, prompt.first(block_tokens_));
      });
      if (next == known_.end()) break;
      parent = next->first;
    }
    return num;
  }

  std::size_t size() const { return known_.size(); }
  std::uint64_t num_lost() const { return num_lost_; }
  std::uint64_t num_cleared() const { return num_cleared_; }

 private:
  struct Known {
    std::uint64_t parent = 0;
    CacheNamespace cache_namespace{};
    std::vector<TokenId> tokens;
  };

  const std::uint32_t block_tokens_;
  std::map<std::uint64_t, Known> known_;
  std::uint64_t next_number_ = 0;
  std::uint64_t num_lost_ = 0;
  std::uint64_t num_cleared_ = 0;
};

}  // namespace quire::testing
