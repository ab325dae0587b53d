#include "api/completions/text_logprobs.h"

#include <algorithm>
#include <string>

#include "api/generation/prompt_logprobs.h"
#include "api/generation/token_text.h"
#include "core/base/json_string.h"
#include "core/text/detokenizer.h"

namespace quire::api {
namespace {

std::span<const flow::Candidate> first_of(std::span<const flow::Candidate> top, const GenerationRequest& request) {
  const auto beyond = std::find_if(top.begin(), top.end(), [](const flow::Candidate& one) { return one.token < 0; });
  const auto known = static_cast<std::size_t>(beyond - top.begin());
  return top.first(std::min<std::size_t>(known, *request.logprobs));
}

// Names are compared as JSON strings, because different bytes that are not UTF-8 may become the same string there, and
// a key is written once.
void append_top(JsonWriter& writer, const text::Tokenizer& tokenizer, const TokenScore& token, bool names_are_ids) {
  const auto reported = [&](TokenId id) {
    std::string name;
    append_json_string(name, token_name(tokenizer, id, names_are_ids));
    return name;
  };
  const std::string own = reported(token.id);
  std::vector<std::string> names{own};
  bool has_own = false;
  writer.begin_object();
  for (const flow::Candidate& one : token.top) {
    if (one.token == token.id) {
      has_own = true;
    } else if (std::string name = reported(one.token); std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    } else {
      continue;
    }
    writer.key(token_name(tokenizer, one.token, names_are_ids)).number(finite_logprob(one.logprob));
  }
  if (!has_own) writer.key(token_name(tokenizer, token.id, names_are_ids)).number(finite_logprob(*token.logprob));
  writer.end_object();
}

}  // namespace

std::vector<TokenScore> prompt_token_scores(const PromptRun& prompt, std::shared_ptr<const text::Tokenizer> tokenizer,
                                            const GenerationRequest& request, std::size_t echo_length) {
  text::Detokenizer detokenizer(std::move(tokenizer), request.skip_special_tokens);
  std::vector<TokenScore> scores;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < prompt.ids.size(); ++i) {
    TokenScore token{.id = prompt.ids[i],
                     .logprob = {},
                     .top = {},
                     .offset = std::min(offset + detokenizer.num_held(), echo_length)};
    if (i > 0) {
      token.logprob = prompt.scores->logprobs[i - 1];
      token.top = first_of(prompt.scores->top_of(i - 1), request);
    }
    scores.push_back(token);
    offset += num_code_points(detokenizer.push(prompt.ids[i]));
  }
  return scores;
}

std::vector<TokenScore> answer_token_scores(const AnswerTokens& tokens, const GenerationRequest& request,
                                            std::size_t echo_length) {
  std::vector<TokenScore> scores;
  for (std::size_t i = 0; i < tokens.tokens.size(); ++i) {
    const AnswerToken& token = tokens.tokens[i];
    scores.push_back({token.id, token.logprob, first_of(tokens.top_of(i), request), echo_length + token.offset});
  }
  return scores;
}

Writing write_text_logprobs(JsonWriter& writer, const std::string& out, const text::Tokenizer& tokenizer,
                            std::span<const TokenScore> tokens, bool names_are_ids) {
  writer.begin_object().key("tokens").begin_array();
  for (const TokenScore& token : tokens) {
    writer.text(token_name(tokenizer, token.id, names_are_ids));
    co_await part_end(out);
  }
  writer.end_array().key("token_logprobs").begin_array();
  for (const TokenScore& token : tokens) {
    if (token.logprob) {
      writer.number(finite_logprob(*token.logprob));
    } else {
      writer.null();
    }
    co_await part_end(out);
  }
  writer.end_array().key("top_logprobs").begin_array();
  for (const TokenScore& token : tokens) {
    if (token.logprob) {
      append_top(writer, tokenizer, token, names_are_ids);
    } else {
      writer.null();
    }
    co_await part_end(out);
  }
  writer.end_array().key("text_offset").begin_array();
  for (const TokenScore& token : tokens) {
    writer.number(std::uint64_t{token.offset});
    co_await part_end(out);
  }
  writer.end_array().end_object();
}

}  // namespace quire::api
