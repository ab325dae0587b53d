#include "api/tracing/otlp_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "api/json/response_writer.h"
#include "api/tracing/attribute_names.h"
#include "api/wire/response_head.h"

namespace quire::api::tracing {
namespace {

using Micros = bridge::Timeline::Micros;

// The numbers of opentelemetry/proto/trace/v1/trace.proto.
enum class Kind : std::uint8_t { kInternal = 1, kServer = 2 };
constexpr std::int64_t kStatusError = 2;
constexpr std::int64_t kSampledFlag = 1;
constexpr std::int64_t kParentKnownFlag = 0x100;   // the next flag is valid
constexpr std::int64_t kParentRemoteFlag = 0x200;  // the parent span is of another process
constexpr int kCallersFault = 400;                 // lowest status of a client error
constexpr int kOurFault = 500;                     // lowest status of a server error
// Other methods are inventions of clients; a span's name must have few values.
constexpr std::array<std::string_view, 9> kMethods = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                                      "CONNECT", "OPTIONS", "TRACE", "PATCH"};
constexpr std::size_t kChildIdDigits = 16;
constexpr std::int64_t kNanosPerMicro = 1000;

// Writes "attributes":[{"key","value":{…}}, …]; its destructor closes the list.
class Attributes {
 public:
  explicit Attributes(JsonWriter& json) : json_(json) { json_.key("attributes").begin_array(); }
  ~Attributes() { json_.end_array(); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  void text(std::string_view name, std::string_view value) {
    open(name).key("stringValue").text(value);
    close();
  }
  void number(std::string_view name, std::int64_t value) {
    open(name).key("intValue").text(std::to_string(value));
    close();
  }
  void number(std::string_view name, std::uint64_t value) { number(name, static_cast<std::int64_t>(value)); }
  void number(std::string_view name, std::uint32_t value) { number(name, std::int64_t{value}); }
  void real(std::string_view name, double value) {
    open(name).key("doubleValue").number(value);
    close();
  }
  void real(std::string_view name, float value) {
    open(name).key("doubleValue").number(value);
    close();
  }
  void flag(std::string_view name, bool value) {
    open(name).key("boolValue").boolean(value);
    close();
  }
  void texts(std::string_view name, std::span<const std::string_view> values) {
    open(name).key("arrayValue").begin_object().key("values").begin_array();
    for (const std::string_view one : values) json_.begin_object().key("stringValue").text(one).end_object();
    json_.end_array().end_object();
    close();
  }
  void seconds(std::string_view name, std::optional<Micros> from, std::optional<Micros> to) {
    if (from && to) real(name, (std::max(*from, *to) - *from) / 1e6);
  }

 private:
  JsonWriter& open(std::string_view name) {
    return json_.begin_object().key("key").text(name).key("value").begin_object();
  }
  void close() { json_.end_object().end_object(); }

  JsonWriter& json_;
};

std::string_view operation_of(std::string_view route) {
  if (route == "/v1/completions") return "text_completion";
  return route == "/v1/embeddings" ? "embeddings" : "chat";
}

std::string_view kind_of(const bridge::Timeline::Preemption& one) { return one.swapped ? "swap" : "recompute"; }

// Begins a span with the members that all spans have. The caller writes times, attributes, events and status, and calls
// end_object().
void begin_span(JsonWriter& json, const Context& context, std::string_view id, std::string_view parent_id,
                std::string_view name, Kind kind) {
  json.begin_object().key("traceId").text(context.trace_id).key("spanId").text(id);
  if (!context.state.empty()) json.key("traceState").text(context.state);
  if (!parent_id.empty()) json.key("parentSpanId").text(parent_id);
  const bool remote = kind == Kind::kServer && !parent_id.empty();
  json.key("flags").number(kSampledFlag | kParentKnownFlag | (remote ? kParentRemoteFlag : 0));
  json.key("name").text(name).key("kind").number(static_cast<std::int64_t>(kind));
}

void write_times(JsonWriter& json, std::int64_t start_ns, std::int64_t end_ns) {
  json.key("startTimeUnixNano").text(std::to_string(start_ns));
  json.key("endTimeUnixNano").text(std::to_string(std::max(start_ns, end_ns)));
}

void write_asked(Attributes& out, const Generated& one) {
  out.text(name::kProvider, "quire");
  if (!one.model.empty()) {
    out.text(name::kRequestModel, one.model);
    out.text(name::kResponseModel, one.model);
  }
  out.text(name::kResponseId, one.id);
  if (one.max_tokens) out.number(name::kMaxTokens, *one.max_tokens);
  out.real(name::kTemperature, one.temperature);
  out.real(name::kTopP, one.top_p);
  if (one.top_k > 0) out.real(name::kTopK, static_cast<double>(one.top_k));  // a double in the conventions
  out.number(name::kChoices, one.n);
  out.number(name::kN, one.n);
  out.flag(name::kStream, one.streams);
}

void write_cause(Attributes& out, const requests::Phases& phases) {
  if (const char* cause = flow::name_of(phases.waited_for)) out.text(name::kQueueCause, cause);
}

void write_came_of_it(Attributes& out, const Generated& one, Micros length) {
  out.number(name::kNumSequences, one.num_sequences);
  out.number(name::kInputTokens, one.usage.prompt);
  out.number(name::kPromptTokens, one.usage.prompt);
  out.number(name::kOutputTokens, one.usage.completion);
  out.number(name::kCompletionTokens, one.usage.completion);
  if (!one.finish_reasons.empty()) out.texts(name::kFinishReasons, one.finish_reasons);
  if (!one.admitted) return;
  const requests::Phases& phases = one.phases;
  out.number(name::kCachedTokens, one.usage.cached);
  out.number(name::kPreemptions, one.num_preemptions);
  if (phases.drafted > 0) {
    out.number(name::kDrafted, phases.drafted);
    out.number(name::kAccepted, phases.accepted);
  }
  write_cause(out, phases);
  out.seconds(name::kTimeInQueue, Micros{0}, phases.first_start);
  out.seconds(name::kTimeToFirstToken, Micros{0}, phases.first_token);
  out.seconds(name::kTimeInPrefill, phases.first_start, phases.last_first_token);
  out.seconds(name::kTimeInDecode, phases.first_token, phases.last_token);
  out.seconds(name::kTimeInInference, phases.first_start, phases.last_token);
  out.seconds(name::kEndToEnd, Micros{0}, length);
}

std::string error_type_of(const RequestSpan& span) {
  if (span.generated && !span.generated->error_type.empty()) return std::string(span.generated->error_type);
  return span.status >= kCallersFault ? std::to_string(span.status) : std::string();
}

// True if the span's status is an error. By OpenTelemetry's rule for server spans a 4xx is none. An answer that broke
// off is one, although its status had been sent.
bool failed(const RequestSpan& span) {
  const bool broke_off = span.status < kCallersFault && span.generated && !span.generated->error_type.empty();
  return span.status >= kOurFault || broke_off;
}

void write_preemptions(JsonWriter& json, const RequestSpan& span) {
  const Generated& one = *span.generated;
  if (one.num_preemptions == 0) return;
  json.key("events").begin_array();
  for (const bridge::Timeline::Preemption& preemption : one.preemptions) {
    const std::int64_t at_ns = span.start_ns + preemption.at * kNanosPerMicro;
    json.begin_object().key("timeUnixNano").text(std::to_string(at_ns)).key("name").text(name::kPreemption);
    Attributes(json).text(name::kPreemptionKind, kind_of(preemption));
    json.end_object();
  }
  json.end_array();
  json.key("droppedEventsCount").number(std::uint64_t{one.num_preemptions} - one.preemptions.size());
}

void write_request(JsonWriter& json, const RequestSpan& span) {
  const bool known = std::ranges::find(kMethods, span.method) != kMethods.end();
  const std::string_view verb = known ? std::string_view(span.method) : "HTTP";
  const std::string title = fmt::format("{}{}{}", verb, span.route.empty() ? "" : " ", span.route);
  begin_span(json, span.context, span.context.span_id, span.context.parent_id, title, Kind::kServer);
  write_times(json, span.start_ns, span.end_ns);
  {
    Attributes out(json);
    out.text(name::kMethod, known ? std::string_view(span.method) : "_OTHER");
    if (!known) out.text(name::kMethodAsSent, span.method);
    if (!span.route.empty()) out.text(name::kRoute, span.route);
    out.text(name::kPath, span.path);
    out.text(name::kScheme, span.https ? "https" : "http");
    out.number(name::kStatus, std::int64_t{span.status});
    if (const std::string type = error_type_of(span); !type.empty()) out.text(name::kErrorType, type);
    out.text(name::kRequestId, span.request_id);
    if (span.generated) {
      out.text(name::kOperation, operation_of(span.route));
      write_asked(out, *span.generated);
      write_came_of_it(out, *span.generated, static_cast<Micros>((span.end_ns - span.start_ns) / kNanosPerMicro));
    }
  }
  if (span.generated) write_preemptions(json, span);
  if (failed(span)) json.key("status").begin_object().key("code").number(kStatusError).end_object();
  json.end_object();
}

// Writes the child spans of a request. Times are microseconds after its arrival; a part without an end ends with the
// request.
class Parts {
 public:
  Parts(JsonWriter& json, const RequestSpan& span) : json_(json), span_(span) {}

  template <typename Write>
  void part(std::string_view name, Micros from, std::optional<Micros> to, Write write) {
    const std::string id = http::random_id().substr(0, kChildIdDigits);
    begin_span(json_, span_.context, id, span_.context.span_id, name, Kind::kInternal);
    const std::int64_t end_ns = to ? span_.start_ns + *to * kNanosPerMicro : span_.end_ns;
    write_times(json_, span_.start_ns + from * kNanosPerMicro, std::min(end_ns, span_.end_ns));
    {
      Attributes out(json_);
      write(out);
    }
    json_.end_object();
  }

 private:
  JsonWriter& json_;
  const RequestSpan& span_;
};

void write_parts(JsonWriter& json, const RequestSpan& span) {
  const Generated& one = *span.generated;
  const requests::Phases& phases = one.phases;
  const auto ended = [&](std::optional<Micros> end) { return end ? end : phases.last_end; };
  Parts parts(json, span);
  parts.part("queue", 0, ended(phases.first_start), [&phases](Attributes& out) { write_cause(out, phases); });
  if (phases.first_start) {
    parts.part("prefill", *phases.first_start, ended(phases.last_first_token), [&one](Attributes& out) {
      out.number(name::kInputTokens, one.usage.prompt);
      out.number(name::kCachedTokens, one.usage.cached);
    });
  }
  if (phases.first_token) {
    parts.part("decode", *phases.first_token, ended(phases.last_token), [&one](Attributes& out) {
      out.number(name::kOutputTokens, one.usage.completion);
      if (one.phases.drafted == 0) return;
      out.number(name::kDrafted, one.phases.drafted);
      out.number(name::kAccepted, one.phases.accepted);
    });
  }
}

}  // namespace

std::string otlp_json(const Resource& resource, std::string_view version, std::span<const RequestSpan> spans) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("resourceSpans").begin_array().begin_object();
  json.key("resource").begin_object();
  {
    Attributes out(json);
    for (const auto& [name, value] : resource) out.text(name, value);
  }
  json.end_object().key("scopeSpans").begin_array().begin_object();
  json.key("scope").begin_object().key("name").text("quire").key("version").text(version).end_object();
  json.key("spans").begin_array();
  for (const RequestSpan& span : spans) {
    write_request(json, span);
    if (span.generated && span.generated->admitted) write_parts(json, span);
  }
  json.end_array().end_object().end_array().end_object().end_array().end_object();
  return text;
}

}  // namespace quire::api::tracing
