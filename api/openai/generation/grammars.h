// The grammars that requests ask for, compiled for this model's vocabulary; the last ones are kept.
// Owner   shared: Services. Thread  any; compiling is a worker's.
// Fails   of(): kInvalidArgument naming the field that the grammar was given in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "api/openai/generation/request.h"
#include "core/base/result.h"
#include "core/bridge/recent_values.h"
#include "core/grammar/grammar.h"
#include "core/grammar/vocabulary.h"
#include "core/text/tokenizer.h"

namespace quire::api::openai {

class Grammars {
 public:
  explicit Grammars(std::shared_ptr<const grammar::Vocabulary> vocabulary) : vocabulary_(std::move(vocabulary)) {}

  Result<std::shared_ptr<const grammar::Grammar>> of(const GrammarText& text);

 private:
  static constexpr std::size_t kMaxKept = 64;
  static constexpr std::size_t kMaxKeptBytes = std::size_t{4} << 20;  // of their texts

  const std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  bridge::RecentValues<grammar::Grammar> recent_{kMaxKept, kMaxKeptBytes};
};

// The bytes that each of `logits_width` tokens adds to an answer: none for special tokens, nor for ids without a token.
std::shared_ptr<const grammar::Vocabulary> vocabulary_of(const text::Tokenizer& tokenizer, std::uint32_t logits_width,
                                                         std::span<const TokenId> ends);

}  // namespace quire::api::openai
