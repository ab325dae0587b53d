#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

#include "core/base/log.h"

namespace quire {

void check_failed(const char* file, int line, const char* expression, const std::string& values) {
  flush_log();
  std::fprintf(stderr, "%s:%d: CHECK failed: %s%s%s\n", file, line, expression, values.empty() ? "" : ": ",
               values.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace quire
