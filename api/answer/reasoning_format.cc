#include "api/answer/reasoning_format.h"

#include <algorithm>
#include <iterator>

namespace quire::api::chat {
namespace {

using Format = ReasoningFormat;
using Text = std::string_view;

constexpr Text kThink[] = {"<think>", "</think>"};
constexpr Text kMistral[] = {"[THINK]", "[/THINK]"};
constexpr Text kSeed[] = {"<seed:think>", "</seed:think>"};
constexpr Text kCommand[] = {"<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"};
constexpr Text kGemma[] = {"<|channel>", "<channel|>"};
constexpr Text kApertus[] = {"<|inner_prefix|>", "<|inner_suffix|>"};
constexpr Text kHy[] = {"<think:opensource>", "</think:opensource>"};
constexpr Text kSolar[] = {"<|think|>", "<|content|>", "<|begin|>", "<|end|>"};
constexpr Text kHarmony[] = {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>"};

constexpr ReasoningSyntax kSyntaxes[] = {
    {.format = Format::kNone, .parser = "none"},
    {.format = Format::kThinkTags, .parser = "think", .marks = {"<think>", "</think>"}, .special = kThink},
    {.format = Format::kMistral, .parser = "mistral", .marks = {"[THINK]", "[/THINK]"}, .special = kMistral},
    {.format = Format::kSeedOss, .parser = "seed_oss", .marks = {"<seed:think>", "</seed:think>"}, .special = kSeed},
    {.format = Format::kCommand,
     .parser = "cohere_command",
     .marks = {"<|START_THINKING|>", "<|END_THINKING|>"},
     .special = kCommand},
    {.format = Format::kGranite, .parser = "granite", .marks = {"Here is my thought process:", "Here is my response:"}},
    {.format = Format::kGemma4, .parser = "gemma4", .marks = {"<|channel>thought", "<channel|>"}, .special = kGemma},
    {.format = Format::kApertus,
     .parser = "apertus",
     .marks = {"<|inner_prefix|>", "<|inner_suffix|>"},
     .special = kApertus},
    {.format = Format::kThought, .parser = "exaone_deep", .marks = {"<thought>", "</thought>"}},
    {.format = Format::kHyV3,
     .parser = "hy_v3",
     .marks = {"<think:opensource>", "</think:opensource>"},
     .sign = ":opensource",  // templates put the marks together
     .special = kHy},
    {.format = Format::kSolarOpen,
     .parser = "solar_open",
     .marks = {"<|think|>", "<|end|>"},
     .sign = "<|begin|>assistant<|think|>",
     .turn = "<|begin|>assistant",
     .content_begin = "<|content|>",
     .special = kSolar},
    {.format = Format::kHarmony,
     .parser = "openai_gptoss",
     .marks = {"<|channel|>analysis<|message|>", "<|end|>"},
     .turn = "<|start|>assistant",
     .content_begin = "<|channel|>final<|message|>",
     .special = kHarmony},
};

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < std::size(kSyntaxes); ++i) {
    if (kSyntaxes[i].format != static_cast<Format>(i)) return false;
  }
  return std::size(kSyntaxes) == static_cast<std::size_t>(Format::kHarmony) + 1;
}
static_assert(rows_are_in_order());

bool holds(Text text, Text part) { return text.find(part) != text.npos; }

}  // namespace

std::span<const ReasoningSyntax> reasoning_syntaxes() { return kSyntaxes; }

const ReasoningSyntax& syntax_of(ReasoningFormat format) { return kSyntaxes[static_cast<std::size_t>(format)]; }

std::optional<Marks> marks_of(ReasoningFormat format) {
  if (format == Format::kNone) return std::nullopt;
  return syntax_of(format).marks;
}

ReasoningFormat reasoning_format_of(std::string_view source) {
  if (holds(source, "<|channel|>") && holds(source, "analysis")) return Format::kHarmony;
  const ReasoningSyntax* found = std::ranges::find_if(kSyntaxes, [&](const ReasoningSyntax& one) {
    return one.format != Format::kNone && one.format != Format::kHarmony &&
           holds(source, one.sign.empty() ? one.marks.end : one.sign);
  });
  return found == std::end(kSyntaxes) ? Format::kNone : found->format;
}

std::optional<Marks> content_marks_of(std::string_view source) {
  struct Shown {
    Marks marks;
    Text sign{};  // shows the marks alone
  };
  constexpr Shown kAll[] = {{{"<|START_RESPONSE|>", "<|END_RESPONSE|>"}},
                            {{"<|content|>", "<|end|>"}},
                            {{"<response>", "</response>"}},
                            {{"<answer>", "</answer>"}, "<|extra_0|>"}};  // Hunyuan-A13B's template does not have them
  const Shown* found = std::ranges::find_if(kAll, [&](const Shown& one) {
    if (!one.sign.empty() && holds(source, one.sign)) return true;
    // MiniMax M2 has results of tools between <response> tags.
    return holds(source, one.marks.begin) && holds(source, one.marks.end) && !holds(source, "minimax:");
  });
  return found == std::end(kAll) ? std::nullopt : std::optional(found->marks);
}

}  // namespace quire::api::chat
