#include "core/text/detokenizer.h"

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
  if (!at_first_token_) out += decoder.separator();
  const std::string_view bytes = at_first_token_ ? decoder.first_bytes(id) : piece.bytes;
  at_first_token_ = false;
  if (piece.kind == TokenDecoder::Kind::kText) {
    give_up_held(out);
    out += bytes;
  } else {
    held_is_fallback_ = piece.kind == TokenDecoder::Kind::kFallbackByte;
    append_bytes(bytes, out);
  }
  return without_stripped(std::move(out));
}

std::string Detokenizer::finish() {
  std::string out;
  give_up_held(out);
  return without_stripped(std::move(out));
}

void Detokenizer::append_bytes(std::string_view bytes, std::string& out) {
  held_ += bytes;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Head head = utf8_head(rest);
    if (head.kind == Utf8Head::Kind::kIncomplete) break;
    if (head.kind == Utf8Head::Kind::kCharacter) {
      out += rest.substr(0, head.bytes);
    } else {
      // Byte fallback counts in bytes, byte level in maximal subparts.
      for (std::size_t i = 0; i < (held_is_fallback_ ? head.bytes : 1); ++i) out += kReplacementCharacter;
    }
    rest.remove_prefix(head.bytes);
  }
  held_.erase(0, held_.size() - rest.size());
}

// No continuation comes any more.
void Detokenizer::give_up_held(std::string& out) {
  if (held_.empty()) return;
  for (std::size_t i = 0; i < (held_is_fallback_ ? held_.size() : 1); ++i) out += kReplacementCharacter;
  held_.clear();
}

std::string Detokenizer::without_stripped(std::string text) {
  const std::string_view content = tokenizer_->decoder().strip_content();
  while (left_to_strip_ > 0 && !text.empty()) {
    if (!text.starts_with(content)) {
      left_to_strip_ = 0;
      break;
    }
    text.erase(0, content.size());
    --left_to_strip_;
  }
  return text;
}

}  // namespace quire::text
