#include "api/limits/request_book.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/check.h"

namespace quire::api::requests {
namespace {

// Takes the same time for any position of the first difference.
bool equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

bool may_know(const RequestRecord& record, std::string_view key, const RequestBook::Asker& asker) {
  if (!asker.sees_all && record.owner != asker.owner) return false;
  if (key.empty() && (asker.sees_all || !asker.owner.empty())) return true;
  return equal(record.key, key);
}

}  // namespace

void RequestBook::enter(std::shared_ptr<RequestRecord> record) {
  std::string id = record->id;
  const std::lock_guard lock(mutex_);
  running_.insert(record);
  pages_.emplace(std::move(id), std::move(record));
}

void RequestBook::withdraw(const std::shared_ptr<RequestRecord>& record) {
  const std::lock_guard lock(mutex_);
  pages_.erase(page_of(*record));
  running_.erase(record);
}

void RequestBook::leave(const std::shared_ptr<RequestRecord>& record) {
  const std::lock_guard lock(mutex_);
  const auto at = page_of(*record);
  CHECK(at != pages_.end());
  running_.erase(record);
  record->streams.clear();
  if (max_finished_ == 0) {
    pages_.erase(at);
    return;
  }
  finished_.push_back(record);
  num_timelines_ += record->timelines.size();
  while (finished_.size() > max_finished_) drop_oldest();
  while (finished_.size() > 1 && num_timelines_ > max_finished_ * kTimelinesPerRequest) drop_oldest();
}

std::optional<RequestBook::Found> RequestBook::find(std::string_view id, std::string_view key, Asker asker) const {
  const std::lock_guard lock(mutex_);
  const auto at = page_of(id, key, asker);
  if (at == pages_.end()) return std::nullopt;
  return Found{at->second, running_.contains(at->second)};
}

bool RequestBook::cancel(std::string_view id, std::string_view key, Asker asker) {
  const std::lock_guard lock(mutex_);
  const auto at = page_of(id, key, asker);
  if (at == pages_.end() || !running_.contains(at->second)) return false;
  at->second->cancelled.store(true, std::memory_order_release);
  for (const std::weak_ptr<bridge::TokenStream>& one : at->second->streams) {
    if (const auto stream = one.lock()) stream->cancel();
  }
  return true;
}

RequestBook::Running RequestBook::running(std::size_t max_records) const {
  Running out;
  const std::lock_guard lock(mutex_);
  const std::size_t num_records = std::min(max_records, running_.size());
  out.records.assign(running_.begin(), std::next(running_.begin(), static_cast<std::ptrdiff_t>(num_records)));
  out.left_out = running_.size() - num_records;
  return out;
}

RequestBook::Pages::const_iterator RequestBook::page_of(const RequestRecord& record) const {
  const auto [begin, end] = pages_.equal_range(record.id);
  for (auto at = begin; at != end; ++at) {
    if (at->second.get() == &record) return at;
  }
  return pages_.end();
}

// If several requests have the same id and key, finds one that runs, else any of them.
RequestBook::Pages::const_iterator RequestBook::page_of(std::string_view id, std::string_view key,
                                                        const Asker& asker) const {
  const auto [begin, end] = pages_.equal_range(id);
  auto found = pages_.end();
  for (auto at = begin; at != end; ++at) {
    if (!may_know(*at->second, key, asker)) continue;
    if (found == pages_.end() || running_.contains(at->second)) found = at;
  }
  return found;
}

void RequestBook::drop_oldest() {
  const std::shared_ptr<RequestRecord> oldest = std::move(finished_.front());
  finished_.pop_front();
  num_timelines_ -= oldest->timelines.size();
  pages_.erase(page_of(*oldest));
}

}  // namespace quire::api::requests
