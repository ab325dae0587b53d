// Rules that match one of a list of texts: guided_choice.
// Thread  any one at a time.
// Fails   kInvalidArgument (no param: the caller knows the field): an empty list or text, or a limit exceeded.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/base/result.h"
#include "core/grammar/rules/rules.h"

namespace quire::grammar {

inline constexpr std::size_t kMaxChoices = 10'000;
inline constexpr std::size_t kMaxChoiceBytes = 100'000;  // all together

Result<RuleId> choice(Rules& rules, std::span<const std::string> texts);

}  // namespace quire::grammar
