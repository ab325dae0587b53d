#include "core/grammar/text/ebnf.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/grammar/rules/code_points.h"
#include "core/grammar/text/grammar_text.h"

namespace quire::grammar {
namespace {

bool is_name(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class EbnfParser : GrammarText {
 public:
  EbnfParser(Rules& rules, std::u32string text) : GrammarText(std::move(text)), rules_(rules) {}

  Result<RuleId> run();

 private:
  struct Named {
    RuleId id = 0;
    std::size_t first_use = 0;
    bool defined = false;
  };

  void skip_space();
  std::string name();        // empty: there is no name here
  bool rule_begins() const;  // at `name ::=`

  Named& named(const std::string& name, std::size_t where);
  bool definition();
  bool alternatives(Expr& out, std::uint32_t depth);
  bool sequence(Expr& out, std::uint32_t depth);
  bool atom(Expr& out, std::uint32_t depth);
  bool literal(Expr& out);
  bool character_class(Expr& out);
  bool character(char32_t& out);
  bool escape(char32_t& out);
  bool repeat(Expr& out);
  bool counts(std::uint32_t& least, std::uint32_t& most);

  Rules& rules_;
  std::map<std::string, Named> names_;
};

Result<RuleId> EbnfParser::run() {
  const RuleId root = named("root", 0).id;
  for (skip_space(); more(); skip_space()) {
    if (!definition()) return *error_;
  }
  if (!names_["root"].defined) return invalid({}, "the grammar has no rule 'root'");
  for (const auto& [name, rule] : names_) {
    if (!rule.defined) return error_at(rule.first_use, "rule '" + name.substr(0, 100) + "' is not defined");
  }
  return root;
}

void EbnfParser::skip_space() {
  while (more()) {
    const char32_t c = text_[at_];
    if (c == '#') {
      while (more() && text_[at_] != '\n') ++at_;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

std::string EbnfParser::name() {
  std::string name;
  for (; more() && is_name(text_[at_]); ++at_) name.push_back(static_cast<char>(text_[at_]));
  return name;
}

bool EbnfParser::rule_begins() const {
  std::size_t i = at_;
  while (i < text_.size() && is_name(text_[i])) ++i;
  if (i == at_) return false;
  while (i < text_.size() && (text_[i] == ' ' || text_[i] == '\t')) ++i;
  return std::u32string_view(text_).substr(i).starts_with(U"::=");
}

EbnfParser::Named& EbnfParser::named(const std::string& name, std::size_t where) {
  const auto [found, is_new] = names_.try_emplace(name);
  if (is_new) found->second = {rules_.declare(name), where, false};
  return found->second;
}

bool EbnfParser::definition() {
  if (!rule_begins()) return fail(at_, "expected a rule: name ::= ...");
  const std::size_t begin = at_;
  const std::string rule_name = name();
  while (!at(':')) ++at_;
  at_ += 3;
  Named& rule = named(rule_name, begin);
  if (rule.defined) return fail(begin, "this rule is defined already");
  rule.defined = true;
  Expr body = 0;
  if (!alternatives(body, 0)) return false;
  if (at(')')) return fail(at_, "')' has no matching '('");
  rules_.define(rule.id, body);
  return true;
}

bool EbnfParser::alternatives(Expr& out, std::uint32_t depth) {
  std::vector<Expr> ways(1);
  if (!sequence(ways.back(), depth)) return false;
  while (take('|')) {
    ways.emplace_back();
    if (!sequence(ways.back(), depth)) return false;
  }
  out = ways.size() == 1 ? ways.front() : rules_.choice(ways);
  return true;
}

bool EbnfParser::sequence(Expr& out, std::uint32_t depth) {
  std::vector<Expr> parts;
  for (skip_space(); more() && !at('|') && !at(')') && !rule_begins(); skip_space()) {
    parts.emplace_back();
    if (!atom(parts.back(), depth) || !repeat(parts.back())) return false;
  }
  out = parts.size() == 1 ? parts.front() : rules_.sequence(parts);
  return true;
}

bool EbnfParser::atom(Expr& out, std::uint32_t depth) {
  const std::size_t begin = at_;
  if (take('"')) return literal(out);
  if (take('[')) return character_class(out);
  if (take('.')) {
    out = emit_utf8(rules_, all_but({}));
    return true;
  }
  if (take('(')) {
    if (depth == kMaxGrammarDepth) return fail(begin, "nested more than " + std::to_string(kMaxGrammarDepth) + " deep");
    if (!alternatives(out, depth + 1)) return false;
    return take(')') || fail(begin, "'(' is not closed");
  }
  const std::string rule = name();
  if (rule.empty()) return fail(begin, "expected a literal, a class, a rule's name or a group");
  out = rules_.use(named(rule, begin).id);
  return true;
}

bool EbnfParser::literal(Expr& out) {
  const std::size_t begin = at_ - 1;
  std::string bytes;
  while (!take('"')) {
    if (!more()) return fail(begin, "the literal is not closed");
    char32_t c = 0;
    if (!character(c)) return false;
    append_utf8(bytes, c);
  }
  out = rules_.bytes(bytes);
  return true;
}

bool EbnfParser::character_class(Expr& out) {
  const std::size_t begin = at_ - 1;
  const bool negated = take('^');
  CodePointSet ranges;
  while (!take(']')) {
    if (!more()) return fail(begin, "'[' is not closed");
    const std::size_t range = at_;
    char32_t first = 0;
    if (!character(first)) return false;
    char32_t last = first;
    if (at('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
      ++at_;
      if (!character(last)) return false;
    }
    if (first > last) return fail(range, "the range is out of order");
    ranges.push_back({first, last});
  }
  ranges = united(std::move(ranges));
  out = emit_utf8(rules_, negated ? all_but(ranges) : ranges);
  return true;
}

bool EbnfParser::character(char32_t& out) {
  out = text_[at_++];
  return out != '\\' || escape(out);
}

// Reads an escape, after its '\'.
bool EbnfParser::escape(char32_t& out) {
  const std::size_t begin = at_ - 1;
  if (!more()) return fail(begin, "'\\' is the last character");
  const char32_t c = text_[at_++];
  const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits > 0) {
    const std::optional<std::uint32_t> value = hex(digits);
    if (!value) return fail(begin, "expected \\xHH, \\uHHHH or \\UHHHHHHHH");
    if (*value > kLastCodePoint || is_surrogate(*value)) return fail(begin, "this is not a character");
    out = *value;
    return true;
  }
  if (c == 'n' || c == 'r' || c == 't') {
    out = c == 'n' ? '\n' : c == 'r' ? '\r' : '\t';
    return true;
  }
  out = c;
  return (!is_name(c) || c == '-' || c == '_') || fail(begin, "this escape is not supported");
}

bool EbnfParser::repeat(Expr& out) {
  for (skip_space(); at('*') || at('+') || at('?') || at('{'); skip_space()) {
    const std::size_t begin = at_;
    const char32_t c = text_[at_++];
    std::uint32_t least = c == '+' ? 1 : 0;
    std::uint32_t most = c == '?' ? 1 : kUnbounded;
    if (c == '{') {
      if (!counts(least, most)) return fail(begin, "expected {m}, {m,} or {m,n}");
      if (!check_counts(begin, least, most)) return false;
    }
    out = rules_.repeat(out, least, most);
  }
  return true;
}

bool EbnfParser::counts(std::uint32_t& least, std::uint32_t& most) {
  skip_space();
  const bool parsed = number(least);
  most = least;
  if (!parsed) least = 0;
  skip_space();
  if (take(',')) {
    skip_space();
    if (!number(most)) most = kUnbounded;
    skip_space();
  } else if (!parsed) {
    return false;
  }
  return take('}');
}

}  // namespace

Result<RuleId> ebnf(Rules& rules, std::string_view text) { return parse_grammar<EbnfParser>(rules, text); }

}  // namespace quire::grammar
