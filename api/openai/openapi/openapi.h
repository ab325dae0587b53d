// GET /openapi.json: the whole surface of the server as an OpenAPI document; bodies are described by the tables that
// read them.
// Thread  any; a pure function of the Services' limits and version.
// Source  OpenAPI 3.1.0; JSON Schema 2020-12.
#pragma once

#include "api/http/exchange.h"
#include "api/services.h"

namespace quire::api::openai {

http::Response openapi(const Services& services);

}  // namespace quire::api::openai
