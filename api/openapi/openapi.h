// GET /openapi.json: the server's HTTP API as an OpenAPI document. Request bodies are described from the
// field tables that also parse them, answers from the tables in api/openapi/shapes.
// Thread  any; a pure function of the Services: limits, version, and whether there are API keys.
// Source  OpenAPI 3.1.0; JSON Schema 2020-12.
#pragma once

#include "api/services/services.h"
#include "api/wire/exchange.h"

namespace quire::api {

http::Response openapi(const Services& services);

}  // namespace quire::api
