// Which path and method is which handler: the whole surface of the server, in one table.
// Thread  an io thread.
// Fails   kNotFound, kMethodNotAllowed with Allow, kUnsupportedMedia, kUnavailable: as responses.
#pragma once

#include "api/admin/health.h"
#include "api/http/exchange.h"
#include "api/services.h"

namespace quire::api::http {

Reply route(Request request, const Services& services, admin::Serving serving);

// Probes and scrapes: they come every few seconds and are not worth a log line each.
bool is_probe(std::string_view path);

}  // namespace quire::api::http
