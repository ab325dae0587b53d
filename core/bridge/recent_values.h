// What was made last, by name: a bounded map that several threads look into before they make it again.
// Shape   at most max_values of them, and of what they hold, names included, at most max_bytes; the one that was
//         asked for longest ago goes first.
// Owner   whoever makes values; what was found lives as long as somebody holds it.
// Thread  any.
// Fails   never: what does not fit is not kept.
// Source  least recently used; ours.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace quire::bridge {

template <typename Value>
class RecentValues {
 public:
  RecentValues(std::size_t max_values, std::size_t max_bytes) : max_values_(max_values), max_bytes_(max_bytes) {}

  std::shared_ptr<const Value> find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->value;
  }

  // It holds `bytes` together with its name. Two threads may have made the same: the first one stays.
  void keep(std::string name, std::shared_ptr<const Value> value, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > max_bytes_ || by_name_.contains(name)) return;
    bytes_ += bytes;
    entries_.push_front({std::move(name), std::move(value), bytes});
    by_name_[entries_.front().name] = entries_.begin();
    while (entries_.size() > max_values_ || bytes_ > max_bytes_) {
      bytes_ -= entries_.back().bytes;
      by_name_.erase(entries_.back().name);
      entries_.pop_back();
    }
  }

  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }
  std::size_t num_bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    std::string name;
    std::shared_ptr<const Value> value;
    std::size_t bytes;
  };

  const std::size_t max_values_;
  const std::size_t max_bytes_;
  std::mutex mutex_;                                                         // guards everything below
  std::list<Entry> entries_;                                                 // the one asked for last in front
  std::map<std::string_view, typename std::list<Entry>::iterator> by_name_;  // names are the entries' own
  std::size_t bytes_ = 0;
};

}  // namespace quire::bridge
