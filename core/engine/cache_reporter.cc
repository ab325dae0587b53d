#include "core/engine/cache_reporter.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace quire::engine {

using flow::CacheChange;
using flow::CacheChanges;

CacheReporter::CacheReporter(const kv::BlockPool& pool, kv::PrefixIndex& index, bridge::CacheFeed& feed,
                             observe::Metrics& metrics)
    : pool_(pool), index_(index), feed_(feed), metrics_(metrics), batch_(std::make_unique<CacheChanges>()) {
  index.listen(*this);
}

void CacheReporter::on_stored(const kv::PrefixIndex::Entry& entry, std::span<const TokenId> tokens) {
  if (says_all_) return;
  batch_->changes.push_back({CacheChange::Kind::kStored, entry.id.value, entry.parent.value, entry.root});
  batch_->tokens.insert(batch_->tokens.end(), tokens.begin(), tokens.end());
}

void CacheReporter::on_removed(kv::EntryId entry) {
  if (says_all_) return;
  batch_->changes.push_back({CacheChange::Kind::kRemoved, entry.value, 0, {}});
}

void CacheReporter::say_all() {
  *batch_ = {};
  says_all_ = true;
}

void CacheReporter::report() {
  if (feed_.full()) return lose();
  if (says_all_) add_all();
  if (batch_->changes.empty()) return;
  batch_->number = next_number_++;
  feed_.put(std::exchange(batch_, std::make_unique<CacheChanges>()));
}

// Its number is never seen: whoever counts knows. What is lost while everything is to be said anew is no loss.
void CacheReporter::lose() {
  if (batch_->changes.empty()) return;
  ++next_number_;
  metrics_.kv_event_batches_lost.add();
  say_all();
}

void CacheReporter::add_all() {
  const std::uint32_t block_tokens = pool_.block_tokens();
  std::vector<BlockId> full;
  for (std::uint32_t i = 0; i < pool_.num_blocks(); ++i) {
    if (index_.entry(BlockId(i)).num_tokens == block_tokens) full.push_back(BlockId(i));
  }
  // A child's number is higher than its parent's.
  std::ranges::sort(full, {}, [this](BlockId block) { return index_.entry(block).id; });
  says_all_ = false;
  batch_->changes.push_back({});
  for (const BlockId block : full) on_stored(index_.entry(block), index_.tokens(block));
}

}  // namespace quire::engine
