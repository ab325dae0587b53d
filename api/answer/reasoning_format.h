// The marks around reasoning, and those around the answer behind it, in the formats of models.
// Owner   constants.
// Thread  any.
// Source  the chat templates of the models; `parser` is vLLM's name of the same format, where it has one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace quire::api::chat {

enum class ReasoningFormat : std::uint8_t {
  kNone,
  kThinkTags,
  kMistral,
  kSeedOss,
  kCommand,
  kGranite,  // 3.2
  kGemma4,
  kApertus,
  kThought,  // EXAONE Deep
  kHyV3,     // Hunyuan 3
  kSolarOpen,
  kHarmony,  // gpt-oss: channels, which harmony_answer.h reads
};

struct Marks {
  std::string_view begin;
  std::string_view end;
};

struct ReasoningSyntax {
  ReasoningFormat format = ReasoningFormat::kNone;
  std::string_view parser{};  // value of --reasoning-parser
  Marks marks{};
  std::string_view sign{};                      // a template's text shows the format by it; empty: by the end mark
  std::string_view turn{};                      // follows the end mark before anything else
  std::string_view content_begin{};             // stands before content
  std::span<const std::string_view> special{};  // marks that may be special tokens of a tokenizer
};

std::span<const ReasoningSyntax> reasoning_syntaxes();
const ReasoningSyntax& syntax_of(ReasoningFormat format);
std::optional<Marks> marks_of(ReasoningFormat format);

// Formats by the marks in a template's text.
ReasoningFormat reasoning_format_of(std::string_view source);
// The marks that the template puts around an answer; none: it puts none.
std::optional<Marks> content_marks_of(std::string_view source);

}  // namespace quire::api::chat
