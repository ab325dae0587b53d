#include "core/text/pre_tokenizer.h"

#include <algorithm>
#include <optional>

#include "core/text/byte_level.h"
#include "core/text/normalizer.h"

namespace quire::text {
namespace {

using Range = Words::Range;

struct Piece {
  Range range;
  bool is_match;  // of the pattern; with `invert`, of the text between its matches
};

// True if a piece continues the word of the piece before it.
bool joins_previous(PreTokenizer::Behavior behavior, const Piece& before, const Piece& piece) {
  switch (behavior) {
    case PreTokenizer::Behavior::kMergedWithPrevious:
      return piece.is_match && !before.is_match;
    case PreTokenizer::Behavior::kMergedWithNext:
      return before.is_match && !piece.is_match;
    case PreTokenizer::Behavior::kContiguous:
      return piece.is_match == before.is_match;
    case PreTokenizer::Behavior::kIsolated:
    case PreTokenizer::Behavior::kRemoved:
      return false;
  }
  return false;
}

// Cuts words by one Split and appends to `ranges`. One object serves many words and reuses the matches' memory.
class Splitter {
 public:
  Splitter(const PreTokenizer::Split& split, std::vector<Range>& ranges) : split_(split), ranges_(ranges) {}

  void cut(std::string_view word, std::size_t offset) {
    matches_.clear();
    before_.reset();
    split_.pattern.find_all(word, matches_);
    std::size_t done = 0;
    for (const Pattern::Match& match : matches_) {
      if (done < match.begin) add({{offset + done, offset + match.begin}, split_.invert});
      add({{offset + match.begin, offset + match.end}, !split_.invert});
      done = match.end;
    }
    if (done < word.size()) add({{offset + done, offset + word.size()}, split_.invert});
  }

 private:
  void add(const Piece& piece) {
    if (split_.behavior == PreTokenizer::Behavior::kRemoved && piece.is_match) return;
    if (before_ && joins_previous(split_.behavior, *before_, piece)) {
      ranges_.back().end = piece.range.end;
    } else {
      ranges_.push_back(piece.range);
    }
    before_ = piece;
  }

  const PreTokenizer::Split& split_;
  std::vector<Range>& ranges_;
  std::vector<Pattern::Match> matches_;
  std::optional<Piece> before_;  // the previous piece of the same word
};

// Rewrites every word; spell(out, word) appends to `out`.
template <typename Spell>
Words respelled(const Words& words, const Spell& spell) {
  Words out;
  out.text.reserve(words.text.size() + words.text.size() / 4);
  out.ranges.reserve(words.ranges.size());
  for (const Range& range : words.ranges) {
    const std::size_t begin = out.text.size();
    spell(out.text, std::string_view(words.text).substr(range.begin, range.end - range.begin));
    if (begin < out.text.size()) out.ranges.push_back({begin, out.text.size()});
  }
  return out;
}

struct ApplyToWords {
  Words words;
  bool at_input_start;

  Words operator()(const PreTokenizer::Split& split) {
    std::vector<Range> ranges;
    ranges.reserve(words.ranges.size());
    Splitter splitter(split, ranges);
    for (const Range& range : words.ranges) {
      splitter.cut(std::string_view(words.text).substr(range.begin, range.end - range.begin), range.begin);
    }
    words.ranges = std::move(ranges);
    return std::move(words);
  }

  Words operator()(const PreTokenizer::Replace& step) {
    return respelled(
        words, [&](std::string& out, std::string_view word) { out += replace_all(word, step.pattern, step.content); });
  }

  Words operator()(const PreTokenizer::Prefix& step) {
    // The first word counts as first only if it starts the text, and the text starts the input.
    const bool first_word_counts = at_input_start && !words.ranges.empty() && words.ranges[0].begin == 0;
    bool eligible = !step.first_only || first_word_counts;
    return respelled(words, [&](std::string& out, std::string_view word) {
      if (eligible && !word.starts_with(step.content)) out += step.content;
      out += word;
      if (step.first_only) eligible = false;
    });
  }

  Words operator()(PreTokenizer::ByteLevel) {
    return respelled(words, [](std::string& out, std::string_view word) { append_byte_level(out, word); });
  }
};

}  // namespace

bool PreTokenizer::is_byte_level() const {
  return std::ranges::any_of(steps_, [](const Step& step) { return std::holds_alternative<ByteLevel>(step); });
}

bool PreTokenizer::drops_text() const {
  return std::ranges::any_of(steps_, [](const Step& step) {
    const Split* split = std::get_if<Split>(&step);
    return (split != nullptr && split->behavior == Behavior::kRemoved) || std::holds_alternative<Replace>(step);
  });
}

Words PreTokenizer::apply(std::string normalized_text, bool at_input_start) const {
  Words words;
  words.text = std::move(normalized_text);
  if (!words.text.empty()) words.ranges.push_back({0, words.text.size()});
  for (const Step& step : steps_) words = std::visit(ApplyToWords{std::move(words), at_input_start}, step);
  return words;
}

}  // namespace quire::text
