#include <limits>
#include <optional>
#include <type_traits>

#include "api/fields/field.h"
#include "api/fields/grammar_fields.h"
#include "api/fields/kv_policy_field.h"
#include "api/fields/list_fields.h"
#include "api/fields/neutral.h"
#include "api/fields/speculative_field.h"

namespace quire::api {
namespace {

using R = GenerationRequest;
using P = sample::Params;
using L = RequestLimits;

constexpr std::int64_t kInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kInt64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxDeadline_ms = 3'600'000;

template <typename T, typename V>
void store(T& member, V value) {
  member = static_cast<T>(value);
}
template <typename T, typename V>
void store(std::optional<T>& member, V value) {
  member = static_cast<T>(value);
}
template <auto kMember, typename V>
void put(R& request, V value) {
  store(request.*kMember, value);
}
template <auto kMember, typename V>
void put_sampling(R& request, V value) {
  store(request.sampling.*kMember, value);
}
template <auto kMember, typename V>
void put_rule(R& request, V value) {
  store(request.rules.*kMember, value);
}
void put_top_k(R& request, std::int64_t value) {
  request.sampling.top_k = value < 0 ? 0 : static_cast<std::int32_t>(value);  // -1 and 0 both keep all
}

// name, endpoints, kind with range and target, default, help, test
// clang-format off
constexpr Field kFields[] = {
    {"model", kReading | kCountTokens, Shaped{"string", "a served name", read_model}, "the first served name", "model that answers; a name that is not served gets 404", "wire/test_errors.py"},
    {"max_tokens", kChoices | kMessages, Integer{0, kInt32, put<&R::max_tokens>}, "completions: 16; chat: the model's `max_new_tokens`; both at most the room left in the context; messages: required", "maximum length of the answer in tokens; prompt and answer together must fit `--max-model-len`. 0 only scores the prompt, and needs `echo` or `prompt_logprobs`", "wire/test_scoring.py"},
    {"temperature", kGenerating, Number{0, 2, false, put_sampling<&P::temperature>}, "the model's, or 1", "sampling temperature; 0 takes the likeliest token", "api/fields/read_body_test.cc"},
    {"top_p", kGenerating, Number{0, 1, true, put_sampling<&P::top_p>}, "the model's, or 1", "keep the likeliest tokens whose probabilities add up to this", "api/fields/read_body_test.cc"},
    {"top_k", kGenerating, Integer{-1, kInt32, put_top_k}, "the model's, or 0", "keep this many likeliest tokens; -1 and 0 keep all", "api/fields/read_body_test.cc"},
    {"min_p", kGenerating, Number{0, 1, false, put_sampling<&P::min_p>}, "the model's, or 0", "keep tokens whose probability is at least this share of the likeliest token's", "api/fields/read_body_test.cc"},
    {"typical_p", kGenerating, Number{0, 1, true, put_sampling<&P::typical_p>}, "1", "keep the most typical tokens whose probabilities add up to this", "wire/test_rules.py"},
    {"seed", kGenerating, Integer{-kInt64 - 1, kInt64, put<&R::seed>}, "random, and returned in the answer", "the same request with the same seed gets the same answer", "wire/test_completions.py"},
    {"repetition_penalty", kGenerating, Number{0, 2, true, put_rule<&sample::Rules::repetition_penalty>}, "the model's, or 1", "above 1: makes tokens of the prompt and the answer less likely; below 1: more likely", "wire/test_rules.py"},
    {"presence_penalty", kGenerating, Number{-2, 2, false, put_rule<&sample::Rules::presence_penalty>}, "0", "subtracted from the logits of tokens that the answer contains", "wire/test_rules.py"},
    {"frequency_penalty", kGenerating, Number{-2, 2, false, put_rule<&sample::Rules::frequency_penalty>}, "0", "subtracted from the logits of tokens that the answer contains, once per occurrence", "wire/test_rules.py"},
    {"logit_bias", kGenerating, Shaped{"{number}", "token ids as keys, -100 to 100 as values, up to 1024 of them", read_logit_bias}, "none", "added to the logits of these tokens", "wire/test_rules.py"},
    {"allowed_token_ids", kGenerating, Shaped{"[integer]", "token ids, at least one", read_allowed_token_ids}, "all", "only these tokens can be sampled", "wire/test_rules.py"},
    {"bad_words", kGenerating, Shaped{"[string]", "up to 128 texts, 4096 bytes in total", read_bad_words}, "none", "never generated, neither at the beginning of a word nor inside one", "wire/test_rules.py"},
    {"min_tokens", kGenerating, Integer{0, kInt32, put_rule<&sample::Rules::min_tokens>}, "0", "minimum length of the answer in tokens; stop strings in these tokens are ignored", "wire/test_rules.py"},
    {"stop", kOpenAiForms, Shaped{"string|[string]", "a text, or up to 16 texts, 512 bytes in total", read_stop}, "none", "the answer ends before the first of these", "wire/test_stop_strings.py"},
    {"stop_token_ids", kGenerating, Shaped{"[integer]", "up to 128 token ids", read_stop_token_ids}, "none", "tokens that end the answer, besides the model's own end tokens", "wire/test_rules.py"},
    {"include_stop_str_in_output", kGenerating, Flag{&R::include_stop}, "false", "keep the stop string or token that ended the answer in its text", "wire/test_stop_strings.py"},
    {"ignore_eos", kGenerating, Flag{&R::ignore_eos}, "false", "the model's end tokens do not end the answer", "wire/test_completions.py"},
    {"n", kChoices, Integer{1, 0, put<&R::n>, &L::max_choices}, "1", "number of answers to each prompt", "wire/test_forks.py"},
    {"best_of", kChoices, Integer{1, 0, put<&R::best_of>, &L::max_choices}, "`n`", "number of candidates to generate; the `n` best are returned", "wire/test_forks.py"},
    {"use_beam_search", kChoices, Flag{&R::use_beam_search}, "false", "beam search with `best_of` hypotheses", "wire/test_forks.py"},
    {"length_penalty", kChoices, Number{-5, 5, false, put<&R::length_penalty>}, "1", "beam search: a hypothesis's sum of log probabilities is divided by its number of tokens to this power", "wire/test_forks.py"},
    {"stream", kGenerating, Flag{&R::stream}, "false", "stream the answer as server-sent events", "wire/test_completions.py"},
    {"stream_options", kOpenAiForms, Shaped{"StreamOptions", "`include_usage`, `continuous_usage_stats`: true or false", read_stream_options}, "none", "streams only: send the usage in an event before the end; send it in every event, too", "wire/test_logprobs.py"},
    {"prompt_logprobs", kChoices, Integer{0, 0, put<&R::prompt_logprobs>, &L::max_logprobs}, "none", "return log probability and rank of each prompt token, and this many likeliest tokens; such a prompt does not read the prefix cache", "wire/test_scoring.py"},
    {"return_token_ids", kChoices, Flag{&R::return_token_ids}, "false", "return `prompt_token_ids` and `token_ids` in each choice", "wire/test_logprobs.py"},
    {"return_tokens_as_token_ids", kChoices, Flag{&R::return_tokens_as_token_ids}, "false", "name tokens of log probabilities by id: `token_id:17`", "wire/test_logprobs.py"},
    {"skip_special_tokens", kGenerating, Flag{&R::skip_special_tokens}, "true", "leave special tokens out of the text", "api/generation/choice_test.cc"},
    {"spaces_between_special_tokens", kChoices, Neutral{"boolean", "true", is_true}, "true", "no other value is supported", "api/fields/read_body_test.cc"},
    {"add_special_tokens", kReading, Flag{&R::add_special_tokens}, "completions, embeddings: true; else false", "add the tokenizer's special tokens to the prompt, such as BOS", "api/completions/completion_formatter_test.cc"},
    {"truncate_prompt_tokens", kChoices | kEmbeddings, Integer{-1, kInt32, put<&R::truncate_prompt_tokens>}, "none", "keep only this many last tokens of the prompt; -1: as many as fit; 0 is refused", "api/completions/completion_formatter_test.cc"},
    {"response_format", kGenerating, Shaped{"ResponseFormat", "`{\"type\": \"text\"}`, `json_object`, `json_schema` with a schema", read_response_format}, "text", "form of the answer", "wire/test_structured.py"},
    {"structured_outputs", kGenerating, Shaped{"StructuredOutputs", "one of `json`, `json_object`, `regex`, `choice`, `grammar`", read_structured_outputs}, "none", "form of the answer", "wire/test_structured.py"},
    {"guided_json", kGenerating, Shaped{"object|boolean|string", "a JSON Schema", read_guided_json}, "none", "same as `structured_outputs.json`", "wire/test_structured.py"},
    {"guided_regex", kGenerating, Shaped{"string", "a regular expression", read_guided_regex}, "none", "same as `structured_outputs.regex`", "wire/test_structured.py"},
    {"guided_choice", kGenerating, Shaped{"[string]", "texts", read_guided_choice}, "none", "same as `structured_outputs.choice`", "wire/test_structured.py"},
    {"guided_grammar", kGenerating, Shaped{"string", "a grammar: EBNF, GBNF or Lark", read_guided_grammar}, "none", "same as `structured_outputs.grammar`", "wire/test_structured.py"},
    {"json_schema", kGenerating, Shaped{"object|boolean|string", "a JSON Schema", read_guided_json}, "none", "same as `structured_outputs.json`; SGLang's and llama.cpp's name", "wire/test_structured.py"},
    {"regex", kGenerating, Shaped{"string", "a regular expression", read_guided_regex}, "none", "same as `structured_outputs.regex`; SGLang's name", "wire/test_structured.py"},
    {"ebnf", kGenerating, Shaped{"string", "a grammar: EBNF, GBNF or Lark", read_guided_grammar}, "none", "same as `structured_outputs.grammar`; SGLang's name", "wire/test_structured.py"},
    {"grammar", kGenerating, Shaped{"string", "a grammar: EBNF, GBNF or Lark", read_guided_grammar}, "none", "same as `structured_outputs.grammar`; llama.cpp's name", "wire/test_structured.py"},
    {"cache_salt", kReading, Text{&L::max_salt_bytes, &R::cache_salt}, "shared with all requests", "share cached prefixes only with requests of the same salt", "wire/test_cache.py"},
    {"priority", kReading, Integer{-kInt32 - 1, kInt32, put<&R::priority>}, "0", "lower runs first, under the priority policy", "api/fields/read_body_test.cc"},
    {"deadline_ms", kReading, Integer{1, kMaxDeadline_ms, put<&R::deadline_ms>}, "none", "deadline in milliseconds after arrival: the request is refused at once if the answer would be late, and ended at the deadline. The deadline policy runs the earliest first", "wire/test_deadlines.py"},
    {"kv_policy", kGenerating, Shaped{"object", "see below", read_kv_policy}, "keep all", "choice of the K and V that a long answer keeps", "wire/test_cache.py"},
    {"speculative", kGenerating, Shaped{"boolean|object", "true, false, or an object with `method`, `num_speculative_tokens` (0 to 64) and `accept`", read_speculative}, "the server's setting", "speculative decoding by this method, with at most this many draft tokens; the answer is the same unless `accept` is ratio or block", "wire/test_speculative_fields.py"},
    {"request_id", kReading, Text{&L::max_request_id_bytes, &R::request_id}, "X-Request-Id, or random", "id of the answer", "wire/test_completions.py"},
    {"user", kOpenAiForms | kEmbeddings, Text{&L::max_user_bytes, nullptr}, "none", "checked, but of no effect", "api/fields/read_body_test.cc"},
    {"logits_processors", kChoices, Neutral{"[string]", "empty", is_empty}, "none", "not supported", "api/fields/read_body_test.cc"},
    {"logprob_token_ids", kChoices, Neutral{"[integer]", "empty", is_empty}, "none", "not supported", "api/fields/read_body_test.cc"},
    {"truncation_side", kChoices | kEmbeddings, Neutral{"string", "\"left\"", is_left}, "left", "no other value is supported", "api/fields/read_body_test.cc"},
    {"prompt_embeds", kChoices, Neutral{"string", "null", is_never}, "none", "not supported", "api/fields/read_body_test.cc"},
    {"guided_whitespace_pattern", kChoices, Neutral{"string", "null", is_never}, "none", "not supported", "api/fields/read_body_test.cc"},
    {"guided_decoding_backend", kGenerating, Hint{"string"}, "none", "of no effect: there is one backend", "api/fields/read_body_test.cc"},
    {"kv_transfer_params", kChoices, Neutral{"object", "null", is_never}, "none", "not supported", "api/fields/read_body_test.cc"},
    {"vllm_xargs", kChoices, Neutral{"object", "empty", is_empty}, "none", "not supported", "api/fields/read_body_test.cc"},
    {"repetition_detection", kChoices, Neutral{"object", "null", is_never}, "none", "not supported", "api/fields/read_body_test.cc"},
};
// clang-format on

}  // namespace

std::span<const Field> shared_fields() { return kFields; }

}  // namespace quire::api
