// Compiles the grammars that requests ask for, for this model's vocabulary, and caches the most recent ones.
// Shape   a special token has no text in a grammar, unless it is a mark that an endpoint parses and the order is
//         `marked`: then a grammar that spells the mark allows its token.
// Owner   shared by Services.
// Thread  any; make() on a worker.
// Fails   make(): kInvalidArgument naming the order's field, or the field that its `write` names, for a grammar that is
//         invalid or too large on every machine; kTimeout if it takes too long on this machine, or was dropped.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "api/services/grammar_order.h"
#include "core/base/allowance.h"
#include "core/base/result.h"
#include "core/concurrent/recent_values.h"
#include "core/grammar/grammar.h"
#include "core/grammar/rules/rules.h"
#include "core/grammar/rules/vocabulary.h"
#include "core/text/tokenizer.h"

namespace quire::api {

class Grammars {
 public:
  explicit Grammars(const std::shared_ptr<const grammar::Vocabulary>& vocabulary) : Grammars(vocabulary, vocabulary) {}
  // `marked`: the same vocabulary with marks as ordinary tokens.
  Grammars(std::shared_ptr<const grammar::Vocabulary> vocabulary, std::shared_ptr<const grammar::Vocabulary> marked)
      : vocabulary_(std::move(vocabulary)), marked_(std::move(marked)) {}

  // Null: not in the cache.
  std::shared_ptr<const grammar::Grammar> find(const GrammarOrder& order) { return recent_.find(name_of(order)); }
  // Finds it in the cache, or writes and compiles it, within the rest of the allowance and within kMaxTime.
  Result<std::shared_ptr<const grammar::Grammar>> make(const GrammarOrder& order, const Allowance& allowance = {});

  // Longer than the limits of work take on a usual machine, so that those are reached first.
  static constexpr std::chrono::milliseconds kMaxTime{2'000};

 private:
  static std::string name_of(const GrammarOrder& order) { return (order.marked ? "marked " : "plain ") + order.name; }

  static constexpr std::size_t kMaxKept = 64;
  static constexpr std::size_t kMaxKeptBytes = std::size_t{256} << 20;  // of automata and names

  const std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  const std::shared_ptr<const grammar::Vocabulary> marked_;
  concurrent::RecentValues<grammar::Grammar> recent_{kMaxKept, kMaxKeptBytes};
};

// The order for a text; it borrows nothing.
GrammarOrder order_of(GrammarText text);

// Writes the rules of a text and returns its start rule, which is rule 0 if `rules` was empty. Errors name its field.
Result<grammar::RuleId> write_grammar(grammar::Rules& rules, const GrammarText& text, grammar::WriteBudget& budget);

// Turns an error of a grammar's parser into one of `field`: kTimeout is kept, any other code becomes kInvalidArgument.
Error fault_of(const std::string& field, const Error& error);

// The vocabulary of grammars: the bytes that each of `logits_width` tokens adds to an answer. Ids without a token,
// special tokens except `marks`, and `ends` add none.
std::shared_ptr<const grammar::Vocabulary> vocabulary_of(const text::Tokenizer& tokenizer, std::uint32_t logits_width,
                                                         std::span<const TokenId> ends,
                                                         std::span<const std::string_view> marks = {});

}  // namespace quire::api
