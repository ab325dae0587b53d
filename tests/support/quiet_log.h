// No log while a fixture has it: a level that stays behind is another test's, whichever comes next.
#pragma once

#include "core/base/log.h"

namespace quire::testing {

class QuietLog {
 public:
  QuietLog() { set_log_level(LogLevel::kOff); }
  ~QuietLog() { set_log_level(LogLevel::kInfo); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;
};

}  // namespace quire::testing
