// GET /v1/models, /v1/models/{name} and /tokenizer_info: what is served.
// Thread  any; pure functions of the Services.
#pragma once

#include <string_view>

#include "api/http/exchange.h"
#include "api/openai/errors.h"
#include "api/services.h"

namespace quire::api::openai {

// In OpenAI's shape or Anthropic's.
http::Response list_models(const Services& services, ErrorShape shape);
http::Response show_model(const Services& services, std::string_view encoded_name,
                          ErrorShape shape);  // 404: not served

// The tokenizer's settings, as vLLM tells them; 404 unless the operator wants them told.
http::Response tokenizer_info(const Services& services);

}  // namespace quire::api::openai
