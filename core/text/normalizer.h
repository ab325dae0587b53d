// The first step of encoding: normal forms, case, white space and replacements, in tokenizer.json's order.
// Shape   valid UTF-8 in, valid UTF-8 out.
// Thread  any, once built.
// Source  the `tokenizers` package's normalizers of the same names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/text/pattern.h"
#include "core/text/unicode/unicode.h"

namespace quire::text {

class Normalizer {
 public:
  struct Lowercase {};
  struct StripAccents {};  // drops combining marks, without decomposing first
  struct Strip {
    bool left, right;
  };
  struct Replace {
    Pattern pattern;
    std::string content;
  };
  struct Prepend {  // not to empty text
    std::string content;
  };
  using Step = std::variant<NormalForm, Lowercase, StripAccents, Strip, Replace, Prepend>;

  void add(Step step) { steps_.push_back(std::move(step)); }
  bool empty() const { return steps_.empty(); }
  std::string apply(std::string text) const;

  // Upper bound of the input bytes per output byte; 0: no bound.
  std::size_t most_shrinking() const;

 private:
  std::vector<Step> steps_;
};

std::string replace_all(std::string_view text, const Pattern& pattern, std::string_view content);

}  // namespace quire::text
