#include "core/engine/cache/cache_reporter.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace quire::engine {

using flow::CacheChange;
using flow::CacheChanges;

CacheReporter::CacheReporter(kv::PrefixIndex& index, bridge::CacheFeed& feed, observe::Metrics& metrics)
    : index_(index), feed_(feed), metrics_(metrics), batch_(std::make_unique<CacheChanges>()) {
  index.listen(*this);
}

void CacheReporter::on_stored(const kv::PrefixIndex::Entry& entry, std::span<const TokenId> tokens) {
  if (says_all_) return;
  batch_->changes.push_back({CacheChange::Kind::kStored, entry.id.value, entry.parent.value, entry.cache_namespace});
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

// The lost batch takes a number that is never sent, so that subscribers notice the gap. While the whole cache is to be
// reported, no changes are recorded, and none are lost.
void CacheReporter::lose() {
  if (batch_->changes.empty()) return;
  ++next_number_;
  metrics_.kv_event_batches_lost.add();
  say_all();
}

void CacheReporter::add_all() {
  std::vector<std::uint32_t> places;
  for (std::uint32_t place = 0; place < index_.num_places(); ++place) {
    if (index_.is_reported(place)) places.push_back(place);
  }
  // Parents first: a child's entry id is higher than its parent's.
  std::ranges::sort(places, {}, [this](std::uint32_t place) { return index_.entry_at(place).id; });
  says_all_ = false;
  batch_->changes.push_back({});
  for (const std::uint32_t place : places) on_stored(index_.entry_at(place), index_.tokens_at(place));
}

}  // namespace quire::engine
