#include "api/openai/generation/grammars.h"

#include <algorithm>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/grammar/choice.h"
#include "core/grammar/ebnf.h"
#include "core/grammar/json_schema.h"
#include "core/grammar/regex.h"
#include "core/text/token_decoder.h"

namespace quire::api::openai {
namespace {

using Kind = GrammarText::Kind;

Result<grammar::RuleId> write_schema(grammar::Rules& rules, const std::string& text, grammar::WriteBudget& budget) {
  const Result<boost::json::value> schema = grammar::parse_schema(text);
  if (!schema) return schema.error();
  return grammar::json_schema(rules, *schema, budget);
}

Result<grammar::RuleId> write_choice(grammar::Rules& rules, const std::string& text) {
  std::vector<std::string> texts;
  const Result<boost::json::value> list = grammar::parse_schema(text);
  if (!list) return list.error();
  for (const boost::json::value& one : list->as_array()) texts.emplace_back(one.as_string());
  return grammar::choice(rules, texts);
}

Result<grammar::RuleId> write_regex(grammar::Rules& rules, const std::string& text) {
  const grammar::RuleId root = rules.declare("root");
  const Result<grammar::Expr> body = grammar::regex(rules, text, grammar::RegexUse::kWhole);
  if (!body) return body.error();
  rules.define(root, *body);
  return root;
}

Result<grammar::RuleId> write(grammar::Rules& rules, const GrammarText& text, grammar::WriteBudget& budget) {
  switch (text.kind) {
    case Kind::kJsonObject:
      return grammar::json_object(rules);
    case Kind::kJsonSchema:
      return write_schema(rules, text.text, budget);
    case Kind::kChoice:
      return write_choice(rules, text.text);
    case Kind::kRegex:
      return write_regex(rules, text.text);
    case Kind::kEbnf:
      break;
  }
  return grammar::ebnf(rules, text.text);
}

// The error of writing and compiling together.
Error late_error(const std::string& field, std::chrono::milliseconds time) {
  return {Code::kTimeout,
          field + ": the grammar takes longer than " + std::to_string(time.count()) + " ms to compile: simplify it",
          field, 0};
}

constexpr int kRetryAfterS = 1;

}  // namespace

Error fault_of(const std::string& field, const Error& error) {
  const Code code = error.code == Code::kTimeout ? Code::kTimeout : Code::kInvalidArgument;
  return {code, field + ": " + error.message, field, 0};
}

Result<grammar::RuleId> write_grammar(grammar::Rules& rules, const GrammarText& text, grammar::WriteBudget& budget) {
  const Result<grammar::RuleId> root = write(rules, text, budget);
  if (!root) return fault_of(text.field, root.error());
  return root;
}

GrammarOrder order_of(GrammarText text) {
  GrammarOrder order;
  order.name = static_cast<char>('0' + static_cast<int>(text.kind)) + text.text;
  order.field = text.field;
  order.write = [text = std::move(text)](grammar::Rules& rules, grammar::WriteBudget& budget) -> Result<Done> {
    const Result<grammar::RuleId> root = write_grammar(rules, text, budget);
    if (!root) return root.error();
    return Done{};
  };
  return order;
}

Result<std::shared_ptr<const grammar::Grammar>> Grammars::make_quickly(const GrammarOrder& order) {
  Result<std::shared_ptr<const grammar::Grammar>> made = make_within(order, kQuickTime);
  if (!made && made.error().code == Code::kTimeout) return {nullptr};
  return made;
}

Result<std::shared_ptr<const grammar::Grammar>> Grammars::make(const GrammarOrder& order) {
  Result<std::shared_ptr<const grammar::Grammar>> made = make_within(order, kMaxTime);
  if (!made && made.error().code == Code::kTimeout) {
    return Error{Code::kUnavailable, made.error().message + ", or try again later", made.error().param, kRetryAfterS};
  }
  return made;
}

// kTimeout: it takes longer.
Result<std::shared_ptr<const grammar::Grammar>> Grammars::make_within(const GrammarOrder& order,
                                                                      std::chrono::milliseconds time) {
  std::string name = name_of(order);
  if (std::shared_ptr<const grammar::Grammar> found = recent_.find(name)) return found;
  grammar::Rules rules;
  grammar::WriteBudget budget(grammar::WriteBudget::kMaxSteps, time);
  if (const Result<Done> written = order.write(rules, budget); !written) return written.error();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(budget.time_left());
  Result<std::shared_ptr<const grammar::Grammar>> compiled = grammar::Grammar::compile(
      rules, order.marked ? marked_ : vocabulary_, {.max_time = std::max(left, std::chrono::milliseconds(0))});
  if (!compiled && compiled.error().code == Code::kTimeout) return late_error(order.field, time);
  if (!compiled) {
    return Error{compiled.error().code, order.field + ": " + compiled.error().message, order.field};
  }
  recent_.keep(std::move(name), *compiled);
  return compiled;
}

std::shared_ptr<const grammar::Vocabulary> vocabulary_of(const text::Tokenizer& tokenizer, std::uint32_t logits_width,
                                                         std::span<const TokenId> ends,
                                                         std::span<const std::string_view> marks) {
  std::vector<std::string> pieces(logits_width);
  for (std::uint32_t id = 0; id < logits_width; ++id) {
    const text::TokenDecoder::Piece& piece = tokenizer.decoder().piece(static_cast<TokenId>(id));
    if (!piece.skip) pieces[id] = piece.bytes;
  }
  for (const std::string_view mark : marks) {
    const std::optional<TokenId> id = tokenizer.id_of(mark);
    if (id && static_cast<std::uint32_t>(*id) < logits_width) pieces[static_cast<std::size_t>(*id)] = mark;
  }
  for (const TokenId end : ends) pieces[static_cast<std::size_t>(end)].clear();
  return std::make_shared<const grammar::Vocabulary>(std::move(pieces), std::vector<TokenId>(ends.begin(), ends.end()));
}

}  // namespace quire::api::openai
