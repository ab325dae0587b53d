// Splits normalized text into words; byte-pair merges never cross a word's end.
// Shape   Words: one text and ascending ranges of it; steps split ranges, or rewrite the text.
// Thread  any, once built.
// Source  the `tokenizers` package: ByteLevel, Split, Digits, Punctuation and Metaspace are composed of these steps.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "core/text/pattern.h"

namespace quire::text {

struct Words {
  struct Range {
    std::size_t begin, end;
  };
  std::string text;
  std::vector<Range> ranges;
};

class PreTokenizer {
 public:
  enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };
  struct Split {
    Pattern pattern;
    Behavior behavior;
    bool invert;
  };
  struct Replace {  // in every word
    Pattern pattern;
    std::string content;
  };
  struct Prefix {  // before every word that does not begin with it
    std::string content;
    bool first_only;  // only before the word at the input's start
  };
  struct ByteLevel {};  // spells bytes with GPT-2's alphabet
  using Step = std::variant<Split, Replace, Prefix, ByteLevel>;

  void add(Step step) { steps_.push_back(std::move(step)); }

  bool is_byte_level() const;  // the result is in GPT-2's byte alphabet
  bool drops_text() const;     // some of the text may not be in the result

  // at_input_start: nothing of the input, not even an added token, is before this text.
  Words apply(std::string normalized_text, bool at_input_start) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace quire::text
