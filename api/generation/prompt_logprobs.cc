#include "api/generation/prompt_logprobs.h"

#include <algorithm>
#include <span>
#include <string>

#include "api/generation/token_text.h"

namespace quire::api {
namespace {

constexpr float kLowest = -9999.0f;  // vLLM's

struct Entry {
  flow::Candidate token;
  std::uint32_t rank;
};

void append_entry(JsonWriter& writer, const text::Tokenizer& tokenizer, const Entry& entry) {
  writer.key(std::to_string(entry.token.token)).begin_object();
  writer.key("logprob").number(finite_logprob(entry.token.logprob)).key("rank").number(std::uint64_t{entry.rank});
  writer.key("decoded_token").text(token_bytes(tokenizer, entry.token.token)).end_object();
}

// Writes the entry of the prompt's token i + 1.
void append_token(JsonWriter& writer, const text::Tokenizer& tokenizer, const PromptRun& prompt, std::size_t i,
                  std::size_t num_top) {
  const Entry own{{prompt.ids[i + 1], prompt.scores->logprobs[i]}, prompt.scores->ranks[i]};
  const std::span<const flow::Candidate> top = prompt.scores->top_of(i);
  writer.begin_object();
  append_entry(writer, tokenizer, own);
  std::uint32_t rank = 1;
  for (std::size_t k = 0; k < std::min(top.size(), num_top) && top[k].token >= 0; ++k) {
    if (k > 0 && top[k].logprob != top[k - 1].logprob) rank = static_cast<std::uint32_t>(k + 1);
    if (top[k].token != own.token.token) append_entry(writer, tokenizer, {top[k], rank});
  }
  writer.end_object();
}

}  // namespace

float finite_logprob(float logprob) { return std::max(logprob, kLowest); }

Writing write_prompt_logprobs(JsonWriter& writer, const std::string& out, const text::Tokenizer& tokenizer,
                              const PromptRun& prompt, const GenerationRequest& request) {
  writer.begin_array().null();
  for (std::size_t i = 0; i + 1 < prompt.ids.size(); ++i) {
    append_token(writer, tokenizer, prompt, i, *request.prompt_logprobs);
    co_await part_end(out);
  }
  writer.end_array();
}

}  // namespace quire::api
