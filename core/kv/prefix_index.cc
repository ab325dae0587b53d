#include "core/kv/prefix_index.h"

#include <algorithm>
#include <bit>

#include "core/base/check.h"

namespace quire::kv {
namespace {

// The finaliser of MurmurHash3 (Appleby, public domain): every input bit reaches every output bit.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdu;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53u;
  return value ^ (value >> 33);
}

std::uint32_t common_beginning(std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto [end, _] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::uint32_t>(end - a.begin());
}

}  // namespace

PrefixIndex::PrefixIndex(BlockPool& pool, const PrefixIndexOptions& options)
    : pool_(pool),
      options_(options),
      block_tokens_(pool.block_tokens()),
      entries_(pool.num_blocks()),
      tokens_(std::size_t{pool.num_blocks()} * pool.block_tokens()) {
  CHECK_LE(options.hash_bits, 64u);
  const std::size_t enough = std::bit_ceil(std::size_t{2} * pool.num_blocks());
  const std::size_t num_buckets = std::min(enough, std::size_t{1} << std::min(options.hash_bits, 31u));
  full_.resize(num_buckets, pool.num_blocks());
  siblings_.resize(num_buckets, pool.num_blocks());
  hits_.reserve(pool.num_blocks());
  pool.on_emptied([this](BlockId block) { forget(block); });
}

std::span<const PrefixIndex::Hit> PrefixIndex::match(CacheRoot root, std::span<const TokenId> tokens) {
  hits_.clear();
  EntryId parent = kRoot;
  for (; tokens.size() >= block_tokens_; tokens = tokens.subspan(block_tokens_)) {
    const auto block_tokens = tokens.first(block_tokens_);
    const BlockId block = find_full(bucket_of(root, parent, block_tokens), root, parent, block_tokens);
    if (block == kNoBlock) break;
    parent = entries_[block.value].id;
    hits_.push_back({parent, block, block_tokens_});
  }
  if (options_.tails && !tokens.empty()) {
    const Hit tail = longest_beginning(root, parent, tokens);
    if (tail.num_tokens > 0) hits_.push_back(tail);
  }
  return hits_;
}

PrefixIndex::Hit PrefixIndex::insert(CacheRoot root, EntryId parent, std::span<const TokenId> tokens, BlockId block) {
  CHECK_EQ(tokens.size(), std::size_t{block_tokens_});
  const std::uint32_t bucket = bucket_of(root, parent, tokens);
  const BlockId there = find_full(bucket, root, parent, tokens);
  if (there != kNoBlock) return {entries_[there.value].id, there, block_tokens_};
  if (entries_[block.value].id != kRoot) forget(block);  // its own tail: now the block is full
  put(root, parent, tokens, block);
  full_.link(block, bucket);
  if (listener_ != nullptr) listener_->on_stored(entries_[block.value], this->tokens(block));
  return {entries_[block.value].id, block, block_tokens_};
}

void PrefixIndex::insert_tail(CacheRoot root, EntryId parent, std::span<const TokenId> tokens, BlockId block) {
  CHECK(!tokens.empty() && tokens.size() < block_tokens_);
  if (!options_.tails || longest_beginning(root, parent, tokens).num_tokens == tokens.size()) return;
  if (entries_[block.value].id != kRoot) forget(block);  // its own, shorter tail
  put(root, parent, tokens, block);
}

void PrefixIndex::put(CacheRoot root, EntryId parent, std::span<const TokenId> tokens, BlockId block) {
  Entry& entry = entries_[block.value];
  CHECK_EQ(entry.id, kRoot);
  entry = {EntryId(next_entry_++), parent, root, static_cast<std::uint32_t>(tokens.size())};
  std::ranges::copy(tokens, tokens_.begin() + static_cast<std::ptrdiff_t>(std::size_t{block.value} * block_tokens_));
  siblings_.link(block, bucket_of(root, parent, tokens.first(1)));
  pool_.watch(block, options_.keep);
  ++num_entries_;
}

void PrefixIndex::forget(BlockId block) {
  Entry& entry = entries_[block.value];
  CHECK_NE(entry.id, kRoot);
  if (entry.num_tokens == block_tokens_) {
    full_.unlink(block);
    if (listener_ != nullptr) listener_->on_removed(entry.id);
  }
  siblings_.unlink(block);
  entry = {};
  --num_entries_;
}

BlockId PrefixIndex::find_full(std::uint32_t bucket, CacheRoot root, EntryId parent,
                               std::span<const TokenId> tokens) const {
  for (std::uint32_t at = full_.heads[bucket]; at != kNone; at = full_.next[at]) {
    const BlockId block(at);
    if (is_child(block, root, parent) && std::ranges::equal(this->tokens(block), tokens)) return block;
  }
  return kNoBlock;
}

// Of the entries behind `parent`, the one that begins with most of `tokens`.
PrefixIndex::Hit PrefixIndex::longest_beginning(CacheRoot root, EntryId parent, std::span<const TokenId> tokens) const {
  Hit best;
  std::uint32_t looks = 0;
  for (std::uint32_t at = siblings_.heads[bucket_of(root, parent, tokens.first(1))];
       at != kNone && looks < kMaxSiblings; at = siblings_.next[at], ++looks) {
    const BlockId block(at);
    if (!is_child(block, root, parent)) continue;
    const std::uint32_t common = common_beginning(this->tokens(block), tokens);
    if (common > best.num_tokens) best = {entries_[at].id, block, common};
    if (common == tokens.size()) break;
  }
  return best;
}

bool PrefixIndex::is_child(BlockId block, CacheRoot root, EntryId parent) const {
  const Entry& entry = entries_[block.value];
  return entry.parent == parent && entry.root == root;
}

std::uint32_t PrefixIndex::bucket_of(CacheRoot root, EntryId parent, std::span<const TokenId> tokens) const {
  std::uint64_t hash = mixed(options_.hash_key ^ root.high);
  hash = mixed(hash ^ root.low) ^ parent.value;
  for (const TokenId token : tokens) hash = mixed(hash ^ options_.hash_key) + static_cast<std::uint32_t>(token);
  return static_cast<std::uint32_t>(mixed(hash) & (full_.heads.size() - 1));
}

void PrefixIndex::Chains::resize(std::size_t num_buckets, std::size_t num_blocks) {
  heads.assign(num_buckets, kNone);
  next.assign(num_blocks, kNone);
  previous.assign(num_blocks, kNone);
  bucket.assign(num_blocks, 0);
}

void PrefixIndex::Chains::link(BlockId block, std::uint32_t to_bucket) {
  const std::uint32_t at = block.value;
  bucket[at] = to_bucket;
  previous[at] = kNone;
  next[at] = heads[to_bucket];
  if (next[at] != kNone) previous[next[at]] = at;
  heads[to_bucket] = at;
}

void PrefixIndex::Chains::unlink(BlockId block) {
  const std::uint32_t at = block.value;
  if (previous[at] != kNone) {
    next[previous[at]] = next[at];
  } else {
    heads[bucket[at]] = next[at];
  }
  if (next[at] != kNone) previous[next[at]] = previous[at];
}

}  // namespace quire::kv
