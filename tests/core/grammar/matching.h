// Short ways to compile grammars and to feed them in tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/grammar.h"
#include "core/grammar/matcher.h"
#include "core/grammar/text/ebnf.h"
#include "core/grammar/text/regex.h"
#include "tests/support/patient.h"

namespace quire::grammar::testing {

// Token b is the byte b; behind these come `pieces`, and last a token that ends.
inline std::shared_ptr<const Vocabulary> byte_vocabulary(const std::vector<std::string>& pieces = {}) {
  std::vector<std::string> all;
  for (int b = 0; b < 256; ++b) all.push_back(std::string(1, static_cast<char>(b)));
  all.insert(all.end(), pieces.begin(), pieces.end());
  all.push_back("</s>");
  const auto end = static_cast<TokenId>(all.size() - 1);
  return std::make_shared<const Vocabulary>(std::move(all), std::vector<TokenId>{end});
}

inline std::shared_ptr<const Grammar> compile_ebnf(std::string_view text,
                                                   std::shared_ptr<const Vocabulary> vocabulary = byte_vocabulary()) {
  Rules rules;
  const auto root = ebnf(rules, text);
  EXPECT_TRUE(root.ok()) << (root.ok() ? "" : root.error().message);
  auto grammar = Grammar::compile(rules, std::move(vocabulary), quire::testing::kPatient);
  EXPECT_TRUE(grammar.ok()) << (grammar.ok() ? "" : grammar.error().message);
  return *grammar;
}

inline std::shared_ptr<const Grammar> compile_regex(std::string_view pattern, RegexUse use = RegexUse::kWhole,
                                                    std::shared_ptr<const Vocabulary> vocabulary = byte_vocabulary()) {
  Rules rules;
  const RuleId root = rules.declare("root");
  const auto body = regex(rules, pattern, use);
  EXPECT_TRUE(body.ok()) << (body.ok() ? "" : body.error().message);
  rules.define(root, *body);
  auto grammar = Grammar::compile(rules, std::move(vocabulary), quire::testing::kPatient);
  EXPECT_TRUE(grammar.ok()) << (grammar.ok() ? "" : grammar.error().message);
  return *grammar;
}

// Byte by byte, with a vocabulary that begins with all bytes.
inline bool takes(Matcher& matcher, std::string_view bytes) {
  for (const char c : bytes) {
    if (!matcher.accept(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

inline bool matches(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  Matcher matcher(grammar);
  return takes(matcher, text) && matcher.complete();
}

inline std::vector<std::uint32_t> mask_of(Matcher& matcher, const Grammar& grammar) {
  std::vector<std::uint32_t> mask(grammar.vocabulary().mask_words(), 0xDEADBEEF);
  matcher.allowed(mask);
  return mask;
}

inline std::vector<TokenId> tokens_of(const std::vector<std::uint32_t>& mask) {
  std::vector<TokenId> tokens;
  for (std::size_t t = 0; t < 32 * mask.size(); ++t) {
    if (mask[t / 32] >> t % 32 & 1) tokens.push_back(static_cast<TokenId>(t));
  }
  return tokens;
}

}  // namespace quire::grammar::testing
