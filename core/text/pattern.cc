#include "core/text/pattern.h"

#include "core/base/check.h"
#include "core/text/unicode/utf8.h"

namespace quire::text {

struct Pattern::Scan {
  std::string_view text;
  // For each alternative: no match starts before this position. If the first item has no upper count and the match
  // failed, a later start in the same run reaches a subset of the same ends, so it fails too.
  std::array<std::size_t, kMaxAlternatives> dead_until{};
};

Pattern Pattern::regex(std::string_view source) { return Pattern(parse_pattern(source)); }

Pattern Pattern::literal(std::string_view text) {
  std::string escaped;
  for (const char byte : text) {
    if (std::string_view("\\^$.|?*+()[]{}").find(byte) != std::string_view::npos) escaped += '\\';
    escaped += byte;
  }
  Pattern pattern = regex(escaped);
  pattern.literal_bytes_ = text.size();
  return pattern;
}

Pattern::Pattern(Program program) : program_(std::move(program)) {
  CHECK_LE(program_.alternatives.size(), kMaxAlternatives);
  for (std::size_t i = 0; i < program_.alternatives.size(); ++i) {
    CHECK_LE(program_.alternatives[i].items.size(), kMaxItems);
    for (const Item& item : program_.alternatives[i].items) {
      for (char32_t code = 0; code < starts_.size(); ++code) {
        if (program_.classes[item.char_class].contains(code)) starts_[code] |= 1u << i;
      }
      if (item.min > 0) break;
    }
  }
}

void Pattern::find_all(std::string_view valid_text, std::vector<Match>& matches) const {
  Scan scan{valid_text};
  for (std::size_t at = 0; at < valid_text.size();) {
    if (const auto end = match_at(scan, at)) {
      matches.push_back({at, *end});
      at = *end;
    } else {
      next_code_point(valid_text, at);
    }
  }
}

std::optional<std::size_t> Pattern::match_at(Scan& scan, std::size_t at) const {
  const auto lead = static_cast<unsigned char>(scan.text[at]);
  std::uint32_t candidates = lead < starts_.size() ? starts_[lead] : UINT32_MAX;
  for (std::size_t i = 0; i < program_.alternatives.size(); ++i) {
    if ((candidates >> i & 1) == 0 || at < scan.dead_until[i]) continue;
    if (const auto end = match_alternative(scan, i, at)) return end;
  }
  return std::nullopt;
}

// Greedy matching with an explicit stack: level i has the length that item i took. A failure gives back one character
// of the deepest level that can spare one.
std::optional<std::size_t> Pattern::match_alternative(Scan& scan, std::size_t index, std::size_t at) const {
  const Alternative& alternative = program_.alternatives[index];
  const std::string_view text = scan.text;
  struct Level {
    std::size_t end;
    std::uint32_t count;
  };
  std::array<Level, kMaxItems> levels;
  std::size_t depth = 0, first_run_end = at;
  while (true) {
    bool fits = true;
    if (depth == alternative.items.size()) {
      if (ahead_holds(alternative, text, at)) return after_ending(alternative, text, at);
      fits = false;
    } else {
      const Item& item = alternative.items[depth];
      const CharClass& wanted = program_.classes[item.char_class];
      std::uint32_t count = 0;
      while (count < item.max && at < text.size()) {
        std::size_t behind = at;
        if (!wanted.contains(next_code_point(text, behind))) break;
        at = behind;
        ++count;
      }
      if (depth == 0) first_run_end = at;
      fits = count >= item.min;
      if (fits) levels[depth++] = {at, count};
    }
    if (fits) continue;
    while (depth > 0 && levels[depth - 1].count == alternative.items[depth - 1].min) --depth;
    if (depth == 0) break;
    Level& level = levels[depth - 1];
    level.end = previous_character(text, level.end);
    --level.count;
    at = level.end;
  }
  if (alternative.items[0].max == kUnlimited) scan.dead_until[index] = first_run_end;
  return std::nullopt;
}

std::size_t Pattern::after_ending(const Alternative& alternative, std::string_view text, std::size_t at) const {
  for (const std::vector<std::uint32_t>& ending : alternative.endings) {
    std::size_t behind = at;
    bool fits = true;
    for (const std::uint32_t char_class : ending) {
      fits = behind < text.size() && program_.classes[char_class].contains(next_code_point(text, behind));
      if (!fits) break;
    }
    if (fits) return behind;
  }
  return at;
}

bool Pattern::ahead_holds(const Alternative& alternative, std::string_view text, std::size_t at) const {
  const bool at_end = at == text.size();
  const auto next_is_in_class = [&] {
    std::size_t behind = at;
    return !at_end && program_.classes[alternative.ahead_class].contains(next_code_point(text, behind));
  };
  switch (alternative.ahead) {
    case Ahead::kAnything:
      return true;
    case Ahead::kClass:
      return next_is_in_class();
    case Ahead::kNotClass:
      return !next_is_in_class();
    case Ahead::kLineEnd:
      return at_end || text[at] == '\n';
  }
  return false;
}

}  // namespace quire::text
