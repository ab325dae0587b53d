#include "api/completions/fill_in.h"

#include <array>
#include <initializer_list>
#include <optional>

#include "api/sequences/encode.h"

namespace quire::api {
namespace {

struct Marks {
  const char* prefix;
  const char* suffix;
  const char* middle;  // null: no such token; the suffix comes first, and the answer follows the prefix
};

constexpr Marks kMarks[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},
    {"<PRE>", "<SUF>", "<MID>"},
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
    {"[PREFIX]", "[SUFFIX]", nullptr},
};

struct Frame {
  TokenId prefix;
  TokenId suffix;
  std::optional<TokenId> middle;
};

std::optional<Frame> frame_of(const text::Tokenizer& tokenizer) {
  for (const Marks& marks : kMarks) {
    const std::optional<TokenId> prefix = tokenizer.id_of(marks.prefix);
    const std::optional<TokenId> suffix = tokenizer.id_of(marks.suffix);
    const std::optional<TokenId> middle = marks.middle != nullptr ? tokenizer.id_of(marks.middle) : std::nullopt;
    if (prefix && suffix && (middle || marks.middle == nullptr)) return Frame{*prefix, *suffix, middle};
  }
  return std::nullopt;
}

// True if the tokenizer puts its BOS token in front of a text.
bool begins_texts(const text::Tokenizer& tokenizer) {
  const std::vector<TokenId> nothing = tokenizer.encode("", true);
  return tokenizer.bos() && !nothing.empty() && nothing.front() == *tokenizer.bos();
}

}  // namespace

Result<std::vector<TokenId>> fill_in(const Prompt& prompt, const CompletionRequest& request, const Services& services,
                                     Allowance& allowance) {
  const text::Tokenizer& tokenizer = *services.tokenizer;
  const std::optional<Frame> frame = frame_of(tokenizer);
  if (!frame)
    return invalid("suffix", "suffix needs fill-in-the-middle tokens, which this model's tokenizer does not have");
  const std::vector<TokenId>* given = std::get_if<std::vector<TokenId>>(&prompt);
  const auto encode = [&](const std::string& text) {
    return encode_prompt(text, request, services, allowance, /*add_special_tokens=*/false);
  };
  const Result<std::vector<TokenId>> before = given != nullptr ? *given : encode(std::get<std::string>(prompt));
  if (!before) return before.error();
  const Result<std::vector<TokenId>> after = encode(*request.suffix);
  if (!after) return after.error();

  std::vector<TokenId> ids;
  const auto append = [&ids](TokenId mark, const std::vector<TokenId>& text) {
    ids.push_back(mark);
    ids.insert(ids.end(), text.begin(), text.end());
  };
  if (request.add_special_tokens && begins_texts(tokenizer)) ids.push_back(*tokenizer.bos());
  if (frame->middle) {
    append(frame->prefix, *before);
    append(frame->suffix, *after);
    ids.push_back(*frame->middle);
  } else {
    append(frame->suffix, *after);
    append(frame->prefix, *before);
  }
  return ids;
}

}  // namespace quire::api
