// The keys that count now, and whose they are.
// Shape   made of entries and of the table before: a name that was there keeps its account, with what is under way and
//         what was counted, and a tenant its number.
// Owner   shared: bridge::Latest, and whoever is looking something up.
// Thread  any; constant.
// Source  find() hashes what was given and compares it with every entry, all of each, whatever it has found: its time says
//         nothing of the keys.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/keys/caller.h"
#include "api/keys/key_file.h"

namespace quire::api::keys {

class KeyTable {
 public:
  // `before` may be null. Names and hashes differ.
  KeyTable(const std::vector<KeyEntry>& entries, const KeyTable* before);

  std::shared_ptr<const Caller> find(std::string_view secret) const;  // null: nobody's
  const std::vector<std::shared_ptr<const Caller>>& callers() const { return callers_; }

 private:
  std::uint32_t number_of(const std::string& tenant);

  std::vector<Digest> digests_;  // [callers]
  std::vector<std::shared_ptr<const Caller>> callers_;
  std::map<std::string, std::uint32_t, std::less<>> tenants_;  // that were ever there; the default one is not in here
};

}  // namespace quire::api::keys
