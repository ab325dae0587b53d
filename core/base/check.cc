#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace quire {

void check_failed(const char* file, int line, const char* expression, const std::string& values) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s%s%s\n", file, line, expression, values.empty() ? "" : ": ",
               values.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace quire
