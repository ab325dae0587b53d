// The regular expressions that tokenizer.json files split text with, compiled to a small form and matched in linear time.
// Shape   a pattern is alternatives, tried in order; an alternative is a row of character classes with greedy counts,
//         then at most one optional group of endings ('s|'t|...), or one look-ahead: (?!class), (?=class) or $.
//         That covers GPT-2, Llama 3, Qwen 2, StarCoder, DeepSeek and o200k; lazy and possessive counts, other groups,
//         references and the rest are refused.
// Thread  any; every method is const.
// Fails   regex(): StartError naming the pattern and what in it is not understood.
// Source  ours; meaning as Oniguruma's Ruby syntax, which the `tokenizers` package uses ($ is the end of a line). Time:
//         no start scans a run again that led nowhere (Scan::dead_until in pattern.cc). Linear for the patterns above; one
//         with several unlimited counts of overlapping classes in a row may give back and forth more than that.
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
  std::size_t literal_bytes() const { return literal_bytes_; }  // of every match; 0: not a literal

  struct Match {
    std::size_t begin, end;  // never empty
  };
  // Appends the leftmost matches that do not overlap, ascending. Look-aheads see no further than the text's end.
  void find_all(std::string_view valid_text, std::vector<Match>& matches) const;

  // The compiled form, for the parser in pattern_parser.cc.
  static constexpr std::size_t kMaxItems = 16;
  static constexpr std::size_t kMaxAlternatives = 32;
  static constexpr std::uint32_t kUnlimited = UINT32_MAX;
  enum class Ahead { kAnything, kClass, kNotClass, kLineEnd };
  struct Item {
    std::uint32_t char_class = 0;  // into classes
    std::uint32_t min = 1, max = 1;
  };
  struct Alternative {
    std::vector<Item> items;
    std::vector<std::vector<std::uint32_t>>
        endings;  // of classes, one for each character; the first that fits is taken
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

// Reads the source; pattern_parser.cc.
Pattern::Program parse_pattern(std::string_view source);

}  // namespace quire::text
