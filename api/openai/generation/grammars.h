// The grammars that requests ask for, compiled for this model's vocabulary; the last ones are kept.
// Shape   special tokens say nothing, but for those that an endpoint reads as marks of its own ("marked"): a grammar that spells
//         them lets the model say them as the tokens that they are.
// Owner   shared: Services. Thread  any; compiling is a worker's.
// Fails   make(): kInvalidArgument naming the order's field, or the one that its `write` names, for what is too much
//         on every machine; kTimeout for what takes this one too long, or is wanted no more.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "api/openai/generation/request.h"
#include "core/base/allowance.h"
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

  // Null: it has to be made.
  std::shared_ptr<const grammar::Grammar> find(const GrammarOrder& order) { return recent_.find(name_of(order)); }
  // Found, or made: written and compiled within what is left of the allowance, and within kMaxTime.
  Result<std::shared_ptr<const grammar::Grammar>> make(const GrammarOrder& order, const Allowance& allowance = {});

  // More than the limits of work take on a machine as they are: those are to be met first.
  static constexpr std::chrono::milliseconds kMaxTime{2'000};

 private:
  static std::string name_of(const GrammarOrder& order) { return (order.marked ? "marked " : "plain ") + order.name; }

  static constexpr std::size_t kMaxKept = 64;
  static constexpr std::size_t kMaxKeptBytes = std::size_t{256} << 20;  // of automata and texts

  const std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  const std::shared_ptr<const grammar::Vocabulary> marked_;
  bridge::RecentValues<grammar::Grammar> recent_{kMaxKept, kMaxKeptBytes};
};

// What a text asks for; the order borrows nothing.
GrammarOrder order_of(GrammarText text);

// The rule of the whole text, which is rule 0 where `rules` were empty. Errors name the text's field.
Result<grammar::RuleId> write_grammar(grammar::Rules& rules, const GrammarText& text, grammar::WriteBudget& budget);

// An error of a front end as one of `field`; kTimeout stays what it is.
Error fault_of(const std::string& field, const Error& error);

// The bytes that each of `logits_width` tokens adds to an answer: none for ids without a token, nor for special tokens, unless
// they are among `marks`.
std::shared_ptr<const grammar::Vocabulary> vocabulary_of(const text::Tokenizer& tokenizer, std::uint32_t logits_width,
                                                         std::span<const TokenId> ends,
                                                         std::span<const std::string_view> marks = {});

}  // namespace quire::api::openai
