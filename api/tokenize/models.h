// GET /v1/models, /v1/models/{name} and /tokenizer_info: the served model names and the tokenizer's settings.
// Thread  any; pure functions of the Services.
#pragma once

#include <string_view>

#include "api/services/services.h"
#include "api/wire/errors.h"
#include "api/wire/exchange.h"

namespace quire::api {

// JSON in OpenAI's or Anthropic's shape. show_model(): `encoded_name` is percent-encoded; 404 if it is not served.
http::Response list_models(const Services& services, ErrorShape shape);
http::Response show_model(const Services& services, std::string_view encoded_name, ErrorShape shape);

// The tokenizer's settings in vLLM's shape; 404 unless the server runs with --tokenizer-info on.
http::Response tokenizer_info(const Services& services);

}  // namespace quire::api
