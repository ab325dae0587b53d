#include "api/openapi/operations.h"

#include "api/chat/chat_request.h"
#include "api/completions/completion_request.h"
#include "api/embeddings/embedding_request.h"
#include "api/messages/messages_request.h"
#include "api/responses/responses_request.h"
#include "api/tokenize/tokenize.h"

namespace quire::api {
namespace {

constexpr std::uint8_t kPost = http::kEveryPath | http::kPosts;
constexpr std::uint8_t kGeneration = kPost | http::kGenerating;
constexpr std::uint8_t kNamed = http::kEveryPath | http::kNamedRequests;
constexpr std::uint8_t kModelPaths = http::kEveryPath | http::kModels | http::kAnthropicForm;

// clang-format off
constexpr Body kBodies[] = {
    {"CompletionRequest", kCompletions, completion_fields, {"prompt"}},
    {"ChatCompletionRequest", kChat, chat::chat_fields, {"messages"}},
    {"ResponseRequest", kResponses, responses::responses_fields, {"input"}},
    {"MessageRequest", kMessages, messages::messages_fields, {"messages", "max_tokens"}},
    {"TokenCountRequest", kCountTokens, messages::messages_fields, {"messages"}},
    {"EmbeddingRequest", kEmbeddings, embedding_fields, {"input"}},
    {"TokenizeRequest", kTokenize, tokenize_fields},
    {"DetokenizeRequest", kDetokenize, detokenize_fields, {"tokens"}},
};

constexpr std::string_view kPrompt = R"("prompt":"Once upon a time","max_tokens":16,"temperature":0,"seed":7)";
constexpr std::string_view kConversation = R"("messages":[{"role":"user","content":"Hello"}],"max_completion_tokens":16,"temperature":0)";

constexpr std::string_view kLoading = "LoadingStatus|Error";  // before the model is served, and later

constexpr Operation kOperations[] = {
    {.path = "/v1/completions", .method = "post", .id = "createCompletion", .tag = "Completions", .summary = "Continue prompts",
     .body = "CompletionRequest", .request = kPrompt, .answer = "Completion", .events = "CompletionChunk|Error", .last_event = "[DONE]", .paths = kGeneration},
    {.path = "/v1/completions/render", .method = "post", .id = "renderCompletion", .tag = "Completions", .summary = "Token ids and parameters of prompts",
     .body = "CompletionRequest", .request = kPrompt, .answer = "[RenderedPrompt]", .paths = kPost, .names = true},
    {.path = "/v1/chat/completions", .method = "post", .id = "createChatCompletion", .tag = "Chat", .summary = "Answer a conversation",
     .body = "ChatCompletionRequest", .request = kConversation, .answer = "ChatCompletion", .events = "ChatCompletionChunk|Error", .last_event = "[DONE]", .paths = kGeneration},
    {.path = "/v1/chat/completions/render", .method = "post", .id = "renderChatCompletion", .tag = "Chat", .summary = "Prompt, token ids and parameters of a conversation",
     .body = "ChatCompletionRequest", .request = kConversation, .answer = "RenderedConversation", .paths = kPost, .names = true},
    {.path = "/v1/responses", .method = "post", .id = "createResponse", .tag = "Responses", .summary = "Answer a conversation (OpenAI's Responses API)",
     .body = "ResponseRequest", .request = R"("input":"Hello","max_output_tokens":16,"temperature":0)", .answer = "ResponseObject", .events = "ResponseEvent", .paths = kGeneration},
    {.path = "/v1/messages", .method = "post", .id = "createMessage", .tag = "Messages", .summary = "Answer a conversation (Anthropic's Messages API)",
     .body = "MessageRequest", .request = R"("messages":[{"role":"user","content":"Hello"}],"max_tokens":16,"temperature":0)", .answer = "Message", .events = "MessageEvent",
     .error = "AnthropicError", .paths = kGeneration | http::kAnthropicForm},
    {.path = "/v1/messages/count_tokens", .method = "post", .id = "countMessageTokens", .tag = "Messages", .summary = "Length of a conversation in tokens",
     .body = "TokenCountRequest", .request = R"("messages":[{"role":"user","content":"Hello"}])", .answer = "TokenCount",
     .error = "AnthropicError", .paths = kPost | http::kAnthropicForm, .names = true},
    {.path = "/v1/embeddings", .method = "post", .id = "createEmbedding", .tag = "Embeddings", .summary = "Embed texts as vectors",
     .body = "EmbeddingRequest", .request = R"("input":["Once upon a time","The end"])", .answer = "EmbeddingList", .paths = kGeneration},
    {.path = "/tokenize", .method = "post", .id = "tokenize", .tag = "Tokenizer", .summary = "Token ids of a text or a conversation",
     .body = "TokenizeRequest", .request = R"("prompt":"Once upon a time")", .answer = "TokenList", .paths = kPost, .names = true},
    {.path = "/detokenize", .method = "post", .id = "detokenize", .tag = "Tokenizer", .summary = "Text of token ids",
     .body = "DetokenizeRequest", .request = R"("tokens":[1,2,3])", .answer = "TokenText", .paths = kPost, .names = true},
    {.path = "/tokenizer_info", .method = "get", .id = "getTokenizerInfo", .tag = "Tokenizer", .summary = "Settings of the tokenizer, with --tokenizer-info on",
     .answer = "object", .names = true},
    {.path = "/v1/models", .method = "get", .id = "listModels", .tag = "Models", .summary = "Served models",
     .answer = "ModelList|AnthropicModelList", .error = "AnthropicError|Error", .paths = kModelPaths},
    {.path = "/v1/models/{model}", .method = "get", .id = "retrieveModel", .tag = "Models", .summary = "One served model",
     .answer = "Model|AnthropicModel", .error = "AnthropicError|Error", .paths = kModelPaths, .names = true},
    {.path = "/v1/requests/{id}/explain", .method = "get", .id = "explainRequest", .tag = "Requests", .summary = "Timeline and state of a request",
     .answer = "RequestTimeline", .paths = kNamed, .names = true},
    {.path = "/v1/requests/{id}", .method = "delete", .id = "cancelRequest", .tag = "Requests", .summary = "Cancel a running request",
     .answer = "CancelledRequest", .paths = kNamed, .names = true},
    {.path = "/admin/requests", .method = "get", .id = "listRequests", .tag = "Requests", .summary = "Running and waiting requests of all clients",
     .answer = "RequestList"},
    {.path = "/admin/requests/{id}/explain", .method = "get", .id = "explainAnyRequest", .tag = "Requests", .summary = "Timeline and state of a request of any client",
     .answer = "RequestTimeline", .names = true},
    {.path = "/admin/requests/{id}", .method = "delete", .id = "cancelAnyRequest", .tag = "Requests", .summary = "Cancel a running request of any client",
     .answer = "CancelledRequest", .names = true},
    {.path = "/admin/cache/save", .method = "post", .id = "saveCache", .tag = "Cache", .summary = "Save the prefix cache to a file",
     .body = "CacheFile", .request = R"("path":"monday.kv")", .answer = "CacheReport", .names = true},
    {.path = "/admin/cache/load", .method = "post", .id = "loadCache", .tag = "Cache", .summary = "Load the prefix cache from a file",
     .body = "CacheFile", .request = R"("path":"monday.kv")", .answer = "CacheReport", .names = true},
    {.path = "/admin/cache/clear", .method = "post", .id = "clearCache", .tag = "Cache", .summary = "Clear the prefix cache",
     .body = "CacheClear", .answer = "CacheReport", .body_may_be_absent = true},
    {.path = "/live", .method = "get", .id = "getLiveness", .tag = "Server", .summary = "Liveness", .answer = "Status", .unavailable = "Error"},
    {.path = "/ready", .method = "get", .id = "getReadiness", .tag = "Server", .summary = "Readiness", .answer = "Status", .unavailable = kLoading},
    {.path = "/startup", .method = "get", .id = "getStartup", .tag = "Server", .summary = "Startup: done once the server has been ready", .answer = "Status", .unavailable = kLoading},
    {.path = "/health", .method = "get", .id = "getHealth", .tag = "Server", .summary = "Liveness and readiness", .answer = "Status", .unavailable = kLoading},
    {.path = "/ping", .method = "get", .id = "getPing", .tag = "Server", .summary = "Liveness and readiness, with an empty body", .unavailable = kLoading},
    {.path = "/ping", .method = "post", .id = "postPing", .tag = "Server", .summary = "The same, for clients that send POST", .unavailable = kLoading},
    {.path = "/load", .method = "get", .id = "getLoad", .tag = "Server", .summary = "Number of running and waiting sequences", .answer = "ServerLoad"},
    {.path = "/metrics", .method = "get", .id = "getMetrics", .tag = "Server", .summary = "Counters, gauges and histograms for Prometheus",
     .answer = "string", .media = "text/plain"},
    {.path = "/version", .method = "get", .id = "getVersion", .tag = "Server", .summary = "Version of the server", .answer = "Version"},
    {.path = "/openapi.json", .method = "get", .id = "getOpenApi", .tag = "Server", .summary = "This document", .answer = "OpenApiDocument"},
};

constexpr Tag kTags[] = {
    {"Completions", "Text continued (OpenAI's API)"},
    {"Chat", "Conversations (OpenAI's API)"},
    {"Responses", "Conversations (OpenAI's Responses API)"},
    {"Messages", "Conversations (Anthropic's API)"},
    {"Embeddings", "Texts as vectors"},
    {"Tokenizer", "Texts as token ids"},
    {"Models", "The served names"},
    {"Requests", "Running and finished requests"},
    {"Cache", "The prefix cache"},
    {"Server", "State of the server"},
};
// clang-format on

}  // namespace

std::span<const Body> bodies() { return kBodies; }
std::span<const Operation> operations() { return kOperations; }
std::span<const Tag> tags() { return kTags; }

}  // namespace quire::api
