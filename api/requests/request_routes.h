// GET /v1/requests/{id}/explain and DELETE /v1/requests/{id}: what became of a request, and an end to it.
// Shape   {id} is the request's X-Request-Id, or an answer's id made of it (cmpl-ID, chatcmpl-ID, resp_ID, …). The key
//         comes as X-Request-Key, or as Authorization: Bearer. Where the server has API keys it belongs to the one that it came
//         with, whose holder needs no X-Request-Key, and to administrators.
// Thread  any; neither waits for the engine.
// Fails   kNotFound alike for an id that is unknown, a key that is wrong or missing, and, of DELETE, a request that has
//         ended.
#pragma once

#include <string_view>

#include "api/http/exchange.h"
#include "api/services.h"

namespace quire::api::requests {

http::Response explain(const Services& services, std::string_view id, const http::Request& request);
http::Response cancel(const Services& services, std::string_view id, const http::Request& request);

}  // namespace quire::api::requests
