#include "core/text/detokenizer.h"

#include <algorithm>
#include <utility>

#include "core/text/token_decoder.h"
#include "core/text/unicode/utf8.h"

namespace quire::text {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens, bool goes_on)
    : tokenizer_(std::move(tokenizer)),
      skip_special_tokens_(skip_special_tokens),
      at_first_token_(!goes_on),
      left_to_strip_(goes_on ? 0 : tokenizer_->decoder().strip_count()) {}

std::string Detokenizer::push(TokenId id) {
  const TokenDecoder& decoder = tokenizer_->decoder();
  const TokenDecoder::Piece& piece = decoder.piece(id);
  if (piece.kind == TokenDecoder::Kind::kMissing || (piece.skip && skip_special_tokens_)) return {};

  std::string out;
  completed_ = 0;
  if (!at_first_token_) out += decoder.separator();
  const std::string_view bytes = at_first_token_ ? decoder.first_bytes(id) : piece.bytes;
  at_first_token_ = false;
  if (piece.kind == TokenDecoder::Kind::kText) {
    end_run(out);
    out += bytes;
  } else if (piece.kind == TokenDecoder::Kind::kFallbackByte) {
    append_fallback_byte(bytes.front(), out);
  } else {
    append_level_bytes(bytes, out);
  }
  return stripped(std::move(out), false);
}

std::string Detokenizer::finish() {
  std::string out;
  end_run(out);
  return stripped(std::move(out), true);
}

void Detokenizer::append_level_bytes(std::string_view bytes, std::string& out) {
  held_ += bytes;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Head head = utf8_head(rest);
    if (head.kind == Utf8Head::Kind::kIncomplete) break;
    out += head.kind == Utf8Head::Kind::kCharacter ? rest.substr(0, head.bytes) : kReplacementCharacter;
    rest.remove_prefix(head.bytes);
  }
  held_.erase(0, held_.size() - rest.size());
}

void Detokenizer::append_fallback_byte(char byte, std::string& out) {
  is_fallback_ = true;
  held_ += byte;
  const Utf8Head head = utf8_head(std::string_view(held_).substr(whole_));
  if (is_broken_ || head.kind == Utf8Head::Kind::kInvalid) {
    for (std::size_t i = 0; i < held_.size(); ++i) out += kReplacementCharacter;
    held_.clear();
    whole_ = num_held_ = 0;
    is_broken_ = true;
  } else if (head.kind == Utf8Head::Kind::kCharacter) {
    whole_ = held_.size();
    ++num_held_;
    if (left_to_strip_ == 0 && tokenizer_->decoder().rewrite() == nullptr) completed_ = head.bytes;
  }
}

void Detokenizer::end_run(std::string& out) {
  if (is_fallback_ && whole_ == held_.size()) {
    out += held_;
  } else {  // byte level: one U+FFFD for an unfinished character
    const std::size_t num = is_fallback_ ? held_.size() : held_.empty() ? 0 : 1;
    for (std::size_t i = 0; i < num; ++i) out += kReplacementCharacter;
  }
  held_.clear();
  whole_ = num_held_ = completed_ = 0;
  is_fallback_ = is_broken_ = false;
}

std::string Detokenizer::stripped(std::string text, bool ends) {
  const std::string_view content = tokenizer_->decoder().strip_content();
  while (left_to_strip_ > 0 && !text.empty()) {
    if (!text.starts_with(content)) {
      left_to_strip_ = 0;
      break;
    }
    text.erase(0, content.size());
    --left_to_strip_;
  }
  const TokenDecoder::Rewrite* rewrite = tokenizer_->decoder().rewrite();
  if (rewrite == nullptr) return text;
  text.insert(0, std::exchange(rewritten_, {}));
  std::string out;
  std::size_t at = 0;
  for (std::size_t found; (found = text.find(rewrite->from, at)) != text.npos; at = found + rewrite->from.size()) {
    out.append(text, at, found - at).append(rewrite->to);
  }
  std::size_t keep = ends ? 0 : std::min(rewrite->from.size() - 1, text.size() - at);
  while (!std::string_view(rewrite->from).starts_with(std::string_view(text).substr(text.size() - keep))) --keep;
  rewritten_ = text.substr(text.size() - keep);
  return out.append(text, at, text.size() - keep - at);
}

}  // namespace quire::text
