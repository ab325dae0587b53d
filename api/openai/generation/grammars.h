// The grammars that requests ask for, compiled for this model's vocabulary; the last ones are kept.
// Shape   special tokens say nothing, but for those that an endpoint reads as marks of its own ("marked"): a grammar that spells
//         them lets the model say them as the tokens that they are.
// Owner   shared: Services. Thread  any; compiling is a worker's.
// Fails   of(): kInvalidArgument naming the field that the grammar was given in, or the one that `write` names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "api/openai/generation/request.h"
#include "core/base/result.h"
#include "core/bridge/recent_values.h"
#include "core/grammar/grammar.h"
#include "core/grammar/rules.h"
#include "core/grammar/vocabulary.h"
#include "core/text/tokenizer.h"

namespace quire::api::openai {

class Grammars {
 public:
  explicit Grammars(const std::shared_ptr<const grammar::Vocabulary>& vocabulary) : Grammars(vocabulary, vocabulary) {}
  // `marked`: the same vocabulary, in which marks are no special tokens.
  Grammars(std::shared_ptr<const grammar::Vocabulary> vocabulary, std::shared_ptr<const grammar::Vocabulary> marked)
      : vocabulary_(std::move(vocabulary)), marked_(std::move(marked)) {}

  Result<std::shared_ptr<const grammar::Grammar>> of(const GrammarText& text);

  // What `write` writes into empty rules, over the marked vocabulary. The same name always means the same rules.
  using Write = std::function<Result<Done>(grammar::Rules& rules)>;
  Result<std::shared_ptr<const grammar::Grammar>> of(const std::string& name, const std::string& field,
                                                     const Write& write);

 private:
  Result<std::shared_ptr<const grammar::Grammar>> find(std::string name, const std::string& field, const Write& write,
                                                       const std::shared_ptr<const grammar::Vocabulary>& vocabulary);

  static constexpr std::size_t kMaxKept = 64;
  static constexpr std::size_t kMaxKeptBytes = std::size_t{4} << 20;  // of their texts

  const std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  const std::shared_ptr<const grammar::Vocabulary> marked_;
  bridge::RecentValues<grammar::Grammar> recent_{kMaxKept, kMaxKeptBytes};
};

// The rule of the whole text, which is rule 0 where `rules` were empty. Errors name the text's field.
Result<grammar::RuleId> write_grammar(grammar::Rules& rules, const GrammarText& text);

// The bytes that each of `logits_width` tokens adds to an answer: none for ids without a token, nor for special tokens, unless
// they are among `marks`.
std::shared_ptr<const grammar::Vocabulary> vocabulary_of(const text::Tokenizer& tokenizer, std::uint32_t logits_width,
                                                         std::span<const TokenId> ends,
                                                         std::span<const std::string_view> marks = {});

}  // namespace quire::api::openai
