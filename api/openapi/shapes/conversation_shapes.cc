// Objects in request bodies. A request may have other members: these are the ones that are read.
#include "api/openapi/shapes/shapes.h"

namespace quire::api {
namespace {

// clang-format off
// ---- chat completions

constexpr Member kParamMessage[] = {
    {"role", "'user'|'assistant'|'system'|'developer'|'tool'", "role of the message"},
    {"content?", "string|[string|ContentPart]|null", "the text; parts are joined with line breaks", R"("Hello")"},
    {"name?", "string|null", "name of the speaker or the function, for templates that use it"},
    {"tool_calls?", "[MessageToolCall]|null", "calls of an assistant"},
    {"tool_call_id?", "string|null", "of a tool's message: id of the call"},
    {"reasoning?", "string|null", "an assistant's reasoning"},
    {"reasoning_content?", "string|null", "the same, by an earlier name"},
};
constexpr Member kParamContentPart[] = {
    {"type", "'text'|'input_text'|'output_text'|'refusal'", "kind of the part"},
    {"text?", "string", "the text", R"("Hello")"},
    {"refusal?", "string", "the text of a refusal"},
};
constexpr Member kParamMessageToolCall[] = {
    {"id?", "string|null", "id of the call", R"("call_0c5e")"},
    {"type?", "'function'|'custom'|null", "kind of the call; function if absent", R"("function")"},
    {"function?", "MessageFunction|null", "the function and its arguments", kComposed},
    {"custom?", "CustomCall|null", "of a custom call: the tool and its input"},
};
constexpr Member kParamMessageFunction[] = {
    {"name", "string", "name of the function", R"("look")"},
    {"arguments?", "string|object|null", "arguments, or their JSON text", R"("{\"at\":\"sky\"}")"},
};
constexpr Member kParamCustomCall[] = {
    {"name", "string", "name of the tool", R"("look")"},
    {"input?", "string|null", "text of the call", R"("sky")"},
};
constexpr Member kParamTool[] = {
    {"type?", "string|null", "function, or absent; tools of other types are left out", R"("function")"},
    {"function?", "FunctionDefinition|null", "the function", kComposed},
};
constexpr Member kParamFunctionDefinition[] = {
    {"name", "string", "1 to 64 letters, digits, underscores, dashes and dots", R"("look")"},
    {"description?", "string|null", "for the model"},
    {"parameters?", "object|null", "a JSON Schema of the arguments"},
    {"strict?", "boolean|null", "true: the arguments have to match the schema"},
};

// ---- responses

constexpr Member kParamFlatTool[] = {
    {"type?", "string|null", "function, or absent; tools of other types are left out", R"("function")"},
    {"name?", "string|null", "1 to 64 letters, digits, underscores, dashes and dots", R"("look")"},
    {"description?", "string|null", "for the model"},
    {"parameters?", "object|null", "a JSON Schema of the arguments"},
    {"strict?", "boolean|null", "true: the arguments have to match the schema"},
};
constexpr Member kParamInputItem[] = {
    {"type?", "string|null", "message, reasoning, function_call, function_call_output; items of other tools are left out", R"("message")"},
    {"role?", "string|null", "of a message: user, assistant, system or developer", R"("user")"},
    {"content?", "string|[string|InputPart]|null", "of a message, or of reasoning: the text", R"("Hello")"},
    {"summary?", "string|[string|InputPart]|null", "of reasoning without content: the text"},
    {"call_id?", "string|null", "of a call and its output: id of the call"},
    {"name?", "string|null", "of a call: name of the function"},
    {"arguments?", "string|object|null", "of a call: arguments, or their JSON text"},
    {"input?", "string|null", "of a custom call: its text"},
    {"output?", "string|[string|InputPart]|null", "of a call's output: the text"},
};
constexpr Member kParamInputPart[] = {
    {"type", "'input_text'|'output_text'|'text'|'reasoning_text'|'summary_text'|'refusal'", "kind of the part"},
    {"text?", "string", "the text", R"("Hello")"},
    {"refusal?", "string", "the text of a refusal"},
};
constexpr Member kParamTextOptions[] = {
    {"format?", "TextFormat|null", "form of the answer", kComposed},
    {"verbosity?", "string|null", "of no effect"},
};
constexpr Member kParamTextFormat[] = {
    {"type", "'text'|'json_object'|'json_schema'|'json'|'regex'|'grammar'", "kind of the form"},
    {"name?", "string|null", "of a schema: its name"},
    {"schema?", "object|boolean|string|null", "the JSON Schema, or its text"},
    {"strict?", "boolean|null", "of no effect: schemas are always enforced"},
};
constexpr Member kParamReasoningOptions[] = {
    {"effort?", "string|null", "a variable of the chat template", R"("low")"},
    {"summary?", "'auto'|'concise'|'detailed'|null", "of no effect: the reasoning itself is returned"},
};

// ---- messages

constexpr Member kParamMessageParam[] = {
    {"role", "'user'|'assistant'|'system'", "role of the message"},
    {"content?", "string|[BlockParam]|null", "the text, or blocks", R"("Hello")"},
};
constexpr Member kParamBlockParam[] = {
    {"type", "string", "text, tool_result, tool_use, thinking or redacted_thinking; blocks of tools that a server ran are left out", R"("text")"},
    {"text?", "string", "of a text", R"("Hello")"},
    {"tool_use_id?", "string", "of a result: id of the call"},
    {"content?", "string|[string|BlockParam]|null", "of a result: its text"},
    {"id?", "string", "of a call: its id"},
    {"name?", "string", "of a call: name of the tool"},
    {"input?", "object|string|null", "of a call: its arguments"},
    {"thinking?", "string", "of thinking: its text"},
};
constexpr Member kParamSystemBlock[] = {
    {"type", "'text'", "kind of the block"},
    {"text", "string", "the text", R"("Be brief.")"},
};
constexpr Member kParamToolParam[] = {
    {"type?", "string|null", "custom, or absent; tools of other types are left out"},
    {"name?", "string", "name of the tool", R"("look")"},
    {"description?", "string|null", "for the model"},
    {"input_schema?", "object|null", "a JSON Schema of the arguments", R"({"type":"object"})"},
};
constexpr Member kParamToolChoiceParam[] = {
    {"type", "'auto'|'any'|'tool'|'none'", "kind of the choice"},
    {"name?", "string", "of a tool: its name"},
    {"disable_parallel_tool_use?", "boolean|null", "true: at most one call"},
};
constexpr Member kParamThinkingParam[] = {
    {"type", "'enabled'|'disabled'|'adaptive'", "whether the template begins reasoning"},
    {"budget_tokens?", "integer|null", "checked, and not enforced"},
    {"display?", "'summarized'|'omitted'|null", "omitted: reasoning is left out of the answer"},
};

// ---- several paths

constexpr Member kParamResponseFormat[] = {
    {"type", "'text'|'json_object'|'json_schema'|'json'|'regex'|'grammar'", "kind of the form"},
    {"json_schema?", "JsonSchemaFormat|null", "the schema"},
    {"schema?", "object|boolean|string|null", "the JSON Schema, or its text, in another place"},
    {"value?", "object|boolean|string|null", "the same, or a regular expression"},
    {"grammar?", "string|null", "a grammar: EBNF, GBNF or Lark"},
};
constexpr Member kParamJsonSchemaFormat[] = {
    {"name?", "string|null", "name of the schema", R"("answer")"},
    {"description?", "string|null", "of no effect"},
    {"schema", "object|boolean|string", "the JSON Schema, or its text"},
    {"strict?", "boolean|null", "of no effect: schemas are always enforced"},
};
constexpr Member kParamStructuredOutputs[] = {
    {"json?", "object|boolean|string|null", "a JSON Schema, or its text"},
    {"json_object?", "boolean|null", "any JSON object"},
    {"regex?", "string|null", "a regular expression"},
    {"choice?", "[string]|null", "one of these texts", R"(["yes","no"])"},
    {"grammar?", "string|null", "a grammar: EBNF, GBNF or Lark"},
};
constexpr Member kParamStreamOptions[] = {
    {"include_usage?", "boolean|null", "send the usage in an event before the end", "true"},
    {"continuous_usage_stats?", "boolean|null", "send it in every event, too"},
    {"include_obfuscation?", "boolean|null", "only false"},
};

constexpr Shape kParamShapes[] = {
    {"ChatMessage", "A message of a conversation.", {}, kParamMessage},
    {"ContentPart", "A part of a message's text.", {}, kParamContentPart},
    {"MessageToolCall", "A call that an assistant has made.", {}, kParamMessageToolCall},
    {"MessageFunction", "The function of a call.", {}, kParamMessageFunction},
    {"CustomCall", "The tool of a custom call.", {}, kParamCustomCall},
    {"Tool", "A function that the model may call. The function's members may also stand beside `type`.", {}, kParamTool},
    {"FunctionDefinition", "A function.", {}, kParamFunctionDefinition},
    {"FlatTool", "A function that the model may call. Its members may also stand in a member `function`.", {}, kParamFlatTool},
    {"InputItem", "An item of a conversation.", {}, kParamInputItem},
    {"InputPart", "A part of an item's text.", {}, kParamInputPart},
    {"TextOptions", "Settings of the answer's text.", {}, kParamTextOptions},
    {"TextFormat", "Form of the answer's text.", {}, kParamTextFormat},
    {"ReasoningOptions", "Settings of the reasoning.", {}, kParamReasoningOptions},
    {"MessageParam", "A message of a conversation, in Anthropic's shape.", {}, kParamMessageParam},
    {"BlockParam", "A block of a message.", {}, kParamBlockParam},
    {"SystemBlock", "A block of the system message.", {}, kParamSystemBlock},
    {"ToolParam", "A tool that the model may call, in Anthropic's shape.", {}, kParamToolParam},
    {"ToolChoiceParam", "Which tools may be called.", {}, kParamToolChoiceParam},
    {"ThinkingParam", "Whether the model reasons first.", {}, kParamThinkingParam},
    {"ResponseFormat", "Form of the answer.", {}, kParamResponseFormat},
    {"JsonSchemaFormat", "A JSON Schema and its name.", {}, kParamJsonSchemaFormat},
    {"StructuredOutputs", "Form of the answer: one of these.", {}, kParamStructuredOutputs},
    {"StreamOptions", "Settings of a stream.", {}, kParamStreamOptions},
};
// clang-format on

}  // namespace

std::span<const Shape> conversation_shapes() { return kParamShapes; }

}  // namespace quire::api
