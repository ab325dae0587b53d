#include "api/chat/render.h"

#include <utility>

#include "api/chat/chat_request.h"
#include "api/chat/turn.h"
#include "api/openai/errors.h"
#include "api/openai/generation/render.h"
#include "api/openai/response_writer.h"

namespace quire::api::chat {

http::Response render(const Services& services, const std::string& body, Allowance& allowance) {
  Result<ChatRequest> request = parse_chat_request(body, services);
  if (!request) return openai::error_response(request.error());
  Result<TokenPrompt> prompt = prompt_of(*request, services, allowance);
  if (!prompt) return openai::error_response(prompt.error());
  const std::string text = std::move(prompt->text);
  Result<std::vector<std::vector<TokenId>>> prompts = Turn(services).begin(*request, std::move(*prompt));
  if (!prompts) return openai::error_response(prompts.error());
  const auto sequences = openai::sequences_to_tell(*request, std::move(*prompts), services);
  if (!sequences) return openai::error_response(sequences.error());

  std::string told;
  openai::JsonWriter json(told);
  json.begin_object();
  openai::write_rendered(json, "chatcmpl-", *request, sequences->front(), services);
  json.key("prompt").text(text).end_object();
  return openai::rendered_response(*request, std::move(told));
}

}  // namespace quire::api::chat
