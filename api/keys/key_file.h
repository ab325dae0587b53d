// The file of keys: one key a line, as name=value pairs with blanks between them. docs/security.md describes it.
//   name=alice hash=sha256:9f86…0a08 role=user max_running=4 max_queued=16 tokens_per_minute=60000 tenant=team-a weight=3
// Shape   name and hash have to be there. Empty lines and lines that begin with # are passed over.
// Thread  any; pure functions.
// Fails   parse_key_file(): every problem of the file, each with its line and field; none of them shows a hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/keys/caller.h"
#include "api/keys/secret.h"
#include "core/bridge/account.h"

namespace quire::api::keys {

inline constexpr std::size_t kMaxKeys = 1024;  // of a file: as many series may have its names
inline constexpr std::size_t kMaxNameBytes = 64;
inline constexpr std::size_t kMaxLineBytes = 1024;
inline constexpr std::uint32_t kMaxWeight = 1000;
inline constexpr std::size_t kMaxFileBytes = kMaxKeys * kMaxLineBytes;
inline constexpr std::string_view kDefaultTenant = "default";  // of servers without keys, and of pinned prefixes

struct KeyEntry {
  std::string name;
  Digest digest{};
  Role role = Role::kUser;
  bridge::AccountLimits limits{};
  std::string tenant{};      // empty: its own, by its name
  std::uint32_t weight = 1;  // 1 .. kMaxWeight
  bool monitors = false;     // not of a file's: it has a role for that
};

struct KeyFile {
  std::vector<KeyEntry> entries;
  std::vector<std::string> problems;  // "line 3: role: …"; where there are any the entries are not whole
};

KeyFile parse_key_file(std::string_view text);

// 1 to 64 letters, digits and - _ . of names and tenants.
bool is_name(std::string_view text);
std::optional<Role> role_of(std::string_view word);
const char* name_of(Role role);

// The line of an entry, without its end.
std::string line_of(const KeyEntry& entry);

}  // namespace quire::api::keys
