// What every endpoint that generates reads from a body: range-checked, not yet tokenised. Plain data.
// Shape   an endpoint's own request derives from it and adds what only it knows (prompt, messages).
// Owner   the endpoint's Form.
// Source  OpenAI's API reference; names and neutral values of vLLM's SamplingParams.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/flow/request.h"
#include "core/grammar/rules.h"
#include "core/grammar/write_budget.h"
#include "core/sample/params.h"
#include "core/sample/rules.h"

namespace quire::api::openai {

// What a grammar is written in, and its text: JSON for kJsonSchema and kChoice, nothing for kJsonObject.
struct GrammarText {
  enum class Kind : std::uint8_t { kJsonObject, kJsonSchema, kRegex, kChoice, kEbnf };
  Kind kind = Kind::kJsonObject;
  std::string text;
  std::string field;  // that it was given in, for errors
};

// A grammar that an answer has to hold to, before it is made.
struct GrammarOrder {
  std::string name;   // of equal name, of equal rules
  std::string field;  // for errors that name none
  // Into empty rules; more than once. May borrow from the request that it is of.
  std::function<Result<Done>(grammar::Rules& rules, grammar::WriteBudget& budget)> write;
  bool marked = false;  // over the vocabulary in which marks are tokens that may be said (Grammars)
};

// Marks around the hidden beginning of an answer (reasoning). Stop strings do not count in it, nor in the white space
// after it.
struct HiddenText {
  std::string begin;
  std::string end;
  bool is_open = false;  // the answer begins inside
};

struct GenerationRequest {
  std::string model;       // one of the served names
  std::string request_id;  // the body's; empty: none

  std::optional<std::uint32_t> max_tokens;  // 0 only where the prompt is scored or embedded
  sample::Params sampling;                  // the server's defaults where the body says nothing; no seed, no index
  std::optional<std::int64_t> seed;

  sample::Rules rules;                 // but for bad_words, which are texts still; min_tokens is there
  std::vector<std::string> bad_words;  // none of them empty
  std::optional<GrammarText> grammar_text;
  std::optional<GrammarOrder> grammar{};  // an endpoint that has a grammar of its own puts it here

  std::vector<std::string> stop;        // none of them empty
  std::vector<TokenId> stop_token_ids;  // end the answer as the model's own ends do, none of which is in here
  std::optional<HiddenText> hidden{};   // set by endpoints that separate reasoning from content
  bool include_stop = false;            // what ended the answer stays in its text
  bool ignore_eos = false;

  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;  // in every event, with include_usage

  std::uint32_t n = 1;           // answers to each prompt
  std::uint32_t best_of = 1;     // n .. max_choices: sequences that run for each prompt, or the width of its search
  bool use_beam_search = false;  // then `sampling` is greedy
  double length_penalty = 1.0;   // 1 without a search

  std::optional<std::uint32_t> logprobs;         // of each token of the answer, and so many likeliest; 0: its own alone
  std::optional<std::uint32_t> prompt_logprobs;  // of each token of the prompt
  bool echo = false;                             // the prompt is told, too: its ids are kept
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;  // log probabilities name tokens "token_id:17"

  bool skip_special_tokens = true;
  bool add_special_tokens = true;
  std::optional<std::int32_t> truncate_prompt_tokens;  // keep the last so many; -1: as many as fit

  std::string cache_salt;                    // empty: none
  std::optional<std::int32_t> priority;      // lower goes first
  std::optional<std::uint32_t> deadline_ms;  // after arrival
  flow::KvPolicy kv_policy;                  // fits max_model_len
  flow::Speculation speculation{};           // a drafter that there is
  std::optional<sample::Accept> accept;      // none: the server's

  std::vector<std::string> unknown_fields;  // accepted and passed over; shortened names, a bounded number
  std::uint32_t num_unknown_fields = 0;     // all of them
  std::vector<std::string> left_out;        // known, and of no effect here; likewise
  std::uint32_t num_left_out = 0;

  flow::Pooling pooling =
      flow::Pooling::kNone;  // what an endpoint that embeds wants of each prompt; max_tokens is 0 then

  // What differs from endpoint to endpoint, and is not in a body.
  std::uint32_t default_max_tokens = 16;  // or what room is left
  bool goes_on = false;                   // the answer's text goes on from the prompt's: text::Detokenizer
  const char* prompt_field = "prompt";    // that errors of the prompt name
  const char* max_tokens_field = "max_tokens";
  bool in_anthropics_words = false;               // errors that programs know by their words
  const char* grammar_field = "response_format";  // that errors of `grammar` name, where it has no text

  // Once settled: the prompt's tokens get log probabilities, because the answer tells of them, or is nothing else.
  bool scores_prompt() const { return prompt_logprobs || (echo && logprobs) || (max_tokens == 0u && !embeds()); }
  bool embeds() const { return pooling != flow::Pooling::kNone; }
  bool keeps_prompt() const { return prompt_logprobs || echo || return_token_ids; }
  bool has_rules() const {
    return rules.repetition_penalty != 1.0f || rules.frequency_penalty != 0.0f || rules.presence_penalty != 0.0f ||
           !rules.bias.empty() || !rules.allowed.empty() || !bad_words.empty() || rules.min_tokens > 0;
  }
  bool keeps_tokens() const { return logprobs || return_token_ids; }
};

}  // namespace quire::api::openai
