// Answers of /v1/completions and /v1/embeddings, and the parts that they share with other answers.
#include "api/openapi/shapes/shapes.h"

namespace quire::api {
namespace {

// clang-format off
constexpr Member kCompletionUsage[] = {
    {"prompt_tokens", "integer", "tokens of the prompts", "9"},
    {"completion_tokens", "integer", "tokens generated", "16"},
    {"total_tokens", "integer", "the sum of both", "25"},
    {"prompt_tokens_details?", "CachedTokens", "absent where it is not known yet", kComposed},
};
constexpr Member kCompletionCachedTokens[] = {{"cached_tokens", "integer", "tokens of the prompts that were in the prefix cache", "0"}};
constexpr Member kCompletionTimings[] = {
    {"queued_ms", "number", "time in the waiting line, in milliseconds", "0.2"},
    {"cache_n", "integer", "tokens of the prompts that were in the prefix cache", "0"},
    {"prompt_n", "integer", "tokens of the prompts that were computed", "9"},
    {"prompt_ms", "number", "time to the last first token, in milliseconds", "11.8"},
    {"prompt_per_second", "number", "computed prompt tokens per second", "762.71"},
    {"predicted_n", "integer", "tokens generated", "16"},
    {"predicted_ms", "number", "time from the first to the last token, in milliseconds", "48.1"},
    {"predicted_per_second", "number", "generated tokens per second after the first", "311.85"},
    {"draft_n?", "integer", "draft tokens; absent if there were none"},
    {"draft_n_accepted?", "integer", "draft tokens that were accepted"},
};
constexpr Member kCompletionPromptTokenLogprob[] = {
    {"logprob", "number", "log probability of the token", "-2.5"},
    {"rank", "integer", "1 for the likeliest token", "3"},
    {"decoded_token", "string", "text of the token", R"(" time")"},
};

// ---- completions

constexpr Member kCompletion[] = {
    {"object", "'text_completion'", "kind of the answer"},
    {"timings", "Timings", "times of the request"},
    {"choices", "[CompletionChoice]", "`n` answers to each prompt, in order"},
    {"usage", "Usage", "tokens of the request"},
};
constexpr Member kCompletionChunk[] = {
    {"object", "'text_completion'", "kind of the answer"},
    {"timings?", "Timings", "in the last event"},
    {"choices", "[CompletionChunkChoice]", "one choice; none in the event with the usage"},
    {"usage?", "Usage|null", "if `stream_options.include_usage` asks for it: null in all events but the last"},
};
constexpr Member kCompletionChoiceText[] = {
    {"index", "integer", "index of the choice", "0"},
    {"text", "string", "the text, or the part of it since the previous event", R"(" there was a little girl")"},
    {"logprobs", "TextLogprobs|null", "if `logprobs` asks for it", "null"},
    {"prompt_logprobs?", "[{PromptTokenLogprob}|null]", "if asked for: for each token of the prompt but the first, its entry and those of the likeliest tokens, by id"},
    {"prompt_token_ids?", "[integer]", "if `return_token_ids` asks for it, once for each choice"},
    {"token_ids?", "[integer]", "if `return_token_ids` asks for it"},
};
constexpr Member kCompletionChoice[] = {
    {"finish_reason", "'stop'|'length'|'abort'", "stop: an end token, a stop string, or the end of the form; abort: cancelled by id", R"("length")"},
    {"stop_reason", "string|integer|null", "the stop string, or the token of `stop_token_ids`, that ended the answer", "null"},
};
constexpr Member kCompletionChunkChoice[] = {
    {"finish_reason", "'stop'|'length'|'abort'|null", "null until the choice ends", "null"},
    {"stop_reason?", "string|integer|null", "in the choice's last event: the stop string or token that ended it"},
};
constexpr Member kCompletionTextLogprobs[] = {
    {"tokens", "[string]", "the tokens"},
    {"token_logprobs", "[number|null]", "their log probabilities; null for the first token of a prompt"},
    {"top_logprobs", "[{number}|null]", "the likeliest tokens in the place of each, and itself"},
    {"text_offset", "[integer]", "where each token begins, in characters"},
};

// ---- embeddings

constexpr Member kCompletionEmbeddings[] = {
    {"object", "'list'", "kind of the answer"},
    {"timings", "Timings", "times of the request"},
    {"data", "[Embedding]", "one vector of each input, in order"},
    {"usage", "Usage", "tokens of the request"},
};
constexpr Member kCompletionEmbedding[] = {
    {"object", "'embedding'", "kind of the object"},
    {"index", "integer", "index of the input", "0"},
    {"embedding", "[number]|string", "the vector; in base64 if `encoding_format` asks for it", "[0.018,-0.041,0.007]"},
};

constexpr Shape kCompletionShapes[] = {
    {"Usage", "Tokens of a request.", {}, kCompletionUsage},
    {"CachedTokens", "A part of the prompt's tokens.", {}, kCompletionCachedTokens},
    {"Timings", "Times of a request, in llama.cpp's names.", {}, kCompletionTimings},
    {"PromptTokenLogprob", "A token in the place of a prompt's token.", {}, kCompletionPromptTokenLogprob},
    {"Completion", "The whole answer of /v1/completions.", kHeadMembers, kCompletion},
    {"CompletionChoice", "One answer.", kCompletionChoiceText, kCompletionChoice},
    {"CompletionChunk", "An event of a stream of /v1/completions.", kHeadMembers, kCompletionChunk},
    {"CompletionChunkChoice", "The next part of one answer.", kCompletionChoiceText, kCompletionChunkChoice},
    {"TextLogprobs", "Log probabilities of tokens, in lists of equal length.", {}, kCompletionTextLogprobs},
    {"EmbeddingList", "Vectors of inputs.", kHeadMembers, kCompletionEmbeddings},
    {"Embedding", "The vector of one input.", {}, kCompletionEmbedding},
};
// clang-format on

}  // namespace

std::span<const Shape> completion_shapes() { return kCompletionShapes; }

}  // namespace quire::api
