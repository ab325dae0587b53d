// Answers of /v1/messages and of /v1/models in Anthropic's shape.
#include "api/openapi/shapes/shapes.h"

namespace quire::api {
namespace {

// clang-format off
constexpr Member kMessage[] = {
    {"id", "string", "id of the message", R"("msg_4b1c8f0e27d94a6b")"},
    {"type", "'message'", "kind of the answer"},
    {"role", "'assistant'", "role of the message"},
    {"model", "string", "the served name that the request gave, or the first one", R"("stories")"},
    {"system_fingerprint", "string", "the numeric mode: equal requests with equal seeds get equal answers from it", R"("fp_5f1d0c3a")"},
    {"seed", "integer", "the request's seed, or the random one that was used", "7"},
    {"content", "[TextBlock|ThinkingBlock|ToolUseBlock]", "blocks in the order of generation"},
    {"stop_reason", "'end_turn'|'max_tokens'|'stop_sequence'|'tool_use'|null", "null as a stream begins, and if the request was cancelled by id"},
    {"stop_sequence", "string|null", "the stop sequence that ended the answer", "null"},
    {"usage", "MessageUsage", "tokens of the request"},
    {"timings?", "Timings", "times of the request; absent as a stream begins", kComposed},
};
constexpr Member kMessageText[] = {
    {"type", "'text'", "kind of the block"},
    {"text", "string", "the text", R"("Hello! How are you?")"},
};
constexpr Member kMessageThinking[] = {
    {"type", "'thinking'", "kind of the block"},
    {"thinking", "string", "the reasoning", R"("The user greets me.")"},
    {"signature", "string", "always empty", R"("")"},
};
constexpr Member kMessageToolUse[] = {
    {"type", "'tool_use'", "kind of the block"},
    {"id", "string", "id of the call, to be sent back with its result", R"("toolu_0c5e")"},
    {"name", "string", "name of the tool", R"("look")"},
    {"input", "object", "arguments of the call; empty as it begins, and if it was cut short", R"({"at":"sky"})"},
};
constexpr Member kMessageUsage[] = {
    {"input_tokens", "integer", "tokens of the prompt that were not in the prefix cache", "9"},
    {"cache_creation_input_tokens", "integer", "always 0", "0"},
    {"cache_read_input_tokens", "integer", "tokens of the prompt that were in the prefix cache", "0"},
    {"output_tokens", "integer", "tokens generated", "16"},
};
constexpr Member kMessageCount[] = {{"input_tokens", "integer", "length of the prompt in tokens", "9"}};

// ---- events of a stream

constexpr Member kMessageStart[] = {
    {"type", "'message_start'", "name of the event"},
    {"message", "Message", "the message without content"},
};
constexpr Member kMessageBlockStart[] = {
    {"type", "'content_block_start'", "name of the event"},
    {"index", "integer", "index of the block", "0"},
    {"content_block", "TextBlock|ThinkingBlock|ToolUseBlock", "the block without its text"},
};
constexpr Member kMessageBlockDelta[] = {
    {"type", "'content_block_delta'", "name of the event"},
    {"index", "integer", "index of the block", "0"},
    {"delta", "TextDelta|ThinkingDelta|InputJsonDelta", "text to append to the block"},
};
constexpr Member kMessageTextDelta[] = {
    {"type", "'text_delta'", "kind of the delta"},
    {"text", "string", "text to append", R"("Hello")"},
};
constexpr Member kMessageThinkingDelta[] = {
    {"type", "'thinking_delta'", "kind of the delta"},
    {"thinking", "string", "reasoning to append", R"("The user")"},
};
constexpr Member kMessageInputDelta[] = {
    {"type", "'input_json_delta'", "kind of the delta"},
    {"partial_json", "string", "JSON text to append", R"("{\"at\":")"},
};
constexpr Member kMessageBlockStop[] = {
    {"type", "'content_block_stop'", "name of the event"},
    {"index", "integer", "index of the block", "0"},
};
constexpr Member kMessageDelta[] = {
    {"type", "'message_delta'", "name of the event"},
    {"delta", "MessageEnd", "how the message ended"},
    {"usage", "MessageUsage", "tokens of the request"},
    {"timings", "Timings", "times of the request"},
};
constexpr Member kMessageEnd[] = {
    {"stop_reason", "'end_turn'|'max_tokens'|'stop_sequence'|'tool_use'|null", "null if the request was cancelled by id"},
    {"stop_sequence", "string|null", "the stop sequence that ended the answer", "null"},
};
constexpr Member kMessageStop[] = {{"type", "'message_stop'", "name of the event"}};

// ---- models

constexpr Member kMessageModels[] = {
    {"data", "[AnthropicModel]", "the served names"},
    {"has_more", "boolean", "always false", "false"},
    {"first_id", "string", "the first name", R"("stories")"},
    {"last_id", "string", "the last name", R"("stories")"},
};
constexpr Member kMessageModel[] = {
    {"type", "'model'", "kind of the object"},
    {"id", "string", "the served name", R"("stories")"},
    {"display_name", "string", "the served name", R"("stories")"},
    {"created_at", "string", "when the server started (RFC 3339)", R"("2026-01-01T00:00:00Z")"},
    {"lifecycle", "'active'", "always active"},
    {"max_input_tokens", "integer", "maximum length of prompt and answer together", "512"},
    {"max_tokens", "integer", "the same", "512"},
};

constexpr Shape kMessageShapes[] = {
    {"Message", "The whole answer of /v1/messages.", {}, kMessage},
    {"TextBlock", "A block of text.", {}, kMessageText},
    {"ThinkingBlock", "A block of reasoning.", {}, kMessageThinking},
    {"ToolUseBlock", "A call of a tool.", {}, kMessageToolUse},
    {"MessageUsage", "Tokens of a request.", {}, kMessageUsage},
    {"TokenCount", "Length of a conversation.", {}, kMessageCount},
    {.name = "MessageEvent", .help = "An event of a stream of /v1/messages.",
     .type = "MessageStart|ContentBlockStart|ContentBlockDelta|ContentBlockStop|MessageDelta|MessageStop|AnthropicError"},
    {"MessageStart", "The message begins.", {}, kMessageStart},
    {"ContentBlockStart", "A block begins.", {}, kMessageBlockStart},
    {"ContentBlockDelta", "More of a block.", {}, kMessageBlockDelta},
    {"TextDelta", "More text.", {}, kMessageTextDelta},
    {"ThinkingDelta", "More reasoning.", {}, kMessageThinkingDelta},
    {"InputJsonDelta", "More of a call's arguments.", {}, kMessageInputDelta},
    {"ContentBlockStop", "A block has ended.", {}, kMessageBlockStop},
    {"MessageDelta", "The message has ended.", {}, kMessageDelta},
    {"MessageEnd", "How a message ended.", {}, kMessageEnd},
    {"MessageStop", "The stream has ended.", {}, kMessageStop},
    {"AnthropicModelList", "The served names, in Anthropic's shape.", {}, kMessageModels},
    {"AnthropicModel", "A served name, in Anthropic's shape.", {}, kMessageModel},
};
// clang-format on

}  // namespace

std::span<const Shape> message_shapes() { return kMessageShapes; }

}  // namespace quire::api
