// The valid API keys and their callers.
// Shape   made from entries and the previous table: a name in both keeps its account (sequences under way, counters),
//         and a tenant keeps its number.
// Owner   shared by concurrent::Latest and by lookups under way.
// Thread  any; constant.
// Time    find() hashes the given key and compares the hash with every entry in constant time, so that its duration
//         reveals nothing about the keys.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/limits/key_file.h"
#include "api/wire/caller.h"

namespace quire::api::keys {

class KeyTable {
 public:
  // `before` is the previous table, or null. Names and hashes are unique.
  KeyTable(const std::vector<KeyEntry>& entries, const KeyTable* before);

  std::shared_ptr<const Caller> find(std::string_view secret) const;  // null: unknown
  const std::vector<std::shared_ptr<const Caller>>& callers() const { return callers_; }

 private:
  std::uint32_t number_of(const std::string& tenant);

  std::vector<Digest> digests_;  // [callers]
  std::vector<std::shared_ptr<const Caller>> callers_;
  std::map<std::string, std::uint32_t, std::less<>> tenants_;  // tenant → number: all so far, except the default
};

}  // namespace quire::api::keys
