#include "app/instance/pinned_prefixes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "app/config/config.h"
#include "core/base/result.h"
#include "core/kv/layout.h"

namespace quire::app {
namespace {

Result<std::string> text_of(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return invalid("", "no such file");
  if (!std::filesystem::is_regular_file(file, error)) return invalid("", "not a regular file");
  std::ifstream stream(file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (!stream) return invalid("", "cannot be read");
  if (text.empty()) return invalid("", "is empty");
  return text;
}

Result<PinnedPrefix> read(const std::string& file, const text::Tokenizer& tokenizer, std::uint32_t logits_width,
                          std::uint32_t max_model_len) {
  const Result<std::string> text = text_of(file);
  if (!text) return text.error();
  PinnedPrefix prefix{file, tokenizer.encode(*text, /*add_special_tokens=*/true)};
  if (prefix.tokens.empty()) return invalid("", "has no tokens");
  if (!all_below(prefix.tokens, logits_width)) return invalid("", "has a token id outside the model's vocabulary");
  if (prefix.tokens.size() >= max_model_len) {
    return invalid("", fmt::format("has {} tokens; a prefix may have at most {} tokens, to leave room for an answer",
                                   prefix.tokens.size(), max_model_len - 1));
  }
  return prefix;
}

}  // namespace

std::vector<PinnedPrefix> read_pinned_prefixes(std::span<const std::string> files, const text::Tokenizer& tokenizer,
                                               std::uint32_t logits_width, std::uint32_t max_model_len) {
  std::vector<PinnedPrefix> prefixes;
  Problems problems;
  for (const std::string& file : files) {
    Result<PinnedPrefix> prefix = read(file, tokenizer, logits_width, max_model_len);
    if (prefix) {
      prefixes.push_back(std::move(*prefix));
    } else {
      problems.push_back(fmt::format("--pin-prefix {}: {}", file, prefix.error().message));
    }
  }
  throw_if_any(problems);
  return prefixes;
}

MemoryRequest with_pinned(MemoryRequest request, std::span<const PinnedPrefix> prefixes) {
  for (const PinnedPrefix& prefix : prefixes) {
    const auto num_tokens = static_cast<std::uint32_t>(prefix.tokens.size());
    request.pinned_blocks += request.most_blocks(num_tokens);
    request.longest_pinned = std::max(request.longest_pinned, num_tokens);
  }
  return request;
}

}  // namespace quire::app
