// Answers of /v1/chat/completions.
#include "api/openapi/shapes/shapes.h"

namespace quire::api {
namespace {

// clang-format off
constexpr Member kChat[] = {
    {"object", "'chat.completion'", "kind of the answer"},
    {"timings", "Timings", "times of the request"},
    {"choices", "[ChatChoice]", "`n` answers"},
    {"usage", "Usage", "tokens of the request"},
};
constexpr Member kChatChunk[] = {
    {"object", "'chat.completion.chunk'", "kind of the event"},
    {"timings?", "Timings", "in the last event"},
    {"choices", "[ChatChunkChoice]", "one choice; none in the event with the usage"},
    {"usage?", "Usage|null", "if `stream_options.include_usage` asks for it: null in all events but the last"},
};
constexpr Member kChatChoice[] = {
    {"index", "integer", "index of the choice", "0"},
    {"message", "AssistantMessage", "the answer"},
    {"logprobs", "ChatLogprobs|null", "if `logprobs` asks for it", "null"},
    {"finish_reason", "'stop'|'length'|'tool_calls'|'abort'", "abort: cancelled by id", R"("stop")"},
    {"stop_reason", "string|integer|null", "the stop string, or the token of `stop_token_ids`, that ended the answer", "null"},
    {"prompt_token_ids?", "[integer]", "if `return_token_ids` asks for it"},
    {"token_ids?", "[integer]", "if `return_token_ids` asks for it"},
};
constexpr Member kChatChunkChoice[] = {
    {"index", "integer", "index of the choice", "0"},
    {"delta", "ChatDelta", "the next part of the message"},
    {"logprobs", "ChatLogprobs|null", "if `logprobs` asks for it", "null"},
    {"finish_reason", "'stop'|'length'|'tool_calls'|'abort'|null", "null until the choice ends", "null"},
    {"stop_reason?", "string|integer|null", "in the choice's last event: the stop string or token that ended it"},
    {"prompt_token_ids?", "[integer]", "if `return_token_ids` asks for it, once for each choice"},
    {"token_ids?", "[integer]", "if `return_token_ids` asks for it"},
};
constexpr Member kChatMessage[] = {
    {"role", "'assistant'", "role of the message"},
    {"content", "string|null", "the text; null if there are only reasoning or calls", R"("Hello! How are you?")"},
    {"refusal", "null", "always null"},
    {"reasoning?", "string", "the reasoning before the text"},
    {"reasoning_content?", "string", "the same, by an earlier name"},
    {"tool_calls?", "[ToolCall]", "the calls of the answer"},
};
constexpr Member kChatDelta[] = {
    {"role?", "'assistant'", "in the choice's first event", R"("assistant")"},
    {"content?", "string", "text to append", R"("")"},
    {"refusal?", "null", "in the choice's first event", "null"},
    {"reasoning?", "string", "reasoning to append"},
    {"reasoning_content?", "string", "the same, by an earlier name"},
    {"tool_calls?", "[ToolCallDelta]", "one call: its beginning, or arguments to append"},
};
constexpr Member kChatToolCall[] = {
    {"id", "string", "id of the call, to be sent back with its result", R"("call_0c5e")"},
    {"type", "'function'", "kind of the call"},
    {"function", "CalledFunction", "the function and its arguments"},
};
constexpr Member kChatCalledFunction[] = {
    {"name", "string", "name of the function", R"("look")"},
    {"arguments", "string", "arguments as JSON text", R"("{\"at\":\"sky\"}")"},
};
constexpr Member kChatToolCallDelta[] = {
    {"index", "integer", "index of the call in the message", "0"},
    {"id?", "string", "as the call begins"},
    {"type?", "'function'", "as the call begins"},
    {"function", "CalledFunctionDelta", "the next part of the function's call"},
};
constexpr Member kChatCalledFunctionDelta[] = {
    {"name?", "string", "as the call begins"},
    {"arguments", "string", "JSON text to append", R"("{\"at\":")"},
};
constexpr Member kChatLogprobs[] = {
    {"content", "[TokenLogprob]", "the tokens, those of reasoning and calls included"},
    {"refusal", "null", "always null"},
};
constexpr Member kChatToken[] = {
    {"token", "string", "text of the token", R"(" time")"},
    {"logprob", "number", "its log probability", "-0.25"},
    {"bytes", "[integer]", "its bytes", "[32,116,105,109,101]"},
};
constexpr Member kChatTop[] = {{"top_logprobs", "[TopLogprob]", "the likeliest tokens in its place"}};

constexpr Shape kChatShapes[] = {
    {"ChatCompletion", "The whole answer of /v1/chat/completions.", kHeadMembers, kChat},
    {"ChatChoice", "One answer.", {}, kChatChoice},
    {"ChatCompletionChunk", "An event of a stream of /v1/chat/completions.", kHeadMembers, kChatChunk},
    {"ChatChunkChoice", "The next part of one answer.", {}, kChatChunkChoice},
    {"AssistantMessage", "The message of an answer.", {}, kChatMessage},
    {"ChatDelta", "The next part of a message.", {}, kChatDelta},
    {"ToolCall", "A call of a function.", {}, kChatToolCall},
    {"CalledFunction", "A function and its arguments.", {}, kChatCalledFunction},
    {"ToolCallDelta", "The next part of a call.", {}, kChatToolCallDelta},
    {"CalledFunctionDelta", "The next part of a function's call.", {}, kChatCalledFunctionDelta},
    {"ChatLogprobs", "Log probabilities of an answer's tokens.", {}, kChatLogprobs},
    {"TokenLogprob", "A token of the answer.", kChatToken, kChatTop},
    {"TopLogprob", "A token that could have been in its place.", {}, kChatToken},
};
// clang-format on

}  // namespace

std::span<const Shape> chat_shapes() { return kChatShapes; }

}  // namespace quire::api
