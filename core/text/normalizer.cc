#include "core/text/normalizer.h"

#include "core/text/unicode/utf8.h"

namespace quire::text {
namespace {

std::string without_marks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (!is_accent(next_code_point(text, at))) out += text.substr(begin, at - begin);
  }
  return out;
}

std::string stripped(std::string_view text, const Normalizer::Strip& sides) {
  std::size_t begin = 0, end = text.size();
  for (std::size_t at = 0; sides.left && at < text.size() && is_white_space(next_code_point(text, at));) begin = at;
  while (sides.right && end > begin) {
    const std::size_t last = previous_character(text, end);
    std::size_t behind = last;
    if (!is_white_space(next_code_point(text, behind))) break;
    end = last;
  }
  return std::string(text.substr(begin, end - begin));
}

struct ApplyToText {
  std::string text;

  std::string operator()(NormalForm form) { return normalized(text, form); }
  std::string operator()(Normalizer::Lowercase) { return lowercased(text); }
  std::string operator()(Normalizer::StripAccents) { return without_marks(text); }
  std::string operator()(const Normalizer::Strip& sides) { return stripped(text, sides); }
  std::string operator()(const Normalizer::Replace& step) { return replace_all(text, step.pattern, step.content); }
  std::string operator()(const Normalizer::Prepend& step) { return text.empty() ? text : step.content + text; }
};

}  // namespace

std::string Normalizer::apply(std::string text) const {
  for (const Step& step : steps_) text = std::visit(ApplyToText{std::move(text)}, step);
  return text;
}

// NFC and NFD shrink text by a factor of 3 at most ("\u03B9\u0308\u0301", six bytes, becomes two); 4 is safe.
// Compatibility forms and case mapping can shrink more, and steps that delete text have no bound.
std::size_t Normalizer::most_shrinking() const {
  std::size_t most = 1;
  for (const Step& step : steps_) {
    const NormalForm* form = std::get_if<NormalForm>(&step);
    const bool canonical = form != nullptr && (*form == NormalForm::kNfc || *form == NormalForm::kNfd);
    const Replace* replace = std::get_if<Replace>(&step);
    const std::size_t replaced = replace != nullptr ? replace->pattern.literal_bytes() : 0;
    const bool longer = replaced > 0 && replace->content.size() >= replaced;
    if (canonical) {
      most *= 4;
    } else if (!longer && !std::holds_alternative<Prepend>(step)) {
      return 0;
    }
  }
  return most;
}

std::string replace_all(std::string_view text, const Pattern& pattern, std::string_view content) {
  std::string out;
  out.reserve(text.size());
  std::size_t done = 0;
  std::vector<Pattern::Match> matches;
  pattern.find_all(text, matches);
  for (const Pattern::Match& match : matches) {
    out += text.substr(done, match.begin - done);
    out += content;
    done = match.end;
  }
  out += text.substr(done);
  return out;
}

}  // namespace quire::text
