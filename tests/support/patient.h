// Limits of a grammar's compilation for tests of something else: a slow machine or a sanitizer changes no answer.
#pragma once

#include <chrono>

#include "core/grammar/grammar.h"

namespace quire::testing {

inline const grammar::CompileLimits kPatient{.max_time = std::chrono::hours(1)};

}  // namespace quire::testing
