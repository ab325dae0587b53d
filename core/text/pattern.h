// The regular expressions by which tokenizer.json files split text, compiled and matched in linear time.
// Shape   a pattern is alternatives, tried in order. An alternative is a row of character classes with greedy counts,
//         then at most one optional group of endings ('s|'t|...) or one look-ahead: (?!class), (?=class) or $. That
//         covers GPT-2, Llama 3, Qwen 2, StarCoder, DeepSeek and o200k. Lazy and possessive counts, other groups,
//         references and all other syntax are refused.
// Thread  any; every method is const.
// Fails   regex(): StartError naming the pattern and the unsupported part.
// Source  ours; semantics of Oniguruma's Ruby syntax, as the `tokenizers` package uses it ($ is the end of a line). A
//         run that led to no match is not scanned from a later start again (Scan::dead_until in pattern.cc). Linear for
//         the patterns above; a pattern with several unlimited counts of overlapping classes in a row can backtrack
//         more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/unicode/char_class.h"

namespace quire::text {

class Pattern {
 public:
  static Pattern regex(std::string_view source);
  static Pattern literal(std::string_view text);
  std::size_t literal_bytes() const { return literal_bytes_; }  // length of every match; 0: not a literal

  struct Match {
    std::size_t begin, end;  // never empty
  };
  // Appends the leftmost matches that do not overlap, ascending. Look-aheads end at the text's end.
  void find_all(std::string_view valid_text, std::vector<Match>& matches) const;

  // The compiled form, for the parser in pattern_parser.cc.
  static constexpr std::size_t kMaxItems = 16;
  static constexpr std::size_t kMaxAlternatives = 32;
  static constexpr std::uint32_t kUnlimited = UINT32_MAX;
  enum class Ahead { kAnything, kClass, kNotClass, kLineEnd };
  struct Item {
    std::uint32_t char_class = 0;  // index in classes
    std::uint32_t min = 1, max = 1;
  };
  struct Alternative {
    std::vector<Item> items;
    // Class sequences, one class for each character; the first sequence that fits is taken.
    std::vector<std::vector<std::uint32_t>> endings;
    Ahead ahead = Ahead::kAnything;
    std::uint32_t ahead_class = 0;
  };
  struct Program {
    std::vector<CharClass> classes;
    std::vector<Alternative> alternatives;
  };

 private:
  explicit Pattern(Program program);
  struct Scan;

  std::optional<std::size_t> match_at(Scan& scan, std::size_t at) const;
  std::optional<std::size_t> match_alternative(Scan& scan, std::size_t index, std::size_t at) const;
  std::size_t after_ending(const Alternative& alternative, std::string_view text, std::size_t at) const;
  bool ahead_holds(const Alternative& alternative, std::string_view text, std::size_t at) const;

  Program program_;
  std::size_t literal_bytes_ = 0;
  std::array<std::uint32_t, 128> starts_{};  // bit i: alternative i may begin with this ASCII character
};

// Parses a pattern's source (pattern_parser.cc).
Pattern::Program parse_pattern(std::string_view source);

}  // namespace quire::text
