#include "api/services/grammars.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/grammar/json_schema.h"
#include "core/grammar/text/choice.h"
#include "core/grammar/text/ebnf.h"
#include "core/grammar/text/lark.h"
#include "core/grammar/text/regex.h"
#include "core/text/token_decoder.h"

namespace quire::api {
namespace {

using Kind = GrammarText::Kind;

Result<grammar::RuleId> write_schema(grammar::Rules& rules, const std::string& text, grammar::WriteBudget& budget) {
  const Result<json::Value> schema = grammar::parse_schema(text);
  if (!schema) return schema.error();
  return grammar::json_schema(rules, *schema, budget);
}

Result<grammar::RuleId> write_choice(grammar::Rules& rules, const std::string& text) {
  std::vector<std::string> texts;
  const Result<json::Value> list = grammar::parse_schema(text);
  if (!list) return list.error();
  for (const json::Value& one : list->get_array()) texts.emplace_back(one.get_string());
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
  return grammar::is_lark(text.text) ? grammar::lark(rules, text.text) : grammar::ebnf(rules, text.text);
}

// The error if writing and compiling together take too long.
Error late_error(const std::string& field, std::chrono::milliseconds time) {
  return {Code::kTimeout,
          field + ": the grammar takes longer than " + std::to_string(time.count()) + " ms to compile: simplify it",
          field, 0};
}

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

Result<std::shared_ptr<const grammar::Grammar>> Grammars::make(const GrammarOrder& order, const Allowance& allowance) {
  std::string name = name_of(order);
  if (std::shared_ptr<const grammar::Grammar> found = recent_.find(name)) return found;
  const auto whole_ms = [](std::chrono::nanoseconds time) {
    return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(time), std::chrono::milliseconds(0));
  };
  const auto time = std::min(kMaxTime, whole_ms(allowance.time_left()));
  grammar::Rules rules;
  grammar::WriteBudget budget(grammar::WriteBudget::kMaxSteps, time, allowance.is_dropped());
  if (const Result<Done> written = order.write(rules, budget); !written) return written.error();
  Result<std::shared_ptr<const grammar::Grammar>> compiled =
      grammar::Grammar::compile(rules, order.marked ? marked_ : vocabulary_,
                                {.max_time = whole_ms(budget.time_left()), .is_dropped = allowance.is_dropped()});
  if (!compiled && compiled.error().code == Code::kTimeout) return late_error(order.field, time);
  if (!compiled) {
    return Error{compiled.error().code, order.field + ": " + compiled.error().message, order.field};
  }
  const std::size_t bytes = name.size() + (*compiled)->num_bytes();
  recent_.keep(std::move(name), *compiled, bytes);
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

}  // namespace quire::api
