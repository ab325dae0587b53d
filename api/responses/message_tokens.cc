#include "api/responses/message_tokens.h"

#include <algorithm>

namespace quire::api::responses {
namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

}  // namespace

void MessageTokens::add(const AnswerTokens& tokens) {
  if (tokens.tokens.empty()) return;
  num_top_ = tokens.num_top;
  tokens_.insert(tokens_.end(), tokens.tokens.begin(), tokens.tokens.end());
  top_.insert(top_.end(), tokens.top.begin(), tokens.top.end());
}

// Pushes one character at a time, so that content which the parser returns can hardly come from another place.
void MessageTokens::push(chat::AnswerParser& parser, std::string_view text, chat::Deltas& out) {
  while (!text.empty()) {
    std::size_t size = 1;
    while (size < text.size() && !begins_character(text[size])) ++size;
    unplaced_ += text.substr(0, size);
    positions_.insert(positions_.end(), size, position_++);
    chat::Deltas deltas;
    parser.push(text.substr(0, size), deltas);
    place(deltas, out);
    text.remove_prefix(size);
  }
}

void MessageTokens::finish(chat::AnswerParser& parser, chat::Deltas& out) {
  chat::Deltas deltas;
  parser.finish(deltas);
  place(deltas, out);
}

void MessageTokens::place(const chat::Deltas& deltas, chat::Deltas& out) {
  for (const chat::Delta& delta : deltas.all()) {
    if (delta.kind == chat::Delta::Kind::kContent) find(delta.text);
    out.add(delta.kind, delta.text, delta.call);
  }
}

// Finds the positions of `content` in unplaced_, at the last possible place: text before it was no content. Exception:
// a character that may begin a mark is held back until the next character; if both are equal, the first was returned.
void MessageTokens::find(std::string_view content) {
  std::vector<std::uint32_t> found;
  std::size_t at = unplaced_.size();
  const std::string_view before_last = std::string_view(unplaced_).substr(0, at - std::min<std::size_t>(at, 1));
  if (before_last.ends_with(content) && unplaced_.back() == content.back()) --at;
  std::size_t end = 0;
  for (std::size_t i = content.size(); i > 0; --i) {
    while (at > 0 && unplaced_[at - 1] != content[i - 1]) --at;
    if (at == 0) break;
    --at;
    if (end == 0) end = at + 1;
    if (begins_character(content[i - 1])) found.push_back(positions_[at]);
  }
  content_.insert(content_.end(), found.rbegin(), found.rend());
  unplaced_.erase(0, end);
  positions_.erase(positions_.begin(), positions_.begin() + static_cast<std::ptrdiff_t>(end));
}

AnswerTokens MessageTokens::take(std::size_t item, std::string_view text) {
  Run& run = runs_[item];
  const std::size_t first = run.tokens.size();
  auto num_characters = static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
  for (; num_characters > 0 && !content_.empty(); --num_characters) {
    const std::uint32_t position = content_.front();
    content_.pop_front();
    // The character is spelled by the last token that begins at its position or earlier; earlier tokens spelled text
    // that is no content.
    const auto begins_later = [position](const AnswerToken& token) { return token.offset > position; };
    const auto later = std::ranges::find_if(tokens_, begins_later);
    if (later == tokens_.begin()) continue;  // its token was taken with an earlier character
    const std::uint32_t offset = std::prev(later)->offset;
    while (!tokens_.empty() && tokens_.front().offset <= offset) {
      if (tokens_.front().offset == offset) {
        run.tokens.push_back(tokens_.front());
        run.top.insert(run.top.end(), top_.begin(), top_.begin() + static_cast<std::ptrdiff_t>(num_top_));
      }
      tokens_.pop_front();
      top_.erase(top_.begin(), top_.begin() + static_cast<std::ptrdiff_t>(num_top_));
    }
  }
  return view(run, first, num_top_);
}

AnswerTokens MessageTokens::of(std::size_t item) const {
  const auto at = runs_.find(item);
  return at == runs_.end() ? AnswerTokens{} : view(at->second, 0, num_top_);
}

AnswerTokens MessageTokens::view(const Run& run, std::size_t first, std::size_t num_top) {
  return {std::span(run.tokens).subspan(first), std::span(run.top).subspan(first * num_top), num_top};
}

}  // namespace quire::api::responses
