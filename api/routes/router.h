// The routing table of the server: the handler of each path and method.
// Thread  an io thread.
// Fails   as responses: kUnauthorized and kForbidden of api/limits/gate.h, which are checked first; kNotFound;
//         kMethodNotAllowed with Allow; kUnavailable; kQueueFull, if the waiting line is full; kForbidden, for orders
//         from web pages of other origins; kUnsupportedMedia; kInvalidArgument, of X-Request-Key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/admin/health.h"
#include "api/services/services.h"
#include "api/wire/errors.h"
#include "api/wire/exchange.h"

namespace quire::api::http {

// The part of the table that a port serves. Every port serves probes and metrics.
enum class Surface : std::uint8_t {
  kEverything,  // of the only port
  kClients,     // of the main port beside an admin port: all but admin orders
  kAdmin,       // of the admin port: admin orders
};

// The refusal that the head alone decides, before a byte of the body is read: key, path, method, loading or draining, a
// full waiting line, media type. None: the request may go on, and its caller is set. A body that the head announces
// counts as present.
std::optional<Response> refusal_of_head(Request& request, const Services& services, admin::Serving serving,
                                        Surface surface);

// Checks the same, then runs the handler of the path with the whole request.
Reply route(Request request, const Services& services, admin::Serving serving, Surface surface = Surface::kEverything);

// True for probes, scrapes and the version: they come every few seconds, are not logged, and wait for nothing.
bool is_probe(std::string_view path);

// The shape of a path's errors: Anthropic's on /v1/messages and below, and on /v1/models and below if the client is
// Anthropic's; else OpenAI's.
ErrorShape shape_of(std::string_view path, bool of_anthropics_client);

// The pattern that a path matches, such as /v1/models/{model}, a literal; empty: none.
std::string_view route_of(std::string_view path);
// All patterns that route_of() returns, except those of probes.
std::vector<std::string> routes();

}  // namespace quire::api::http
