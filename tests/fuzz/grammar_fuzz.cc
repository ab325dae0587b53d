// Any bytes as a regular expression or a grammar: the first byte picks which, and how a text is walked.
// Holds   it ends; a refusal says something short; what compiles is followed token by token, and an end comes where the
//         text is complete.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "core/grammar/grammar.h"
#include "core/grammar/matcher.h"
#include "core/grammar/text/ebnf.h"
#include "core/grammar/text/lark.h"
#include "core/grammar/text/regex.h"

namespace {

using namespace quire;
using namespace quire::grammar;

constexpr TokenId kEnd = 256;

std::shared_ptr<const Vocabulary> all_bytes() {
  std::vector<std::string> pieces;
  for (int b = 0; b < 256; ++b) pieces.push_back(std::string(1, static_cast<char>(b)));
  pieces.insert(pieces.end(), {"", "ab", "\"}", "{\"a", "123", "  ", "\xC3\xA9", "\xA9\xC3"});
  return std::make_shared<const Vocabulary>(std::move(pieces), std::vector<TokenId>{kEnd});
}

void check_refusal(const Error& error) {
  CHECK(error.code == Code::kInvalidArgument || error.code == Code::kTimeout);  // wrong, or too slow to compile
  CHECK(!error.message.empty());
  CHECK_LE(error.message.size(), 300u);
}

void walk(const std::shared_ptr<const Grammar>& grammar, std::uint32_t choice) {
  Matcher matcher(grammar);
  std::vector<std::uint32_t> mask(grammar->vocabulary().mask_words());
  for (int step = 0; step < 30; ++step) {
    matcher.allowed(mask);
    std::vector<TokenId> allowed;
    for (TokenId t = 0; t < static_cast<TokenId>(grammar->vocabulary().size()); ++t) {
      if (mask[static_cast<std::size_t>(t) / 32] >> t % 32 & 1) allowed.push_back(t);
    }
    if (allowed.empty()) return;  // too many readings
    choice = choice * 1664525 + 1013904223;
    const TokenId token = allowed[(choice >> 16) % allowed.size()];
    if (!matcher.accept(token)) return;  // in the same way
    if (token == kEnd) CHECK(matcher.complete());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::shared_ptr<const Vocabulary> vocabulary = all_bytes();
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  Rules rules;
  if (data[0] % 8 == 2) {
    if (const auto root = lark(rules, text); !root) return check_refusal(root.error()), 0;
  } else if (data[0] % 2 == 0) {
    if (const auto root = ebnf(rules, text); !root) return check_refusal(root.error()), 0;
  } else {
    const RuleId root = rules.declare("root");
    const auto body = regex(rules, text, data[0] % 4 == 1 ? RegexUse::kWhole : RegexUse::kSearch);
    if (!body) return check_refusal(body.error()), 0;
    rules.define(root, *body);
  }
  const CompileLimits limits{.max_states = 5000, .max_time = std::chrono::milliseconds(500)};
  const auto grammar = Grammar::compile(rules, vocabulary, limits);
  if (!grammar) return check_refusal(grammar.error()), 0;
  walk(*grammar, data[0]);
  return 0;
}
