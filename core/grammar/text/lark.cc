#include "core/grammar/text/lark.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/grammar/rules/code_points.h"
#include "core/grammar/text/lark_common.h"
#include "core/grammar/text/lark_text.h"
#include "core/grammar/text/regex.h"

namespace quire::grammar {
namespace {

bool is_terminal(std::string_view name) {
  const std::size_t first = name.find_first_not_of('_');
  return first != name.npos && name[first] >= 'A' && name[first] <= 'Z';
}

class LarkParser : LarkText {
 public:
  LarkParser(Rules& rules, std::u32string text) : LarkText(std::move(text)), rules_(rules) {}

  Result<RuleId> run();

 private:
  struct Named {
    RuleId id = 0;
    std::size_t first_use = 0;
    bool defined = false;
    std::string imported;         // its name in common.lark, if it was imported
    std::vector<std::string> of;  // of a terminal: the terminals that it uses
  };
  enum class In : std::uint8_t { kRule, kTerminal };

  bool has_ignored() const;

  Named& named(const std::string& name, std::size_t where);
  bool statement();
  bool directive();
  bool import_common();
  bool import_one(const std::string& name, const std::string& as, std::size_t where);
  bool definition();
  bool head(std::string& name);
  bool ends(std::size_t begin);
  std::optional<Error> check_names() const;
  std::string endless_terminal() const;

  bool alternatives(Expr& out, std::uint32_t depth);
  bool sequence(Expr& out, std::uint32_t depth);
  bool alias();
  bool atom(Expr& out, std::uint32_t depth);
  bool group(Expr& out, std::uint32_t depth, char32_t close);
  bool name(Expr& out);
  bool literal(Expr& out);
  bool any_case(const std::u32string& text, std::size_t begin, Expr& out);
  bool pattern(Expr& out);
  bool repeat(Expr& out, std::uint32_t depth);
  Expr token(Expr e);

  Rules& rules_;
  std::map<std::string, Named, std::less<>> names_;
  In in_ = In::kRule;
  Named* defined_ = nullptr;       // the terminal whose definition is being read
  std::optional<RuleId> ignored_;  // the rule of any number of ignored texts
  std::vector<Expr> ignores_;
};

Result<RuleId> LarkParser::run() {
  const RuleId text = rules_.declare("start");
  if (has_ignored()) ignored_ = rules_.declare("ignored text");
  const Expr start = rules_.use(named("start", 0).id);
  for (skip_lines(); more(); skip_lines()) {
    if (!statement()) return *error_;
  }
  if (std::optional<Error> error = check_names()) return *std::move(error);
  if (!ignored_) {
    rules_.define(text, start);
    return text;
  }
  rules_.define(*ignored_, rules_.repeat(rules_.choice(ignores_), 0, kUnbounded));
  const Expr parts[] = {rules_.use(*ignored_), start};
  rules_.define(text, rules_.sequence(parts));
  return text;
}

std::optional<Error> LarkParser::check_names() const {
  if (!names_.at("start").defined) return invalid({}, "the grammar has no rule 'start'");
  for (const auto& [name, rule] : names_) {
    if (!rule.defined) return error_at(rule.first_use, "'" + name.substr(0, 100) + "' is not defined");
  }
  const std::string endless = endless_terminal();
  if (endless.empty()) return std::nullopt;
  return error_at(names_.at(endless).first_use,
                  "terminal '" + endless.substr(0, 100) + "' contains itself: make it a rule");
}

// The name of a terminal that contains itself; empty: there is none.
std::string LarkParser::endless_terminal() const {
  enum class State : std::uint8_t { kOpen = 1, kDone };
  std::map<std::string_view, State> states;
  for (const auto& [root, unused] : names_) {
    std::vector<std::pair<std::string_view, std::size_t>> path;  // a terminal, and the number of its parts visited
    if (states.try_emplace(root, State::kOpen).second) path.emplace_back(root, 0);
    while (!path.empty()) {
      const std::string_view name = path.back().first;
      const std::vector<std::string>& of = names_.find(name)->second.of;
      if (path.back().second == of.size()) {
        states[name] = State::kDone;
        path.pop_back();
        continue;
      }
      const std::string& next = of[path.back().second++];
      const auto [state, is_new] = states.try_emplace(next, State::kOpen);
      if (is_new) path.emplace_back(next, 0);
      if (!is_new && state->second == State::kOpen) return next;
    }
  }
  return {};
}

// ---- statements

bool LarkParser::has_ignored() const {
  for (std::size_t at = text_.find(U"%ignore"); at != text_.npos; at = text_.find(U"%ignore", at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && (text_[begin - 1] == ' ' || text_[begin - 1] == '\t')) --begin;
    if (begin == 0 || text_[begin - 1] == '\n') return true;
  }
  return false;
}

LarkParser::Named& LarkParser::named(const std::string& name, std::size_t where) {
  const auto [found, is_new] = names_.try_emplace(name);
  if (is_new) found->second = {rules_.declare(name), where, false, {}, {}};
  return found->second;
}

bool LarkParser::statement() {
  const std::size_t begin = at_;
  return (at('%') ? directive() : definition()) && ends(begin);
}

bool LarkParser::ends(std::size_t begin) {
  skip_blank();
  if (!more() || at('\n')) return true;
  if (at(')') || at(']')) return fail(at_, "this bracket has no matching opening bracket");
  return fail(at_, begin == at_ ? "expected a rule: name: ..." : "expected the line's end");
}

bool LarkParser::directive() {
  const std::size_t begin = at_++;
  const std::string word = this->word();
  skip_blank();
  if (word == "import") return import_common();
  if (word == "ignore") {
    in_ = In::kTerminal;
    defined_ = nullptr;
    return alternatives(ignores_.emplace_back(), 0);
  }
  if (word == "llguidance" && take('{')) {  // its options, which must be empty
    skip_blank();
    if (take('}')) return true;
  }
  return fail(begin, "%" + word.substr(0, 20) + " is not supported here");
}

bool LarkParser::import_common() {
  const std::size_t begin = at_;
  if (word() != "common") return fail(begin, "only common can be imported from: %import common.NAME");
  skip_blank();
  if (take('.')) {
    const std::string name = word();
    skip_blank();
    std::string as = name;
    if (take(U"->")) {
      skip_blank();
      as = word();
    }
    return import_one(name, as, begin);
  }
  if (!take('(')) return fail(at_, "expected %import common.NAME or %import common (NAME, ...)");
  do {
    skip_lines();
    const std::size_t where = at_;
    const std::string name = word();
    if (!import_one(name, name, where)) return false;
    skip_lines();
  } while (take(','));
  return take(')') || fail(at_, "expected ',' or ')'");
}

bool LarkParser::import_one(const std::string& name, const std::string& as, std::size_t where) {
  const std::string_view pattern = common_terminal(name);
  if (pattern.empty()) return fail(where, "common has no terminal '" + name.substr(0, 100) + "'");
  if (!is_terminal(as)) return fail(where, "an imported terminal needs a name in upper case");
  Named& terminal = named(as, where);
  if (terminal.defined && terminal.imported == name) return true;
  if (terminal.defined) return fail(where, "'" + as.substr(0, 100) + "' is defined already");
  terminal.defined = true;
  terminal.imported = name;
  const Result<Expr> made = regex(rules_, pattern, RegexUse::kWhole, emit_utf8, {.python = true});
  if (!made) return fail(where, made.error().message);
  rules_.define(terminal.id, *made);
  return true;
}

bool LarkParser::definition() {
  const std::size_t begin = at_;
  std::string name;
  if (!head(name)) return false;
  Named& rule = named(name, begin);
  if (rule.defined) return fail(begin, "'" + name.substr(0, 100) + "' is defined already");
  rule.defined = true;
  in_ = is_terminal(name) ? In::kTerminal : In::kRule;
  defined_ = in_ == In::kTerminal ? &rule : nullptr;
  Expr body = 0;
  if (!alternatives(body, 0)) return false;
  rules_.define(rule.id, body);
  return true;
}

// Reads the head of a definition: [?!]name[.priority]:
bool LarkParser::head(std::string& name) {
  const std::size_t begin = at_;
  while (at('?') || at('!')) ++at_;
  const bool has_marks = at_ > begin;
  if (at('|')) return fail(at_, "'|' is outside of a rule");
  name = word();
  if (name.empty() || is_digit(static_cast<char32_t>(name.front()))) return fail(begin, "expected a rule: name: ...");
  if (has_marks && is_terminal(name)) return fail(begin, "? and ! are for rules, not for terminals");
  if (at('{')) return fail(at_, "templates are not supported");
  if (at('[')) return fail(at_, "options of a rule are not supported");
  if (take('.')) {
    if (!take('-')) take('+');
    std::uint32_t priority = 0;
    if (!number(priority)) return fail(at_, "expected a priority");
  }
  skip_blank();
  if (at(U"::=")) return fail(at_, "expected ':'");
  return take(':') || fail(at_, "expected ':'");
}

// ---- expressions

bool LarkParser::alternatives(Expr& out, std::uint32_t depth) {
  std::vector<Expr> ways;
  do {
    Expr way = 0;
    if (!sequence(way, depth)) return false;
    ways.push_back(way);
  } while (take('|'));
  out = ways.size() == 1 ? ways.front() : rules_.choice(ways);
  return true;
}

bool LarkParser::sequence(Expr& out, std::uint32_t depth) {
  std::vector<Expr> parts;
  for (skip(depth); more() && !at('|') && !at(')') && !at(']') && !at('\n'); skip(depth)) {
    if (at(U"->")) {
      if (!alias()) return false;
      skip(depth);
      break;
    }
    Expr part = 0;
    if (!atom(part, depth) || !repeat(part, depth)) return false;
    parts.push_back(part);
  }
  out = parts.size() == 1 ? parts.front() : rules_.sequence(parts);
  return true;
}

bool LarkParser::alias() {
  const std::size_t begin = at_;
  at_ += 2;
  skip_blank();
  return !word().empty() || fail(begin, "expected a name after ->");
}

bool LarkParser::atom(Expr& out, std::uint32_t depth) {
  const std::size_t begin = at_;
  if (take('"')) return literal(out);
  if (take('/')) return pattern(out);
  if (take('(')) return group(out, depth, ')');
  if (take('[')) {
    if (!group(out, depth, ']')) return false;
    out = rules_.repeat(out, 0, 1);
    return true;
  }
  if (more() && is_word(text_[at_]) && !is_digit(text_[at_])) return name(out);
  if (at('\'')) return fail(begin, "a literal must be in double quotes");
  if (at('<') || at('@') || at('%')) return fail(begin, "special tokens and other grammars are not supported here");
  return fail(begin, "expected a literal, a regular expression, a name or a group");
}

bool LarkParser::group(Expr& out, std::uint32_t depth, char32_t close) {
  const std::size_t begin = at_ - 1;
  if (depth == kMaxGrammarDepth) return fail(begin, "nested more than " + std::to_string(kMaxGrammarDepth) + " deep");
  if (!alternatives(out, depth + 1)) return false;
  return take(close) || fail(begin, "this bracket is not closed");
}

bool LarkParser::name(Expr& out) {
  const std::size_t begin = at_;
  const std::string name = word();
  if (at('{') && at_ + 1 < text_.size() && !is_digit(text_[at_ + 1]) && text_[at_ + 1] != ',') {
    return fail(at_, "templates are not supported");
  }
  if (in_ == In::kTerminal && !is_terminal(name)) return fail(begin, "a terminal cannot contain a rule");
  out = rules_.use(named(name, begin).id);
  if (defined_ != nullptr) defined_->of.push_back(name);
  if (is_terminal(name)) out = token(out);
  return true;
}

// Appends the ignored texts to a terminal that a rule uses.
Expr LarkParser::token(Expr e) {
  if (in_ == In::kTerminal || !ignored_) return e;
  const Expr parts[] = {e, rules_.use(*ignored_)};
  return rules_.sequence(parts);
}

// Reads a literal, after its first quote.
bool LarkParser::literal(Expr& out) {
  const std::size_t begin = at_ - 1;
  std::u32string text;
  if (!literal_text(text)) return false;
  if (take('i')) {
    if (!any_case(text, begin, out)) return false;
    out = token(out);
    return true;
  }
  const std::size_t behind = at_;
  skip_blank();
  if (take(U"..")) {
    skip_blank();
    std::u32string last;
    if (!take('"')) return fail(at_, "expected the last character of the range");
    if (!literal_text(last)) return false;
    if (text.size() != 1 || last.size() != 1) return fail(begin, "both ends of a range must be one character");
    if (text[0] > last[0]) return fail(begin, "the range is out of order");
    out = token(rules_.code_points(text[0], last[0]));
    return true;
  }
  at_ = behind;
  std::string bytes;
  for (const char32_t c : text) append_utf8(bytes, c);
  out = token(rules_.bytes(bytes));
  return true;
}

bool LarkParser::any_case(const std::u32string& text, std::size_t begin, Expr& out) {
  std::vector<Expr> parts;
  for (const char32_t c : text) {
    if (c >= 0x80) return fail(begin, "ignoring case is supported for ASCII letters only");
    ByteSet set;
    set.set(c);
    if (is_ascii_letter(c)) set.set(c ^ 0x20);
    parts.push_back(rules_.byte_set(set));
  }
  out = parts.size() == 1 ? parts.front() : rules_.sequence(parts);
  return true;
}

// Reads a regular expression, after its first /.
bool LarkParser::pattern(Expr& out) {
  const std::size_t begin = at_ - 1;
  std::string text;
  while (!take('/')) {
    if (at('\\') && at_ + 1 < text_.size()) append_utf8(text, text_[at_++]);
    if (!more()) return fail(begin, "the regular expression is not closed: / ends it, \\/ is the character /");
    append_utf8(text, text_[at_++]);
  }
  RegexFlags flags{.python = true};
  for (; more() && is_ascii_letter(text_[at_]); ++at_) {
    const char32_t c = text_[at_];
    flags.ignore_case |= c == 'i';
    flags.dot_all |= c == 's';
    flags.verbose |= c == 'x';
    if (std::u32string_view(U"isxmu").find(c) == std::u32string_view::npos) {
      return fail(at_, "this flag is not supported: use i, m, s, u or x");
    }
  }
  const Result<Expr> made = regex(rules_, text, RegexUse::kWhole, emit_utf8, flags);
  if (!made) return fail(begin, made.error().message);
  out = token(*made);
  return true;
}

bool LarkParser::repeat(Expr& out, std::uint32_t depth) {
  for (skip_blank(); at('*') || at('+') || at('?') || at('~') || at('{'); skip_blank()) {
    const std::size_t begin = at_;
    const char32_t c = text_[at_++];
    std::uint32_t least = c == '+' ? 1 : 0;
    std::uint32_t most = c == '?' ? 1 : kUnbounded;
    if (c == '~' || c == '{') {
      skip_blank();
      if (!counts(least, most) || (c == '{' && !take('}')))
        return fail(begin, "expected ~m, ~m..n, {m}, {m,} or {m,n}");
      if (!check_counts(begin, least, most)) return false;
    }
    out = rules_.repeat(out, least, most);
  }
  skip(depth);
  return true;
}

}  // namespace

bool is_lark(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.substr(0, std::min(line.find('#'), line.find("//"))).find("::=") != line.npos) return false;
  }
  return true;
}

Result<RuleId> lark(Rules& rules, std::string_view text) { return parse_grammar<LarkParser>(rules, text); }

}  // namespace quire::grammar
