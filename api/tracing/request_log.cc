#include "api/tracing/request_log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

namespace quire::api::tracing {
namespace {

double tenths(double milliseconds) { return std::round(milliseconds * 10) / 10; }

// The different ones, in order: "stop,length".
std::string reasons_of(const Generated& generated) {
  std::string out;
  std::vector<std::string_view> seen;
  for (const std::string_view reason : generated.finish_reasons) {
    if (std::ranges::find(seen, reason) != seen.end()) continue;
    seen.push_back(reason);
    out.append(out.empty() ? "" : ",").append(reason);
  }
  return out;
}

}  // namespace

LogFields fields_of(const EndedRequest& request) {
  LogFields fields;
  const auto add_text = [&fields](std::string_view key, std::string_view text) {
    if (!text.empty()) fields.emplace_back(key, text);
  };
  const auto add_since_arrival = [&](std::string_view key, TimePoint then) {
    if (request.arrival == TimePoint{} || then == TimePoint{}) return;
    fields.emplace_back(key, tenths(std::chrono::duration<double, std::milli>(then - request.arrival).count()));
  };
  add_text("id", request.id);
  add_text("method", log_safe(request.method));
  add_text("path", log_safe(request.path));
  fields.emplace_back("status", request.status);
  if (request.error != nullptr) {
    add_text("error", request.error->type);
    add_text("param", log_safe(request.error->param));
    add_text("message", log_safe(request.error->message));
  }
  if (const Generated* generated = request.generated) {
    add_text("model", generated->model);
    if (generated->admitted) {
      fields.emplace_back("stream", generated->streams);
      fields.emplace_back("prompt_tokens", generated->usage.prompt);
      fields.emplace_back("cached_tokens", generated->usage.cached);
      fields.emplace_back("completion_tokens", generated->usage.completion);
    }
    add_text("finish_reason", reasons_of(*generated));
    if (const auto started = generated->phases.first_start) {
      fields.emplace_back("queued_ms", tenths(static_cast<double>(*started) / 1000));
    }
  }
  add_since_arrival("first_ms", request.first_write);
  add_since_arrival("ms", request.end);
  add_text("key", request.key);
  add_text("client", request.client);
  add_text("trace_id", request.trace_id);
  add_text("labels", request.labels);
  add_text("content", request.content);
  return fields;
}

bool is_logged(LogRequests which, const EndedRequest& request) {
  if (which == LogRequests::kErrors) return request.status >= 400 || request.error != nullptr;
  return which != LogRequests::kOff;
}

}  // namespace quire::api::tracing
