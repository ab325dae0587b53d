// The key file: one API key per line, as name=value pairs separated by blanks. docs/security.md describes it.
//   name=alice hash=sha256:9f86… role=user max_running=4 max_queued=16 tokens_per_minute=60000 tenant=team-a weight=3
// Shape   name and hash are required. Empty lines and lines that begin with # are ignored.
// Thread  any; pure functions.
// Fails   parse_key_file() returns every problem of the file, with its line and field. No problem shows a hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/limits/secret.h"
#include "api/wire/caller.h"
#include "core/bridge/account.h"

namespace quire::api::keys {

inline constexpr std::size_t kMaxKeys = 1024;  // in a file; it bounds the metric series, which are labelled by key
inline constexpr std::size_t kMaxNameBytes = 64;
inline constexpr std::size_t kMaxLineBytes = 1024;
inline constexpr std::uint32_t kMaxWeight = 1000;
inline constexpr std::size_t kMaxFileBytes = kMaxKeys * kMaxLineBytes;
inline constexpr std::string_view kDefaultTenant = "default";  // of servers without keys and of pinned prefixes

struct KeyEntry {
  std::string name;
  Digest digest{};
  Role role = Role::kUser;
  bridge::AccountLimits limits{};
  std::string tenant{};      // empty: a tenant of its own, with its name
  std::uint32_t weight = 1;  // 1 .. kMaxWeight
  bool monitors = false;     // may read /metrics, too; never set by a key file, which has role=monitor
};

struct KeyFile {
  std::vector<KeyEntry> entries;
  std::vector<std::string> problems;  // "line 3: role: …"; if there are any, `entries` is incomplete
};

KeyFile parse_key_file(std::string_view text);

// True for 1 to kMaxNameBytes letters, digits and - _ . as names and tenants have.
bool is_name(std::string_view text);
std::optional<Role> role_of(std::string_view word);
const char* name_of(Role role);

// The line of an entry, without the line break.
std::string line_of(const KeyEntry& entry);

}  // namespace quire::api::keys
