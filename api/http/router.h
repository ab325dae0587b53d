// Which path and method is which handler: the whole surface of the server, in one table.
// Thread  an io thread.
// Fails   kUnauthorized and kForbidden as api/keys/gate.h says, before anything else is looked at; kNotFound,
//         kMethodNotAllowed with Allow, kUnsupportedMedia, kUnavailable: as responses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/admin/health.h"
#include "api/http/exchange.h"
#include "api/openai/errors.h"
#include "api/services.h"

namespace quire::api::http {

// Which part of the table a port has. Probes and metrics are on each.
enum class Surface : std::uint8_t {
  kEverything,  // the one port there is
  kClients,     // all but orders to the server: the admin port has those
  kAdmin,       // orders to the server
};

// The refusal that the head alone decides, before a byte of the body is read: key, path, method, draining, a full
// line. None: the request may go on; it knows its caller then. Its body counts as there where its head says so.
std::optional<Response> refusal_of_head(Request& request, const Services& services, admin::Serving serving,
                                        Surface surface);

// The same, and then whatever the path does with the whole request.
Reply route(Request request, const Services& services, admin::Serving serving, Surface surface = Surface::kEverything);

// Probes, scrapes and the version: they come every few seconds, are not worth a log line each, and wait for none.
bool is_probe(std::string_view path);

// The shape of errors of that path: Anthropic's on its paths, and on /v1/models where its client asks.
openai::ErrorShape shape_of(std::string_view path, bool of_anthropics_client);

// The path as it is written in the server's list of paths, a literal; empty: it is not there.
std::string_view route_of(std::string_view path);
// All that route_of() may say, but for probes.
std::vector<std::string> routes();

}  // namespace quire::api::http
