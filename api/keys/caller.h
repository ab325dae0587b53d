// Who asks, once the key is known.
// Owner   the table of keys; requests share it, so that a client whose key was taken away finishes what it has begun.
// Thread  any; constant.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/bridge/account.h"

namespace quire::api::keys {

enum class Role : std::uint8_t {
  kUser,     // everything but what follows
  kMonitor,  // /metrics, and nothing else
  kAdmin,    // everything
};

struct Caller {
  std::string name;
  Role role = Role::kUser;
  std::string tenant{};                        // shares cached prefixes with nobody but itself; empty: the default one
  std::uint32_t tenant_id = 0;                 // for the fair policy; 0: the default one
  std::uint32_t weight = 1;                    // of its tenant's share there
  bool monitors = false;                       // it may do what a monitor may, besides
  std::shared_ptr<bridge::Account> account{};  // that its limits and counts are kept in; never null
};

}  // namespace quire::api::keys
