// Parser of a Pattern's source, in one pass. Syntax that pattern.h does not list is refused by name.
#include <algorithm>
#include <map>
#include <string>

#include "core/base/start_error.h"
#include "core/text/pattern.h"
#include "core/text/unicode/utf8.h"

namespace quire::text {
namespace {

using Ranges = std::vector<CodeRange>;
using Items = std::vector<Pattern::Item>;

class PatternParser {
 public:
  explicit PatternParser(std::string_view source) : source_(source) {
    if (!is_utf8(source)) refuse("bytes that are not UTF-8");
  }

  Pattern::Program parse() {
    do parse_alternative();
    while (take("|"));
    if (!done()) refuse("an unmatched )");
    return std::move(program_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw StartError("tokenizer.json: the pattern '" + std::string(source_) + "' has, at byte " + std::to_string(at_) +
                     ", " + what + ", which quire does not support");
  }

  bool done() const { return at_ == source_.size(); }
  bool next_is(std::string_view text) const { return source_.substr(at_, text.size()) == text; }
  bool take(std::string_view text) {
    if (!next_is(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t take_character() {
    if (done()) refuse("an unexpected end");
    return next_code_point(source_, at_);
  }

  void parse_alternative() {
    Pattern::Alternative alternative;
    // True after a group or a look-ahead: nothing may follow.
    bool closed = false;
    while (!done() && !next_is("|") && !next_is(")")) {
      if (closed) refuse("something after a group or a look-ahead");
      if (take("$")) {
        alternative.ahead = Pattern::Ahead::kLineEnd;
        closed = true;
      } else if (next_is("(?!") || next_is("(?=")) {
        parse_look_ahead(alternative);
        closed = true;
      } else if (next_is("(")) {
        std::vector<Items> choices = parse_group();
        if (take("?")) {
          for (const Items& choice : choices) alternative.endings.push_back(ending_of(choice));
        } else if (alternative.items.empty()) {
          for (Items& choice : choices) add({std::move(choice), {}, Pattern::Ahead::kAnything, 0});
          if (done() || next_is("|")) return;
        } else {
          refuse("a group within an alternative");
        }
        closed = true;
      } else {
        push_item(alternative.items, false);
      }
    }
    add(std::move(alternative));
  }

  void add(Pattern::Alternative alternative) {
    const bool may_be_empty =
        std::all_of(alternative.items.begin(), alternative.items.end(), [](const auto& item) { return item.min == 0; });
    if (may_be_empty) refuse("an alternative that may be empty");
    if (program_.alternatives.size() == Pattern::kMaxAlternatives) refuse("more than 32 alternatives");
    program_.alternatives.push_back(std::move(alternative));
  }

  void parse_look_ahead(Pattern::Alternative& alternative) {
    alternative.ahead = next_is("(?!") ? Pattern::Ahead::kNotClass : Pattern::Ahead::kClass;
    at_ += 3;
    alternative.ahead_class = parse_class(false);
    if (!take(")")) refuse("a look-ahead of more than one character");
  }

  // Parses a group, begun by ( or (?: or (?i: up to its closing parenthesis: rows of classes, without nested groups.
  std::vector<Items> parse_group() {
    const bool any_case = take("(?i:");
    if (!any_case && !take("(?:")) take("(");
    if (next_is("?")) refuse("a group of an unknown kind");
    std::vector<Items> choices(1);
    while (!take(")")) {
      if (take("|")) {
        if (choices.size() == Pattern::kMaxAlternatives) refuse("more than 32 choices in a group");
        choices.emplace_back();
      } else if (next_is("(") || next_is("$")) {
        refuse("a group or look-ahead within a group");
      } else {
        push_item(choices.back(), any_case);
      }
    }
    return choices;
  }

  // Checks the limit before the next class is compiled, since each class takes 8 KiB.
  void push_item(Items& items, bool any_case) {
    if (items.size() == Pattern::kMaxItems) refuse("more than 16 items in a row");
    items.push_back(parse_item(any_case));
  }

  std::vector<std::uint32_t> ending_of(const Items& items) const {
    std::vector<std::uint32_t> ending;
    for (const Pattern::Item& item : items) {
      if (item.min != 1 || item.max != 1) refuse("a count within an optional group");
      ending.push_back(item.char_class);
    }
    return ending;
  }

  Pattern::Item parse_item(bool any_case) {
    Pattern::Item item;
    item.char_class = parse_class(any_case);
    if (take("?")) {
      item.min = 0;
    } else if (take("*")) {
      item.min = 0;
      item.max = Pattern::kUnlimited;
    } else if (take("+")) {
      item.max = Pattern::kUnlimited;
    } else if (take("{")) {
      parse_count(item);
    } else {
      return item;
    }
    if (next_is("?") || next_is("+") || next_is("*") || next_is("{")) refuse("a lazy, possessive or repeated count");
    return item;
  }

  void parse_count(Pattern::Item& item) {
    item.min = parse_number();
    item.max = item.min;
    if (take(",")) item.max = next_is("}") ? Pattern::kUnlimited : parse_number();
    if (!take("}") || item.max < item.min || item.max == 0) refuse("an invalid count");
  }

  std::uint32_t parse_number() {
    constexpr std::uint32_t kMaxCount = 1000;
    std::uint32_t number = 0;
    const std::size_t begin = at_;
    while (!done() && source_[at_] >= '0' && source_[at_] <= '9' && number <= kMaxCount) {
      number = number * 10 + static_cast<std::uint32_t>(source_[at_++] - '0');
    }
    if (at_ == begin || number > kMaxCount) refuse("an invalid count");
    return number;
  }

  // Parses one character or set; each spelling is compiled once.
  std::uint32_t parse_class(bool any_case) {
    const std::size_t begin = at_;
    Ranges ranges = parse_ranges(any_case);
    const std::string spelling = (any_case ? "i" : "=") + std::string(source_.substr(begin, at_ - begin));
    const auto [known, is_new] = class_of_.try_emplace(spelling, static_cast<std::uint32_t>(program_.classes.size()));
    if (is_new) program_.classes.emplace_back(std::move(ranges));
    return known->second;
  }

  Ranges parse_ranges(bool any_case) {
    if (take("[")) {
      if (any_case) refuse("a set that ignores case");
      return parse_set();
    }
    if (take(".")) return complement({{'\n', '\n'}});
    if (take("\\")) return parse_escape();
    const char32_t code = take_character();
    if (code < 0x80 && std::string_view("^*+?{(").find(static_cast<char>(code)) != std::string_view::npos) {
      --at_;
      refuse("an operator instead of a character");
    }
    return any_case ? both_cases(code) : Ranges{{code, code}};
  }

  Ranges both_cases(char32_t code) const {
    if (code >= 0x80) refuse("a non-ASCII letter that ignores case");
    const char32_t letter = code | 0x20;
    if (letter < 'a' || letter > 'z') return {{code, code}};
    Ranges ranges = {{letter, letter}, {letter - 0x20, letter - 0x20}};
    if (letter == 's') ranges.push_back({0x17F, 0x17F});    // long s
    if (letter == 'k') ranges.push_back({0x212A, 0x212A});  // Kelvin sign
    return ranges;
  }

  Ranges parse_set() {
    const bool negated = take("^");
    Ranges ranges;
    for (bool first = true; first || !next_is("]"); first = false) {
      if (next_is("[") || next_is("&&") || next_is("]")) refuse("a set within a set, or an empty one");
      Ranges part = parse_set_member();
      if (next_is("-") && source_.substr(at_ + 1, 1) != "]") {
        ++at_;
        const Ranges last = parse_set_member();
        const bool both_characters = is_one_character(part) && is_one_character(last);
        if (!both_characters || last[0].first < part[0].first) refuse("an invalid range");
        part[0].last = last[0].first;
      }
      ranges.insert(ranges.end(), part.begin(), part.end());
    }
    ++at_;
    return negated ? complement(std::move(ranges)) : ranges;
  }

  static bool is_one_character(const Ranges& ranges) { return ranges.size() == 1 && ranges[0].first == ranges[0].last; }

  Ranges parse_set_member() {
    if (take("\\")) return parse_escape();
    const char32_t code = take_character();
    return {{code, code}};
  }

  // Parses the part after a backslash.
  Ranges parse_escape() {
    const char32_t code = take_character();
    switch (code) {
      case 's':
        return white_space_ranges();
      case 'S':
        return complement(white_space_ranges());
      case 'd':
        return ranges_of(set_of(Category::kNd));
      case 'D':
        return complement(ranges_of(set_of(Category::kNd)));
      case 'p':
        return parse_category();
      case 'P':
        return complement(parse_category());
      case 'r':
        return {{'\r', '\r'}};
      case 'n':
        return {{'\n', '\n'}};
      case 't':
        return {{'\t', '\t'}};
      default:
        break;
    }
    const char32_t letter = code | 0x20;
    const bool is_letter_or_digit = (letter >= 'a' && letter <= 'z') || (code >= '0' && code <= '9');
    if (is_letter_or_digit) refuse("an unknown escape");
    return {{code, code}};
  }

  Ranges parse_category() {
    const std::size_t end = source_.find('}', at_);
    if (!take("{") || end == std::string_view::npos) refuse("\\p without {name}");
    const auto categories = category_set(source_.substr(at_, end - at_));
    if (!categories) refuse("an unknown \\p{name}");
    at_ = end + 1;
    return ranges_of(*categories);
  }

  std::string_view source_;
  std::size_t at_ = 0;
  Pattern::Program program_;
  std::map<std::string, std::uint32_t> class_of_;
};

}  // namespace

Pattern::Program parse_pattern(std::string_view source) { return PatternParser(source).parse(); }

}  // namespace quire::text
