#include "api/chat/render_chat.h"

#include <utility>

#include "api/chat/assistant_message.h"
#include "api/chat/chat_request.h"
#include "api/generation/render.h"
#include "api/json/response_writer.h"
#include "api/wire/errors.h"

namespace quire::api::chat {

http::Response render(const Services& services, const std::string& body, Allowance& allowance) {
  Result<ChatRequest> request = parse_chat_request(body, services);
  if (!request) return error_response(request.error());
  Result<TokenPrompt> prompt = prompt_of(*request, services, allowance);
  if (!prompt) return error_response(prompt.error());
  const std::string text = std::move(prompt->text);
  Result<std::vector<std::vector<TokenId>>> prompts = AssistantMessage(services).begin(*request, std::move(*prompt));
  if (!prompts) return error_response(prompts.error());
  const auto sequences = sequences_to_render(*request, std::move(*prompts), services);
  if (!sequences) return error_response(sequences.error());

  std::string reported;
  JsonWriter json(reported);
  json.begin_object();
  write_rendered(json, "chatcmpl-", *request, sequences->front(), services);
  json.key("prompt").text(text).end_object();
  return rendered_response(*request, std::move(reported));
}

}  // namespace quire::api::chat
