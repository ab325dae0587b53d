#include "api/chat/render.h"

#include "api/chat/chat_request.h"
#include "api/chat/turn.h"
#include "api/openai/errors.h"
#include "api/openai/response_writer.h"

namespace quire::api::chat {

http::Response render(const Services& services, const std::string& body) {
  const Result<ChatRequest> request = parse_chat_request(body, services);
  if (!request) return openai::error_response(request.error());
  const Result<TokenPrompt> prompt = prompt_of(*request, services);
  if (!prompt) return openai::error_response(prompt.error());

  http::Response response;
  openai::JsonWriter json(response.body);
  json.begin_object().key("model").text(request->model).key("prompt").text(prompt->text);
  json.key("prompt_token_ids").begin_array();
  for (const TokenId id : prompt->ids) json.number(std::int64_t{id});
  json.end_array().key("count").number(std::uint64_t{prompt->ids.size()});
  json.key("max_model_len").number(std::uint64_t{services.max_model_len}).end_object();
  return response;
}

}  // namespace quire::api::chat
