#include "core/grammar/text/regex_syntax.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace quire::grammar {
namespace {

using ItemKind = RegexItem::Kind;

const CodePointSet kDigits = {{'0', '9'}};
const CodePointSet kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CodePointSet kSpace = {{0x9, 0xD},       {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                             {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const CodePointSet kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

bool is_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

struct Count {
  std::uint32_t least, most;
  std::size_t behind;  // index after it
};

class RegexParser {
 public:
  RegexParser(std::u32string text, const RegexFlags& flags) : text_(std::move(text)), flags_(flags) {}

  Result<std::vector<RegexItem>> run() {
    items_.emplace_back();
    if (!branches(0, 0)) return *error_;
    if (at_ < text_.size()) return regex_error(at_ + 1, "')' has no matching '('");
    return std::move(items_);
  }

 private:
  bool more() const { return at_ < text_.size(); }
  bool at(char32_t c, std::size_t ahead = 0) const { return at_ + ahead < text_.size() && text_[at_ + ahead] == c; }
  bool take(char32_t c) { return at(c) && ++at_ > 0; }
  bool take(std::u32string_view s) {
    const bool there = std::u32string_view(text_).substr(at_).starts_with(s);
    if (there) at_ += s.size();
    return there;
  }
  bool fail(std::size_t where, const std::string& what) {
    if (!error_) error_ = regex_error(where + 1, what);
    return false;
  }

  bool branches(std::uint32_t group, std::uint32_t depth);
  bool item(std::vector<std::uint32_t>& row, std::uint32_t depth);
  void skip_comments();
  bool group_kind(std::size_t begin);
  bool group_flags(std::size_t begin);
  bool fold(std::size_t begin, CodePointSet& set);
  bool group_name(std::size_t begin);
  bool count_behind(std::uint32_t part, std::vector<std::uint32_t>& row);
  std::optional<Count> count() const;
  std::optional<std::uint32_t> number(std::size_t& i) const;
  bool escape(CodePointSet& set, bool in_class);
  bool code_point_escape(std::size_t begin, CodePointSet& set);
  std::optional<std::uint32_t> hex(std::size_t digits);
  bool character_class(CodePointSet& set);
  bool class_atom(CodePointSet& set);
  CodePointSet any() const {
    return flags_.dot_all ? all_but({}) : all_but(flags_.python ? CodePointSet{{'\n', '\n'}} : kLineEnds);
  }
  std::uint32_t add(ItemKind kind, std::size_t begin) {
    items_.push_back({kind, kind == ItemKind::kStart || kind == ItemKind::kEnd, begin + 1});
    return static_cast<std::uint32_t>(items_.size() - 1);
  }

  std::u32string text_;
  RegexFlags flags_;
  std::size_t at_ = 0;
  std::vector<RegexItem> items_;
  std::optional<Error> error_;
};

// Reads branches up to the end of the pattern, or the ')' of the group.
bool RegexParser::branches(std::uint32_t group, std::uint32_t depth) {
  if (depth > kMaxPatternDepth)
    return fail(at_, "groups are nested more than " + std::to_string(kMaxPatternDepth) + " deep");
  std::vector<std::vector<std::uint32_t>> rows(1);
  for (skip_comments(); more() && !at(')'); skip_comments()) {
    if (take('|')) {
      rows.emplace_back();
    } else if (!item(rows.back(), depth)) {
      return false;
    }
  }
  for (const auto& row : rows) {
    for (const std::uint32_t i : row) items_[group].anchored |= items_[i].anchored;
  }
  items_[group].branches = std::move(rows);
  return true;
}

bool RegexParser::item(std::vector<std::uint32_t>& row, std::uint32_t depth) {
  const std::size_t begin = at_;
  const char32_t c = text_[at_++];
  if (c == '^' || c == '$') {
    row.push_back(add(c == '^' ? ItemKind::kStart : ItemKind::kEnd, begin));
    return true;  // a repetition after it is an error
  }
  std::uint32_t made = 0;
  if (c == '(') {
    const RegexFlags outside = flags_;
    if (!group_kind(begin)) return false;
    made = add(ItemKind::kGroup, begin);
    if (!branches(made, depth + 1)) return false;
    if (!take(')')) return fail(begin, "'(' is not closed");
    flags_ = outside;
  } else if (c == '*' || c == '+' || c == '?' || (c == '{' && (--at_, count().has_value()))) {
    return fail(begin, "there is nothing to repeat");
  } else {
    at_ = begin + 1;
    CodePointSet set;
    if (c == '\\') {
      if (!escape(set, false)) return false;
    } else if (c == '[') {
      if (!character_class(set)) return false;
    } else {
      set = c == '.' ? any() : CodePointSet{{c, c}};
    }
    if (c != '.' && c != '[' && !fold(begin, set)) return false;
    made = add(ItemKind::kSet, begin);
    items_[made].set = std::move(set);
  }
  return count_behind(made, row);
}

// Reads the kind of a group (?: ?<name> ?P<name> or flags), after its '('.
bool RegexParser::group_kind(std::size_t begin) {
  if (!at('?') || take(U"?:")) return true;
  if (take(U"?=") || take(U"?!") || take(U"?<=") || take(U"?<!")) return fail(begin, "look-around is not supported");
  if (take(U"?<") || take(U"?P<")) return group_name(begin);
  if (flags_.python && group_flags(begin)) return true;
  return fail(begin, "this kind of group is not supported: use (?:...)");
}

void RegexParser::skip_comments() {
  while (flags_.verbose && more()) {
    const char32_t c = text_[at_];
    if (c == '#') {
      while (more() && text_[at_] != '\n') ++at_;
    } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
      ++at_;
    } else {
      return;
    }
  }
}

// Reads inline flags such as (?is: and sets them for the group.
bool RegexParser::group_flags(std::size_t begin) {
  RegexFlags flags = flags_;
  for (std::size_t i = begin + 2; i < text_.size(); ++i) {
    const char32_t c = text_[i];
    if (c == ':' && i > begin + 2) {
      flags_ = flags;
      at_ = i + 1;
      return true;
    }
    if (c != 'i' && c != 's' && c != 'u' && c != 'm' && c != 'x') return false;
    flags.ignore_case |= c == 'i';
    flags.dot_all |= c == 's';
    flags.verbose |= c == 'x';
  }
  return false;
}

// Adds the other case of every ASCII letter of the set, if ignore_case is on.
bool RegexParser::fold(std::size_t begin, CodePointSet& set) {
  if (!flags_.ignore_case) return true;
  const CodePointSet given = set;
  for (const CodePoints& range : given) {
    if (range.first == range.last && range.first >= 0x80) {
      return fail(begin, "ignoring case is supported for ASCII letters only");
    }
    for (char32_t c = std::max<char32_t>(range.first, 'A'); c <= std::min<char32_t>(range.last, 'z'); ++c) {
      if (is_letter(c)) set.push_back({c ^ 0x20, c ^ 0x20});
    }
  }
  set = united(std::move(set));
  return true;
}

bool RegexParser::group_name(std::size_t begin) {
  const std::size_t name = at_;
  while (more() && (is_letter(text_[at_]) || text_[at_] == '_' || text_[at_] == '$' || text_[at_] >= 0x80 ||
                    (at_ > name && is_digit(text_[at_])))) {
    ++at_;
  }
  return (at_ > name && take('>')) || fail(begin, "the group's name is invalid");
}

bool RegexParser::count_behind(std::uint32_t part, std::vector<std::uint32_t>& row) {
  const std::size_t begin = at_;
  std::optional<Count> counted;
  if (at('*')) counted = {0, kUnbounded, at_ + 1};
  if (at('+')) counted = {1, kUnbounded, at_ + 1};
  if (at('?')) counted = {0, 1, at_ + 1};
  if (at('{')) counted = count();
  if (counted) {
    if (counted->least > counted->most) return fail(begin, "the numbers are out of order");
    if (counted->least > kMaxPatternCount || (counted->most > kMaxPatternCount && counted->most != kUnbounded)) {
      return fail(begin, "repeats more than " + std::to_string(kMaxPatternCount) + " times");
    }
    at_ = counted->behind;
    take('?');  // lazy: it matches the same texts
    const std::uint32_t repeat = add(ItemKind::kRepeat, begin);
    items_[repeat].part = part;
    items_[repeat].least = counted->least;
    items_[repeat].most = counted->most;
    items_[repeat].anchored = items_[part].anchored;
    part = repeat;
  }
  row.push_back(part);
  return true;
}

// Reads {m}, {m,} or {m,n} at at_ ({,n} too in Python's syntax); none: the '{' there stands for itself.
std::optional<Count> RegexParser::count() const {
  std::size_t i = at_ + 1;
  std::optional<std::uint32_t> least = number(i);
  if (!least && flags_.python && at(',', 1) && !at('}', 2)) least = 0;
  if (!least || i >= text_.size()) return std::nullopt;
  std::uint32_t most = *least;
  if (text_[i] == ',') {
    const std::size_t behind = ++i;
    const std::optional<std::uint32_t> parsed = number(i);
    most = i == behind ? kUnbounded : *parsed;
  }
  if (i >= text_.size() || text_[i] != '}') return std::nullopt;
  return Count{*least, most, i + 1};
}

std::optional<std::uint32_t> RegexParser::number(std::size_t& i) const {
  const std::size_t begin = i;
  std::uint32_t value = 0;
  for (; i < text_.size() && is_digit(text_[i]); ++i)
    value = std::min(kMaxPatternCount + 1, 10 * value + (text_[i] - '0'));
  return i > begin ? std::optional(value) : std::nullopt;
}

// Reads an escape, after its '\'.
bool RegexParser::escape(CodePointSet& set, bool in_class) {
  const std::size_t begin = at_ - 1;
  if (!more()) return fail(begin, "'\\' is the last character");
  const char32_t c = text_[at_++];
  const auto is = [&](char32_t value) { return set = {{value, value}}, true; };
  switch (c) {
    case 'd':
      return set = kDigits, true;
    case 'D':
      return set = all_but(kDigits), true;
    case 'w':
      return set = kWord, true;
    case 'W':
      return set = all_but(kWord), true;
    case 's':
      return set = kSpace, true;
    case 'S':
      return set = all_but(kSpace), true;
    case 'n':
      return is('\n');
    case 'r':
      return is('\r');
    case 't':
      return is('\t');
    case 'f':
      return is('\f');
    case 'v':
      return is('\v');
    case 'b':
      return in_class ? is('\b') : fail(begin, "\\b is not supported");
    case 'B':
      return fail(begin, "\\B is not supported");
    case 'p':
    case 'P':
      return fail(begin, "\\p{...} is not supported: use ranges");
    case 'k':
      return fail(begin, "back references are not supported");
    case 'c':
      if (!more() || !is_letter(text_[at_])) return fail(begin, "\\c needs a letter");
      return is(text_[at_++] % 32);
    case 'U':
      if (!flags_.python) break;
      [[fallthrough]];
    case 'x':
    case 'u':
      return code_point_escape(begin, set);
    case '0':
      if (more() && is_digit(text_[at_])) return fail(begin, "octal escapes are not supported: use \\xHH");
      return is(0);
    default:
      break;
  }
  if (is_digit(c)) return fail(begin, "back references are not supported");
  if (is_letter(c)) return fail(begin, "this escape is not supported");
  return is(c);
}

bool RegexParser::code_point_escape(std::size_t begin, CodePointSet& set) {
  const bool is_x = text_[at_ - 1] == 'x';
  std::optional<std::uint32_t> value;
  if (!is_x && take('{')) {
    std::uint32_t sum = 0;
    const std::size_t first = at_;
    for (; more() && hex_digit(text_[at_]); ++at_)
      sum = std::min<std::uint32_t>(kLastCodePoint + 1, 16 * sum + *hex_digit(text_[at_]));
    if (at_ > first && take('}') && sum <= kLastCodePoint) value = sum;
  } else {
    value = hex(is_x ? 2 : text_[at_ - 1] == 'U' ? 8 : 4);
    if (value && *value > kLastCodePoint) value = std::nullopt;
  }
  if (!value) return fail(begin, "expected \\xHH, \\uHHHH or \\u{H...} up to 10FFFF");
  if (*value >= 0xD800 && *value <= 0xDBFF && take(U"\\u")) {
    const std::optional<std::uint32_t> low = hex(4);
    if (low && *low >= 0xDC00 && *low <= 0xDFFF) value = 0x10000 + ((*value - 0xD800) << 10) + (*low - 0xDC00);
  }
  if (is_surrogate(*value)) return fail(begin, "half of a surrogate pair is not a character");
  set = {{*value, *value}};
  return true;
}

std::optional<std::uint32_t> RegexParser::hex(std::size_t digits) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < digits; ++i, ++at_) {
    const std::optional<std::uint32_t> digit = more() ? hex_digit(text_[at_]) : std::nullopt;
    if (!digit) return std::nullopt;
    value = 16 * value + *digit;
  }
  return value;
}

// Reads a character class, after its '['.
bool RegexParser::character_class(CodePointSet& set) {
  const std::size_t begin = at_ - 1;
  const bool negated = take('^');
  CodePointSet ranges;
  const std::size_t inside = at_;
  while ((flags_.python && at_ == inside) || !take(']')) {
    if (!more()) return fail(begin, "'[' is not closed");
    const std::size_t first_at = at_;
    CodePointSet first;
    if (!class_atom(first)) return false;
    if (at('-') && !at(']', 1) && at_ + 1 < text_.size()) {
      const std::size_t dash = at_++;
      CodePointSet last;
      if (!class_atom(last)) return false;
      const auto is_one = [](const CodePointSet& s) { return s.size() == 1 && s[0].first == s[0].last; };
      if (is_one(first) && is_one(last)) {
        if (first[0].first > last[0].first) return fail(first_at, "the range is out of order");
        first[0].last = last[0].first;
      } else {  // [\w-x]: '-' is itself
        ranges.push_back({text_[dash], text_[dash]});
        ranges.insert(ranges.end(), last.begin(), last.end());
      }
    }
    ranges.insert(ranges.end(), first.begin(), first.end());
  }
  set = united(std::move(ranges));
  if (!fold(begin, set)) return false;
  if (negated) set = all_but(set);
  return true;
}

bool RegexParser::class_atom(CodePointSet& set) {
  const char32_t c = text_[at_++];
  if (c == '\\') return escape(set, true);
  set = {{c, c}};
  return true;
}

}  // namespace

Error regex_error(std::size_t at, const std::string& what) {
  return invalid({}, "regular expression, character " + std::to_string(at) + ": " + what);
}

Result<std::vector<RegexItem>> parse_regex(std::string_view pattern, const RegexFlags& flags) {
  if (pattern.size() > kMaxPatternBytes) {
    return invalid({}, "the regular expression has more than " + std::to_string(kMaxPatternBytes) + " bytes");
  }
  std::optional<std::u32string> text = decode_utf8(pattern);
  if (!text) return invalid({}, "the regular expression is not UTF-8");
  return RegexParser(*std::move(text), flags).run();
}

}  // namespace quire::grammar
