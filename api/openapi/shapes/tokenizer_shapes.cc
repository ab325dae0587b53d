// Answers of /tokenize, /detokenize and the paths that render prompts.
#include "api/openapi/shapes/shapes.h"

namespace quire::api {
namespace {

// clang-format off
constexpr Member kTokenizerTokens[] = {
    {"count", "integer", "number of tokens", "3"},
    {"max_model_len", "integer", "maximum length of prompt and answer together, in tokens", "512"},
    {"tokens", "[integer]", "the token ids", "[403,407,261]"},
    {"token_strs", "[string]|null", "their spellings in the vocabulary, if `return_token_strs` asks for them", "null"},
};
constexpr Member kTokenizerText[] = {{"prompt", "string", "text of the tokens", R"("Once upon a")"}};
constexpr Member kTokenizerRendered[] = {
    {"request_id", "string", "id that the answer would have", R"("cmpl-4b1c8f0e27d94a6b")"},
    {"token_ids", "[integer]", "token ids of the prompt", "[403,407,261]"},
    {"features", "null", "always null: only text is read"},
    {"sampling_params", "SamplingParams", "parameters after defaults and limits"},
    {"model", "string", "the served name", R"("stories")"},
    {"stream", "boolean", "the request's", "false"},
    {"cache_salt", "string|null", "the request's", "null"},
    {"priority", "integer", "the request's, or that of its objective", "0"},
    {"count", "integer", "length of the prompt in tokens", "3"},
    {"max_model_len", "integer", "maximum length of prompt and answer together, in tokens", "512"},
};
constexpr Member kTokenizerPrompt[] = {{"prompt", "string", "text of the prompt", R"("Once upon a")"}};
constexpr Member kTokenizerSampling[] = {
    {"n", "integer", "number of answers", "1"},
    {"temperature", "number", "sampling temperature", "0"},
    {"top_p", "number", "see the request's field", "1"},
    {"top_k", "integer", "see the request's field; 0 keeps all", "0"},
    {"min_p", "number", "see the request's field", "0"},
    {"seed", "integer|null", "the request's; null: a random one", "null"},
    {"max_tokens", "integer", "maximum length of the answer in tokens", "16"},
    {"min_tokens", "integer", "minimum length of the answer in tokens", "0"},
    {"repetition_penalty", "number", "see the request's field", "1"},
    {"frequency_penalty", "number", "see the request's field", "0"},
    {"presence_penalty", "number", "see the request's field", "0"},
    {"stop", "[string]", "the stop strings", "[]"},
    {"stop_token_ids", "[integer]", "the request's", "[]"},
    {"ignore_eos", "boolean", "the request's", "false"},
    {"logprobs", "integer|null", "likeliest tokens returned beside each token", "null"},
    {"prompt_logprobs", "integer|null", "likeliest tokens returned beside each token of the prompt", "null"},
    {"skip_special_tokens", "boolean", "the request's", "true"},
};

constexpr Shape kTokenizerShapes[] = {
    {"TokenList", "Tokens of a text or a conversation.", {}, kTokenizerTokens},
    {"TokenText", "Text of tokens.", {}, kTokenizerText},
    {"RenderedPrompt", "A prompt as it would be run.", {}, kTokenizerRendered},
    {"RenderedConversation", "The prompt of a conversation as it would be run.", kTokenizerRendered, kTokenizerPrompt},
    {"SamplingParams", "Parameters of a request after defaults and limits.", {}, kTokenizerSampling},
};
// clang-format on

}  // namespace

std::span<const Shape> tokenizer_shapes() { return kTokenizerShapes; }

}  // namespace quire::api
