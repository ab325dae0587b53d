// The caller of a request: an API key of the key table, with its role and its tenant.
// Owner   shared by the key table and by requests under way, so that a request finishes even if its key is removed.
// Thread  any; constant.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/bridge/account.h"

namespace quire::api::keys {

enum class Role : std::uint8_t {
  kUser,     // every path except /metrics and /admin
  kMonitor,  // /metrics only
  kAdmin,    // every path
};

struct Caller {
  std::string name;
  Role role = Role::kUser;
  std::string tenant{};         // cached prefixes are shared only within a tenant; empty: the default tenant
  std::uint32_t tenant_id = 0;  // the tenant that policy fair charges; 0: the default tenant
  std::uint32_t weight = 1;     // policy fair divides the tokens of its sequences by this; >= 1
  bool monitors = false;        // may read /metrics, too
  std::shared_ptr<bridge::Account> account{};  // its limits and counters; never null
};

}  // namespace quire::api::keys
