#include "app/config/version.h"

#include <fmt/format.h>

namespace quire::app {

std::string version_text() {
  constexpr std::string_view kCommit = QUIRE_COMMIT;  // of CMakeLists.txt
  return kCommit.empty() ? fmt::format("quire {}", kVersion) : fmt::format("quire {} ({})", kVersion, kCommit);
}

}  // namespace quire::app
