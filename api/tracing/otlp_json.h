// Spans as OTLP takes them: the body of POST /v1/traces in JSON.
// Shape   {"resourceSpans":[{"resource","scopeSpans":[{"scope","spans":[…]}]}]}; ids in hexadecimal, 64-bit numbers as strings,
//         enums as numbers. A request is a span of kind server; `queue`, `prefill` and `decode` are its children.
// Thread  any; pure functions, but for the children's ids, which are random.
// Source  OpenTelemetry protocol 1.5, section "JSON Protobuf Encoding"; names of attributes: attribute_names.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/tracing/request_span.h"

namespace quire::api::tracing {

// Who tells: service.name and the like.
using Resource = std::vector<std::pair<std::string, std::string>>;

std::string otlp_json(const Resource& resource, std::string_view version, std::span<const RequestSpan> spans);

}  // namespace quire::api::tracing
