// Number of files and connections that a server may have open at the same time.
// Thread  any; pure.
#pragma once

#include <cstdint>

#include "app/config/config.h"

namespace quire::app {

inline std::uint64_t files_for(const Config& config) {
  constexpr std::uint64_t kOwnFiles = 128;  // listeners, the admin port's connections, wake-ups, logs, mapped shards
  return config.max_connections + kOwnFiles;
}

}  // namespace quire::app
