// GET /v1/requests/{id}/explain and DELETE /v1/requests/{id}: the timeline of a request, and its cancellation; and the
// same below /admin/, for operators.
// Shape   {id} is the request's X-Request-Id, or the answer's id made from it (cmpl-ID, chatcmpl-ID, resp_ID, …). The
//         request key is sent as X-Request-Key or, on a server without API keys, as Authorization: Bearer. On a server
//         with API keys a request belongs to the API key that it was sent with: the holder of that key and
//         administrators need no request key. Below /admin/ nobody does.
// Thread  any; neither waits for the engine.
// Fails   kNotFound for an unknown id, a wrong or missing key and, of DELETE, a request that has ended: all in the same
//         words.
#pragma once

#include <string_view>

#include "api/services/services.h"
#include "api/wire/exchange.h"

namespace quire::api::requests {

http::Response explain(const Services& services, std::string_view id, const http::Request& request);
http::Response cancel(const Services& services, std::string_view id, const http::Request& request);
// Of any request: the path has been checked to be an operator's.
http::Response explain_to_operator(const Services& services, std::string_view id);
http::Response cancel_by_operator(const Services& services, std::string_view id);

}  // namespace quire::api::requests
