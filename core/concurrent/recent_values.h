// A bounded LRU cache by name, of immutable values that are expensive to make.
// Shape   at most max_values values, and at most max_bytes bytes of values and names; the least recently used one is
//         evicted first.
// Owner   the maker of the values. A value that was found lives as long as it is held.
// Thread  any: a mutex guards it.
// Fails   never: a value of more than max_bytes is not kept.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace quire::concurrent {

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

  // Adds a value that has `bytes` bytes, name included. If two threads have made the same one, the first stays.
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
  std::list<Entry> entries_;                                                 // most recently used first
  std::map<std::string_view, typename std::list<Entry>::iterator> by_name_;  // keys: views of the entries' names
  std::size_t bytes_ = 0;
};

}  // namespace quire::concurrent
