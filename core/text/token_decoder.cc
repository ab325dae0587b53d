#include "core/text/token_decoder.h"

#include "core/base/start_error.h"
#include "core/text/byte_level.h"
#include "core/text/normalizer.h"
#include "core/text/unicode/utf8.h"

namespace quire::text {
namespace {

std::string stripped(std::string_view token, const DecoderSteps::Strip& strip) {
  const std::u32string codes = code_points(token);
  std::size_t begin = 0, end = codes.size();
  while (begin < codes.size() && begin < strip.start && codes[begin] == strip.content) ++begin;
  while (end > begin && codes.size() - end < strip.stop && codes[end - 1] == strip.content) --end;
  return utf8_of(std::u32string_view(codes).substr(begin, end - begin));
}

std::string without_metaspace(std::string_view token, const DecoderSteps::Metaspace& metaspace, bool first) {
  std::string out;
  for (const char32_t code : code_points(token)) {
    if (code != metaspace.replacement) {
      append_utf8(out, code);
    } else if (!first || !metaspace.drop_from_first) {
      out += ' ';
    }
  }
  return out;
}

// The byte of a token <0xNN>.
std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned value = 0;
  for (const char digit : token.substr(3, 2)) {
    const char lower = digit >= 'A' && digit <= 'F' ? static_cast<char>(digit - 'A' + 'a') : digit;
    const std::size_t number = std::string_view("0123456789abcdef").find(lower);
    if (number == std::string_view::npos) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(number);
  }
  return static_cast<char>(value);
}

[[noreturn]] void refuse_decoder(const std::string& what) { throw StartError("tokenizer.json: decoder: " + what); }

}  // namespace

void DecoderSteps::add(Step step) {
  empty_ = false;
  if (std::holds_alternative<Fuse>(step)) {
    fused_ = true;
  } else if (const auto* bytes = std::get_if<Bytes>(&step)) {
    if (bytes_ || fused_) refuse_decoder("ByteFallback or ByteLevel after a step that joins tokens is not supported");
    bytes_ = *bytes;
    fused_ = *bytes == Bytes::kByteLevel;  // ByteLevel joins all tokens
  } else if (!fused_) {
    // Metaspace may follow ByteFallback: a token <0xNN> has no replacement character, so the order makes no difference.
    if (bytes_ && !std::holds_alternative<Metaspace>(step))
      refuse_decoder("a step between ByteFallback and Fuse is not supported");
    per_token_.push_back(std::move(step));
  } else if (const auto* replace = std::get_if<Replace>(&step); replace != nullptr && !replace->literal.empty() &&
                                                                !strip_answer_ && !replace_answer_ &&
                                                                bytes_ != Bytes::kByteLevel) {
    replace_answer_ = *replace;
  } else if (const auto* strip = std::get_if<Strip>(&step);
             strip != nullptr && strip->stop == 0 && !strip_answer_ && !replace_answer_) {
    strip_answer_ = *strip;
  } else {
    refuse_decoder(
        "after Fuse or ByteLevel only one Strip of the beginning is supported, and after Fuse one Replace of a text");
  }
}

TokenDecoder::TokenDecoder(const DecoderSteps& steps, const std::vector<Token>& tokens)
    : separator_(steps.empty() ? 1 : 0, ' ') {
  if (steps.strip_answer_) {
    append_utf8(strip_content_, steps.strip_answer_->content);
    strip_count_ = steps.strip_answer_->start;
  }
  if (steps.replace_answer_) rewrite_ = {steps.replace_answer_->literal, steps.replace_answer_->content};
  bool first_differs = false;
  for (const DecoderSteps::Step& step : steps.per_token_) {
    first_differs = first_differs || std::holds_alternative<DecoderSteps::Metaspace>(step);
  }
  pieces_.reserve(tokens.size());
  for (const Token& token : tokens) {
    pieces_.push_back(decoded(steps, token, false));
    if (first_differs) first_pieces_.push_back(decoded(steps, token, true));
  }
}

TokenDecoder::Piece TokenDecoder::decoded(const DecoderSteps& steps, const Token& token, bool first) const {
  if (token.spelling.empty()) return {};
  Piece piece{Kind::kText, token.skip, token.spelling};
  for (const DecoderSteps::Step& step : steps.per_token_) {
    if (const auto* replace = std::get_if<DecoderSteps::Replace>(&step)) {
      piece.bytes = replace_all(piece.bytes, replace->pattern, replace->content);
    } else if (const auto* strip = std::get_if<DecoderSteps::Strip>(&step)) {
      piece.bytes = stripped(piece.bytes, *strip);
    } else if (const auto* metaspace = std::get_if<DecoderSteps::Metaspace>(&step)) {
      piece.bytes = without_metaspace(piece.bytes, *metaspace, first);
    }
  }
  if (steps.bytes_ == DecoderSteps::Bytes::kByteFallback) {
    if (const auto byte = fallback_byte(piece.bytes)) {
      piece.kind = Kind::kFallbackByte;
      piece.bytes.assign(1, *byte);
    }
  } else if (steps.bytes_ == DecoderSteps::Bytes::kByteLevel) {
    piece.kind = Kind::kLevelBytes;
    if (auto bytes = bytes_of_byte_level(piece.bytes)) piece.bytes = std::move(*bytes);
  }
  return piece;
}

const TokenDecoder::Piece& TokenDecoder::piece(TokenId id) const {
  static const Piece kNoPiece;
  return id >= 0 && static_cast<std::size_t>(id) < pieces_.size() ? pieces_[static_cast<std::size_t>(id)] : kNoPiece;
}

std::string_view TokenDecoder::first_bytes(TokenId id) const {
  return first_pieces_.empty() ? std::string_view(piece(id).bytes) : first_pieces_[static_cast<std::size_t>(id)].bytes;
}

std::string TokenDecoder::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  std::string answer, run;
  Kind run_kind = Kind::kText;
  const auto end_run = [&] {
    if (run_kind == Kind::kLevelBytes) {
      answer += with_replacement_characters(run);
    } else if (is_utf8(run)) {
      answer += run;
    } else {  // one invalid byte makes its whole run of fallback bytes invalid
      for (std::size_t i = 0; i < run.size(); ++i) answer += kReplacementCharacter;
    }
    run.clear();
  };
  bool at_first_token = true;
  for (const TokenId id : ids) {
    const Piece& own = piece(id);
    if (own.kind == Kind::kMissing || (own.skip && skip_special_tokens)) continue;
    if (own.kind == Kind::kText) {
      end_run();
      if (!at_first_token) answer += separator_;
      answer += at_first_token ? first_bytes(id) : own.bytes;
    } else {
      run_kind = own.kind;
      run += own.bytes;
    }
    at_first_token = false;
  }
  end_run();
  std::size_t begin = 0;
  for (std::size_t i = 0; i < strip_count_ && std::string_view(answer).substr(begin).starts_with(strip_content_); ++i) {
    begin += strip_content_.size();
  }
  answer.erase(0, begin);
  return rewrite_ ? replace_all(answer, Pattern::literal(rewrite_->from), rewrite_->to) : answer;
}

}  // namespace quire::text
