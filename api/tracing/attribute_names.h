// The names of span attributes.
// Shape   times are seconds.
// Source  OpenTelemetry's semantic conventions for HTTP (stable) and generative AI (in development), and vLLM's
//         tracing. A value that vLLM has under another name is exported under both, so that dashboards of either work.
#pragma once

namespace quire::api::tracing::name {

// HTTP
inline constexpr char kMethod[] = "http.request.method";
inline constexpr char kMethodAsSent[] = "http.request.method_original";
inline constexpr char kRoute[] = "http.route";
inline constexpr char kStatus[] = "http.response.status_code";
inline constexpr char kPath[] = "url.path";
inline constexpr char kScheme[] = "url.scheme";
inline constexpr char kErrorType[] = "error.type";

// generative AI
inline constexpr char kOperation[] = "gen_ai.operation.name";
inline constexpr char kProvider[] = "gen_ai.provider.name";
inline constexpr char kRequestModel[] = "gen_ai.request.model";
inline constexpr char kResponseModel[] = "gen_ai.response.model";
inline constexpr char kResponseId[] = "gen_ai.response.id";
inline constexpr char kMaxTokens[] = "gen_ai.request.max_tokens";
inline constexpr char kTemperature[] = "gen_ai.request.temperature";
inline constexpr char kTopP[] = "gen_ai.request.top_p";
inline constexpr char kTopK[] = "gen_ai.request.top_k";
inline constexpr char kStream[] = "gen_ai.request.stream";
inline constexpr char kChoices[] = "gen_ai.request.choice.count";
inline constexpr char kFinishReasons[] = "gen_ai.response.finish_reasons";
inline constexpr char kInputTokens[] = "gen_ai.usage.input_tokens";
inline constexpr char kOutputTokens[] = "gen_ai.usage.output_tokens";
inline constexpr char kCachedTokens[] = "gen_ai.usage.cache_read.input_tokens";

// vLLM's
inline constexpr char kRequestId[] = "gen_ai.request.id";
inline constexpr char kN[] = "gen_ai.request.n";
inline constexpr char kNumSequences[] = "gen_ai.usage.num_sequences";
inline constexpr char kPromptTokens[] = "gen_ai.usage.prompt_tokens";
inline constexpr char kCompletionTokens[] = "gen_ai.usage.completion_tokens";
inline constexpr char kTimeInQueue[] = "gen_ai.latency.time_in_queue";
inline constexpr char kTimeToFirstToken[] = "gen_ai.latency.time_to_first_token";
inline constexpr char kTimeInPrefill[] = "gen_ai.latency.time_in_model_prefill";
inline constexpr char kTimeInDecode[] = "gen_ai.latency.time_in_model_decode";
inline constexpr char kTimeInInference[] = "gen_ai.latency.time_in_model_inference";
inline constexpr char kEndToEnd[] = "gen_ai.latency.e2e";

// ours
inline constexpr char kPreemptions[] = "quire.preemptions";
inline constexpr char kDrafted[] = "quire.draft.tokens";
inline constexpr char kAccepted[] = "quire.draft.accepted_tokens";
inline constexpr char kQueueCause[] = "quire.queue.cause";
inline constexpr char kPreemption[] = "quire.preemption";
inline constexpr char kPreemptionKind[] = "quire.preemption.kind";

}  // namespace quire::api::tracing::name
