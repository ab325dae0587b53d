// Answers of /v1/responses.
#include "api/openapi/shapes/shapes.h"

namespace quire::api {
namespace {

// clang-format off
constexpr Member kResponse[] = {
    {"id", "string", "id of the response", R"("resp_4b1c8f0e27d94a6b")"},
    {"object", "'response'", "kind of the answer"},
    {"created_at", "integer", "when the request arrived, in Unix seconds", "1767225600"},
    {"status", "'completed'|'incomplete'|'cancelled'|'failed'|'in_progress'", "incomplete: the length limit was reached; cancelled: by id"},
    {"model", "string", "the served name that the request gave, or the first one", R"("stories")"},
    {"system_fingerprint", "string", "the numeric mode: equal requests with equal seeds get equal answers from it", R"("fp_5f1d0c3a")"},
    {"seed", "integer", "the request's seed, or the random one that was used", "7"},
    {"error", "ResponseError|null", "why the response failed", "null"},
    {"incomplete_details", "IncompleteDetails|null", "why the response is incomplete", "null"},
    {"output", "[OutputMessage|OutputReasoning|OutputCall]", "items in the order of generation"},
    {"instructions", "string|null", "the request's", "null"},
    {"max_output_tokens", "integer|null", "the request's", "32"},
    {"temperature", "number", "the request's, or the default", "0"},
    {"top_p", "number", "the request's, or the default", "1"},
    {"tools", "[object]", "the request's", "[]"},
    {"tool_choice", "string|object", "the request's, or the default", R"("auto")"},
    {"parallel_tool_calls", "boolean", "the request's, or the default", "true"},
    {"text", "ResponseText", "form of the text"},
    {"reasoning", "ResponseReasoning", "the request's"},
    {"truncation", "'auto'|'disabled'", "the request's, or the default", R"("disabled")"},
    {"metadata", "{string}", "the request's", "{}"},
    {"user", "string|null", "the request's", "null"},
    {"safety_identifier", "string|null", "the request's", "null"},
    {"prompt_cache_key", "string|null", "the request's", "null"},
    {"store", "boolean", "false: nothing is stored", "false"},
    {"background", "boolean", "always false", "false"},
    {"service_tier", "'default'", "there is one tier"},
    {"previous_response_id", "null", "always null"},
    {"top_logprobs", "integer", "the request's, or 0", "0"},
    {"usage", "ResponseUsage|null", "null while the response is in progress, and if it failed"},
    {"timings?", "Timings", "times of the request, beside the usage", kComposed},
};
constexpr Member kResponseError[] = {
    {"code", "'server_error'|'rate_limit_exceeded'|'invalid_prompt'", "kind of the error"},
    {"message", "string", "the error in words", R"("the engine has failed")"},
    {"param", "string|null", "the field that is wrong", "null"},
};
constexpr Member kResponseIncomplete[] = {{"reason", "'max_output_tokens'", "the limit that was reached"}};
constexpr Member kResponseText[] = {{"format", "object", "the request's `text.format`, or the default", R"({"type":"text"})"}};
constexpr Member kResponseReasoningOptions[] = {
    {"effort", "string|null", "the request's `reasoning.effort`", "null"},
    {"summary", "string|null", "the request's `reasoning.summary`", "null"},
};
constexpr Member kResponseUsage[] = {
    {"input_tokens", "integer", "tokens of the prompt", "9"},
    {"input_tokens_details", "InputTokensDetails", "of these"},
    {"output_tokens", "integer", "tokens generated", "16"},
    {"output_tokens_details", "OutputTokensDetails", "of these"},
    {"total_tokens", "integer", "the sum of both", "25"},
};
constexpr Member kResponseInputDetails[] = {
    {"cached_tokens", "integer", "tokens that were in the prefix cache", "0"},
    {"cache_write_tokens", "integer", "always 0", "0"},
};
constexpr Member kResponseOutputDetails[] = {{"reasoning_tokens", "integer", "tokens that spell the reasoning", "0"}};

// ---- items

constexpr Member kResponseMessage[] = {
    {"id", "string", "id of the item", R"("msg_4b1c8f0e27d94a6b_0")"},
    {"type", "'message'", "kind of the item"},
    {"role", "'assistant'", "role of the message"},
    {"content", "[OutputText]", "one text; none as the item begins"},
    {"status", "'completed'|'incomplete'|'in_progress'", "state of the item"},
};
constexpr Member kResponseReasoning[] = {
    {"id", "string", "id of the item", R"("rs_4b1c8f0e27d94a6b_0")"},
    {"type", "'reasoning'", "kind of the item"},
    {"summary", "[object]", "always empty: no summary is made", "[]"},
    {"content", "[ReasoningText]", "one text; none as the item begins"},
    {"status", "'completed'|'incomplete'|'in_progress'", "state of the item"},
};
constexpr Member kResponseCall[] = {
    {"id", "string", "id of the item", R"("fc_4b1c8f0e27d94a6b_0")"},
    {"type", "'function_call'", "kind of the item"},
    {"call_id", "string", "id of the call, to be sent back with its result", R"("call_0c5e")"},
    {"name", "string", "name of the function", R"("look")"},
    {"arguments", "string", "arguments as JSON text", R"("{\"at\":\"sky\"}")"},
    {"status", "'completed'|'incomplete'|'in_progress'", "state of the item"},
};
constexpr Member kResponseOutputText[] = {
    {"type", "'output_text'", "kind of the part"},
    {"text", "string", "the text", R"("Hello! How are you?")"},
    {"annotations", "[object]", "always empty", "[]"},
    {"logprobs?", "[TokenLogprob]", "if `include` asks for them"},
};
constexpr Member kResponseReasoningText[] = {
    {"type", "'reasoning_text'", "kind of the part"},
    {"text", "string", "the text", R"("The user greets me.")"},
};

// ---- events of a stream

constexpr Member kResponseNumber[] = {{"sequence_number", "integer", "number of the event, from 0", "0"}};
constexpr Member kResponseInPart[] = {
    {"sequence_number", "integer", "number of the event, from 0", "4"},
    {"item_id", "string", "id of the item", R"("msg_4b1c8f0e27d94a6b_0")"},
    {"output_index", "integer", "index of the item", "0"},
    {"content_index", "integer", "index of the part: 0", "0"},
};
constexpr Member kResponseInCall[] = {
    {"sequence_number", "integer", "number of the event, from 0", "3"},
    {"item_id", "string", "id of the item", R"("fc_4b1c8f0e27d94a6b_0")"},
    {"output_index", "integer", "index of the item", "0"},
};
constexpr Member kResponseStateEvent[] = {
    {"type", "'response.created'|'response.in_progress'|'response.completed'|'response.incomplete'|'response.failed'", "name of the event"},
    {"response", "ResponseObject", "the response so far"},
};
constexpr Member kResponseItemEvent[] = {
    {"type", "'response.output_item.added'|'response.output_item.done'", "name of the event"},
    {"output_index", "integer", "index of the item", "0"},
    {"item", "OutputMessage|OutputReasoning|OutputCall", "the item as it begins, or whole"},
};
constexpr Member kResponsePartEvent[] = {
    {"type", "'response.content_part.added'|'response.content_part.done'", "name of the event"},
    {"part", "OutputText|ReasoningText", "the part as it begins, or whole"},
};
constexpr Member kResponseTextDelta[] = {
    {"type", "'response.output_text.delta'", "name of the event"},
    {"delta", "string", "text to append", R"("Hello")"},
    {"logprobs", "[TokenLogprob]", "the text's tokens, if `include` asks for them", "[]"},
};
constexpr Member kResponseTextDone[] = {
    {"type", "'response.output_text.done'", "name of the event"},
    {"text", "string", "the whole text", R"("Hello! How are you?")"},
    {"logprobs", "[TokenLogprob]", "all of its tokens, if `include` asks for them", "[]"},
};
constexpr Member kResponseReasoningDelta[] = {
    {"type", "'response.reasoning_text.delta'", "name of the event"},
    {"delta", "string", "text to append", R"("The user")"},
};
constexpr Member kResponseReasoningDone[] = {
    {"type", "'response.reasoning_text.done'", "name of the event"},
    {"text", "string", "the whole text", R"("The user greets me.")"},
};
constexpr Member kResponseArgumentsDelta[] = {
    {"type", "'response.function_call_arguments.delta'", "name of the event"},
    {"delta", "string", "JSON text to append", R"("{\"at\":")"},
};
constexpr Member kResponseArgumentsDone[] = {
    {"type", "'response.function_call_arguments.done'", "name of the event"},
    {"name", "string", "name of the function", R"("look")"},
    {"arguments", "string", "the whole JSON text", R"("{\"at\":\"sky\"}")"},
};

constexpr Shape kResponseShapes[] = {
    {"ResponseObject", "The answer of /v1/responses.", {}, kResponse},
    {"ResponseError", "Why a response failed.", {}, kResponseError},
    {"IncompleteDetails", "Why a response is incomplete.", {}, kResponseIncomplete},
    {"ResponseText", "Form of a response's text.", {}, kResponseText},
    {"ResponseReasoning", "Settings of a response's reasoning.", {}, kResponseReasoningOptions},
    {"ResponseUsage", "Tokens of a response.", {}, kResponseUsage},
    {"InputTokensDetails", "Parts of the prompt's tokens.", {}, kResponseInputDetails},
    {"OutputTokensDetails", "Parts of the answer's tokens.", {}, kResponseOutputDetails},
    {"OutputMessage", "A message of a response.", {}, kResponseMessage},
    {"OutputReasoning", "Reasoning of a response.", {}, kResponseReasoning},
    {"OutputCall", "A call of a function in a response.", {}, kResponseCall},
    {"OutputText", "Text of a message.", {}, kResponseOutputText},
    {"ReasoningText", "Text of reasoning.", {}, kResponseReasoningText},
    {.name = "ResponseEvent", .help = "An event of a stream of /v1/responses.",
     .type = "ResponseStateEvent|OutputItemEvent|ContentPartEvent|OutputTextDelta|OutputTextDone|ReasoningTextDelta|ReasoningTextDone|ArgumentsDelta|ArgumentsDone"},
    {"ResponseStateEvent", "The response begins, goes on or has ended.", kResponseNumber, kResponseStateEvent},
    {"OutputItemEvent", "An item begins or has ended.", kResponseNumber, kResponseItemEvent},
    {"ContentPartEvent", "A part of an item begins or has ended.", kResponseInPart, kResponsePartEvent},
    {"OutputTextDelta", "More of a message's text.", kResponseInPart, kResponseTextDelta},
    {"OutputTextDone", "A message's text has ended.", kResponseInPart, kResponseTextDone},
    {"ReasoningTextDelta", "More of the reasoning.", kResponseInPart, kResponseReasoningDelta},
    {"ReasoningTextDone", "The reasoning has ended.", kResponseInPart, kResponseReasoningDone},
    {"ArgumentsDelta", "More of a call's arguments.", kResponseInCall, kResponseArgumentsDelta},
    {"ArgumentsDone", "A call's arguments have ended.", kResponseInCall, kResponseArgumentsDone},
};
// clang-format on

}  // namespace

std::span<const Shape> response_shapes() { return kResponseShapes; }

}  // namespace quire::api
