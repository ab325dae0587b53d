#include "core/kv/entry_tree.h"

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

}  // namespace

EntryTree::EntryTree(std::uint32_t capacity, std::uint32_t block_tokens, std::uint64_t hash_key,
                     std::uint32_t hash_bits)
    : capacity_(capacity),
      block_tokens_(block_tokens),
      hash_key_(hash_key),
      entries_(std::size_t{capacity} + 1),
      links_(std::size_t{capacity} + 1),
      tokens_(std::size_t{capacity} * block_tokens) {
  CHECK_LE(hash_bits, 64u);
  const std::size_t enough = std::bit_ceil(std::size_t{capacity});
  const std::size_t num_buckets = std::min(enough, std::size_t{1} << std::min(hash_bits, 31u));
  full_.resize(num_buckets, capacity);
  siblings_.resize(num_buckets, capacity);
  free_.reserve(capacity);
  for (std::uint32_t place = capacity; place > 0; --place) free_.push_back(place - 1);
}

std::uint32_t EntryTree::find(CacheNamespace cache_namespace, std::uint32_t parent,
                              std::span<const TokenId> tokens) const {
  for (std::uint32_t at = full_.heads[bucket_of(cache_namespace, parent, tokens)]; at != kNone; at = full_.next[at]) {
    if (is_child(at, cache_namespace, parent) && std::ranges::equal(this->tokens(at), tokens)) return at;
  }
  return kNone;
}

std::uint32_t EntryTree::make(CacheNamespace cache_namespace, std::uint32_t parent, std::span<const TokenId> tokens) {
  CHECK(!tokens.empty() && tokens.size() <= block_tokens_);
  if (free_.empty()) return kNone;
  const std::uint32_t at = free_.back();
  free_.pop_back();
  entries_[at] = {.id = EntryId(next_entry_++ * capacity_ + at),
                  .parent = entries_[parent].id,
                  .cache_namespace = cache_namespace,
                  .num_tokens = static_cast<std::uint32_t>(tokens.size()),
                  .row = parent == root() ? 0 : entries_[parent].row + 1};
  std::ranges::copy(tokens, tokens_.begin() + static_cast<std::ptrdiff_t>(std::size_t{at} * block_tokens_));
  links_[at] = {.parent = parent, .next = links_[parent].first_child};
  if (links_[at].next != kNone) links_[links_[at].next].previous = at;
  links_[parent].first_child = at;
  siblings_.link(at, bucket_of(cache_namespace, parent, tokens.first(1)));
  if (is_full(at)) full_.link(at, bucket_of(cache_namespace, parent, tokens));
  return at;
}

void EntryTree::remove(std::uint32_t place) {
  Links& links = links_[place];
  CHECK(entries_[place].id != kRoot && links.first_child == kNone);
  if (is_full(place)) full_.unlink(place);
  siblings_.unlink(place);
  if (links.next != kNone) links_[links.next].previous = links.previous;
  (links.previous == kNone ? links_[links.parent].first_child : links_[links.previous].next) = links.next;
  links = {};
  entries_[place] = {};
  free_.push_back(place);
}

bool EntryTree::is_child(std::uint32_t place, CacheNamespace cache_namespace, std::uint32_t parent) const {
  return links_[place].parent == parent && entries_[place].cache_namespace == cache_namespace;
}

std::uint32_t EntryTree::bucket_of(CacheNamespace cache_namespace, std::uint32_t parent,
                                   std::span<const TokenId> tokens) const {
  std::uint64_t hash = mixed(hash_key_ ^ cache_namespace.high);
  hash = mixed(hash ^ cache_namespace.low) ^ entries_[parent].id.value;
  for (const TokenId token : tokens) hash = mixed(hash ^ hash_key_) + static_cast<std::uint32_t>(token);
  return static_cast<std::uint32_t>(mixed(hash) & (full_.heads.size() - 1));
}

void EntryTree::check_invariants() const {
  std::size_t num_used = 0;
  for (std::uint32_t at = 0; at < capacity_; ++at) {
    const Entry& entry = entries_[at];
    if (entry.id == kRoot) continue;
    ++num_used;
    CHECK_EQ(place_of(entry.id), at);
    const std::uint32_t parent = links_[at].parent;
    CHECK_EQ(entries_[parent].id, entry.parent);
    CHECK_LT(entry.parent, entry.id);
    CHECK(parent == root() || is_full(parent));
    CHECK(parent == root() || entries_[parent].cache_namespace == entry.cache_namespace);
    CHECK_EQ(entry.row, parent == root() ? 0 : entries_[parent].row + 1);
    if (links_[at].next != kNone) CHECK_EQ(links_[links_[at].next].previous, at);
    if (is_full(at)) CHECK_EQ(find(entry.cache_namespace, parent, tokens(at)), at);
  }
  CHECK_EQ(num_used + free_.size(), std::size_t{capacity_});
}

void EntryTree::Chains::resize(std::size_t num_buckets, std::size_t capacity) {
  heads.assign(num_buckets, kNone);
  next.assign(capacity, kNone);
  previous.assign(capacity, kNone);
  bucket.assign(capacity, 0);
}

void EntryTree::Chains::link(std::uint32_t at, std::uint32_t to_bucket) {
  bucket[at] = to_bucket;
  previous[at] = kNone;
  next[at] = heads[to_bucket];
  if (next[at] != kNone) previous[next[at]] = at;
  heads[to_bucket] = at;
}

void EntryTree::Chains::unlink(std::uint32_t at) {
  if (previous[at] != kNone) {
    next[previous[at]] = next[at];
  } else {
    heads[bucket[at]] = next[at];
  }
  if (next[at] != kNone) previous[next[at]] = previous[at];
}

}  // namespace quire::kv
