// Spans in the JSON encoding of OTLP: the body of POST /v1/traces.
// Shape   {"resourceSpans":[{"resource","scopeSpans":[{"scope","spans":[…]}]}]}; ids in hexadecimal, 64-bit numbers as
//         strings, enums as numbers. A request is a span of kind server, with the children `queue`, `prefill` and
//         `decode`.
// Thread  any; pure functions, except for the children's ids, which are random.
// Source  OpenTelemetry protocol 1.5, section "JSON Protobuf Encoding"; names of attributes: attribute_names.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/wire/request_span.h"

namespace quire::api::tracing {

// Attributes of the exporting service: service.name and the like.
using Resource = std::vector<std::pair<std::string, std::string>>;

std::string otlp_json(const Resource& resource, std::string_view version, std::span<const RequestSpan> spans);

}  // namespace quire::api::tracing
