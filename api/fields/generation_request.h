// The body of a generating request, parsed and range-checked, not yet tokenised: the fields common to all endpoints.
// Plain data.
// Shape   an endpoint's own request type derives from it and adds its own fields (prompt, messages).
// Owner   the endpoint's Formatter.
// Source  OpenAI's API reference; names and neutral values of vLLM's SamplingParams.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/services/grammar_order.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/flow/request.h"
#include "core/sample/params.h"
#include "core/sample/rules.h"

namespace quire::api {

// Marks around the hidden beginning of an answer (reasoning). Stop strings are not matched in it, nor in the white
// space after it.
struct HiddenText {
  std::string begin;
  std::string end;
  bool is_open = false;  // the answer begins inside
};

struct GenerationRequest {
  std::string model;       // one of the served names
  std::string request_id;  // from the body; empty: none

  std::optional<std::uint32_t> max_tokens;  // 0 only if the prompt is scored or embedded
  sample::Params sampling;                  // starts as the server's defaults; seed and choice_index are not used
  std::optional<std::int64_t> seed;

  sample::Rules rules;                 // including min_tokens; without bad_words, which are not yet tokenised
  std::vector<std::string> bad_words;  // none of them empty
  std::optional<GrammarText> grammar_text;
  std::optional<GrammarOrder> grammar{};  // set by an endpoint that has a grammar of its own

  std::vector<std::string> stop;        // none of them empty
  std::vector<TokenId> stop_token_ids;  // end the answer like EOS; once settled without EOS itself, unless ignore_eos
  std::optional<HiddenText> hidden{};   // set by endpoints that separate reasoning from content
  bool include_stop = false;            // the stop string or token that ended the answer stays in its text
  bool ignore_eos = false;

  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;  // usage in every event; only with include_usage

  std::uint32_t n = 1;        // answers to each prompt
  std::uint32_t best_of = 1;  // n .. max_choices: sequences that run for each prompt, or the width of its beam search
  bool use_beam_search = false;  // then `sampling` is greedy
  double length_penalty = 1.0;   // 1 without a beam search

  // Log probabilities of the answer's tokens, each with this number of likeliest tokens; 0: the token's own only.
  std::optional<std::uint32_t> logprobs;
  std::optional<std::uint32_t> prompt_logprobs;  // the same of the prompt's tokens
  bool echo = false;                             // the answer contains the prompt: its ids are kept
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;  // log probabilities name tokens "token_id:17"

  bool skip_special_tokens = true;
  bool add_special_tokens = true;
  std::optional<std::int32_t> truncate_prompt_tokens;  // number of last tokens to keep; -1: as many as fit

  std::string cache_salt;                    // empty: none
  std::optional<std::int32_t> priority;      // lower goes first
  std::optional<std::uint32_t> deadline_ms;  // after arrival
  flow::KvPolicy kv_policy;                  // fits max_model_len
  flow::Speculation speculation{};           // its drafter is one of the server's
  std::optional<sample::Accept> accept;      // none: the server's rule

  std::vector<std::string> unknown_fields;  // ignored fields: shortened names, a bounded number of them
  std::uint32_t num_unknown_fields = 0;     // all of them
  std::vector<std::string> left_out;        // known fields without effect here, likewise
  std::uint32_t num_left_out = 0;

  flow::Pooling pooling = flow::Pooling::kNone;  // set by an endpoint that embeds; then max_tokens is 0

  // Set by the endpoint, not by the body.
  std::uint32_t default_max_tokens = 16;  // at most; fewer if the context has less room
  bool goes_on = false;                   // the answer continues the prompt's text (text::Detokenizer)
  const char* prompt_field = "prompt";    // named by errors of the prompt
  const char* max_tokens_field = "max_tokens";
  bool in_anthropics_words = false;               // errors that clients know by their text use Anthropic's
  const char* grammar_field = "response_format";  // named by errors of `grammar`, if there is no grammar_text

  // Once settled: true if the prompt's tokens get log probabilities, because the answer has them or max_tokens is 0.
  bool scores_prompt() const { return prompt_logprobs || (echo && logprobs) || (max_tokens == 0u && !embeds()); }
  bool embeds() const { return pooling != flow::Pooling::kNone; }
  bool keeps_prompt() const { return prompt_logprobs || echo || return_token_ids; }
  bool has_rules() const {
    return rules.repetition_penalty != 1.0f || rules.frequency_penalty != 0.0f || rules.presence_penalty != 0.0f ||
           !rules.bias.empty() || !rules.allowed.empty() || !bad_words.empty() || rules.min_tokens > 0;
  }
  bool keeps_tokens() const { return logprobs || return_token_ids; }
};

}  // namespace quire::api
