#include "core/kv/prefix_index.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::kv {
namespace {

// The finaliser of MurmurHash3 (Appleby, public domain): every input bit reaches every output bit.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdu;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53u;
  return value ^ (value >> 33);
}

}  // namespace

PrefixIndex::PrefixIndex(BlockPool& pool, const PrefixIndexOptions& options)
    : pool_(pool), options_(options), entries_(pool.num_blocks()) {
  buckets_.reserve(pool.num_blocks());
  for (Entry& entry : entries_) entry.tokens.reserve(pool.block_tokens());
  pool.on_emptied([this](BlockId block) { forget(block); });
}

std::uint64_t PrefixIndex::bucket_of(EntryId parent, std::span<const TokenId> tokens) const {
  std::uint64_t hash = mixed(options_.hash_key ^ parent.value);
  for (const TokenId token : tokens) hash = mixed(hash ^ options_.hash_key) + static_cast<std::uint32_t>(token);
  hash = mixed(hash);
  return options_.hash_bits >= 64 ? hash : hash & ((std::uint64_t{1} << options_.hash_bits) - 1);
}

const PrefixIndex::Entry* PrefixIndex::find(EntryId parent, std::span<const TokenId> tokens, BlockId& block) const {
  const auto [first, last] = buckets_.equal_range(bucket_of(parent, tokens));
  for (auto at = first; at != last; ++at) {
    const Entry& entry = entries_[at->second.value];
    if (entry.parent == parent && std::ranges::equal(entry.tokens, tokens)) {
      block = at->second;
      return &entry;
    }
  }
  return nullptr;
}

std::span<const PrefixIndex::Hit> PrefixIndex::match(std::span<const TokenId> tokens, std::uint32_t max_blocks) {
  const std::uint32_t block_tokens = pool_.block_tokens();
  hits_.clear();
  EntryId parent = kRoot;
  while (hits_.size() < max_blocks && tokens.size() >= block_tokens) {
    BlockId block;
    const Entry* entry = find(parent, tokens.first(block_tokens), block);
    if (entry == nullptr) break;
    hits_.push_back({entry->id, block});
    parent = entry->id;
    tokens = tokens.subspan(block_tokens);
  }
  return hits_;
}

PrefixIndex::Hit PrefixIndex::insert(EntryId parent, std::span<const TokenId> tokens, BlockId block) {
  CHECK_EQ(tokens.size(), std::size_t{pool_.block_tokens()});
  BlockId there;
  if (const Entry* entry = find(parent, tokens, there)) return {entry->id, there};
  Entry& entry = entries_[block.value];
  CHECK_EQ(entry.id, EntryId(0));
  entry.id = EntryId(next_entry_++);
  entry.parent = parent;
  entry.bucket = bucket_of(parent, tokens);
  entry.tokens.assign(tokens.begin(), tokens.end());
  buckets_.emplace(entry.bucket, block);
  pool_.keep(block);
  return {entry.id, block};
}

void PrefixIndex::forget(BlockId block) {
  Entry& entry = entries_[block.value];
  CHECK_NE(entry.id, EntryId(0));
  const auto [first, last] = buckets_.equal_range(entry.bucket);
  const auto at = std::find_if(first, last, [block](const auto& pair) { return pair.second == block; });
  CHECK(at != last);
  buckets_.erase(at);
  entry.id = EntryId(0);
}

}  // namespace quire::kv
