// The grammar that a request asks for: its text, and the function that writes its rules.
// Owner   values of a request.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/base/result.h"
#include "core/grammar/rules/rules.h"
#include "core/grammar/rules/write_budget.h"

namespace quire::api {

// The language of a grammar and its text: JSON for kJsonSchema and kChoice, empty for kJsonObject.
struct GrammarText {
  enum class Kind : std::uint8_t { kJsonObject, kJsonSchema, kRegex, kChoice, kEbnf };
  Kind kind = Kind::kJsonObject;
  std::string text;
  std::string field;  // the field of the body that has it, for errors
};

// A grammar that an answer must match, not yet compiled.
struct GrammarOrder {
  std::string name;   // key of the cache: orders of equal name write equal rules
  std::string field;  // for errors without a field
  // Writes the rules into `rules`, which are empty. It may be called several times, and may borrow from its request.
  std::function<Result<Done>(grammar::Rules& rules, grammar::WriteBudget& budget)> write;
  bool marked = false;  // for the vocabulary that includes marks (Grammars)
};

}  // namespace quire::api
