#include "core/text/added_tokens.h"

#include <algorithm>

#include "core/text/unicode/unicode.h"
#include "core/text/unicode/utf8.h"

namespace quire::text {
namespace {

bool word_ends_at(std::string_view text, std::size_t at) {
  if (at == 0) return false;
  std::size_t last = previous_character(text, at);
  return is_word(next_code_point(text, last));
}

bool word_begins_at(std::string_view text, std::size_t at) {
  return at < text.size() && is_word(next_code_point(text, at));
}

// Start of the white space that ends at text[at], but not before `from`.
std::size_t blanks_begin(std::string_view text, std::size_t at, std::size_t from) {
  while (at > from) {
    const std::size_t last = previous_character(text, at);
    std::size_t behind = last;
    if (!is_white_space(next_code_point(text, behind))) break;
    at = last;
  }
  return at;
}

std::size_t blanks_end(std::string_view text, std::size_t at) {
  for (std::size_t behind = at; behind < text.size() && is_white_space(next_code_point(text, behind));) at = behind;
  return at;
}

std::size_t total_bytes(const std::vector<AddedToken>& tokens) {
  std::size_t bytes = 0;
  for (const AddedToken& token : tokens) bytes += token.match.size();
  return bytes;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)), edges_(total_bytes(tokens_)), ends_(1, -1) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].match.empty()) continue;
    may_begin_[static_cast<unsigned char>(tokens_[i].match[0])] = true;
    std::uint32_t node = 0;
    for (const char c : tokens_[i].match) {
      const auto byte = static_cast<unsigned char>(c);
      const auto known = edges_.find(node, byte);
      const auto next = known.value_or(static_cast<std::uint32_t>(ends_.size()));
      if (!known) {
        edges_.set(node, byte, next);
        ends_.push_back(-1);
      }
      node = next;
    }
    ends_[node] = static_cast<std::int32_t>(i);
  }
}

std::optional<AddedTokens::Match> AddedTokens::longest_at(std::string_view text, std::size_t begin) const {
  std::optional<Match> longest;
  std::uint32_t node = 0;
  for (std::size_t at = begin; at < text.size();) {
    const auto next = edges_.find(node, static_cast<unsigned char>(text[at]));
    if (!next) break;
    node = *next;
    ++at;
    if (ends_[node] >= 0) longest = Match{at, static_cast<std::size_t>(ends_[node])};
  }
  return longest;
}

std::vector<AddedTokens::Piece> AddedTokens::split(std::string_view valid_text) const {
  std::vector<Piece> pieces;
  std::size_t done = 0;
  for (std::size_t at = 0; at < valid_text.size();) {
    if (!may_begin_[static_cast<unsigned char>(valid_text[at])]) {
      ++at;
      continue;
    }
    const auto match = longest_at(valid_text, at);
    if (!match) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[match->token];
    std::size_t begin = at, end = match->end;
    at = end;  // also if the match is dropped: its inside is not searched again
    if (token.single_word && (word_ends_at(valid_text, begin) || word_begins_at(valid_text, end))) continue;
    if (token.lstrip) begin = std::max(blanks_begin(valid_text, begin, std::min(begin, done)), done);
    if (token.rstrip) end = blanks_end(valid_text, end);
    if (done < begin) pieces.push_back({valid_text.substr(done, begin - done), std::nullopt});
    pieces.push_back({valid_text.substr(begin, end > begin ? end - begin : 0), token.id});
    done = end;
  }
  if (done < valid_text.size()) pieces.push_back({valid_text.substr(done), std::nullopt});
  return pieces;
}

}  // namespace quire::text
