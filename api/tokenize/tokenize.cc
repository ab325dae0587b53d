#include "api/tokenize/tokenize.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "api/chat/assistant_message.h"
#include "api/chat/chat_request.h"
#include "api/fields/list_fields.h"
#include "api/fields/read_body.h"
#include "api/json/json_values.h"
#include "api/json/response_writer.h"
#include "api/wire/errors.h"
#include "api/wire/headers.h"

namespace quire::api {
namespace {

using simdjson::dom::element;

struct TokenizeRequest : GenerationRequest {
  std::optional<std::string> prompt;
  bool return_token_strs = false;
};

// Fields that are allowed only with `messages`. chat::parse_chat_request() reads and checks them.
constexpr const char* kOfMessages[] = {
    "add_generation_prompt", "continue_final_message", "chat_template_kwargs", "tools", "tool_choice", "documents",
    "reasoning_effort",
};

struct DetokenizeRequest : GenerationRequest {
  std::vector<TokenId> tokens;
};

Result<Done> read_text(const std::string& name, element value, const Services& services, TokenizeRequest& request) {
  Result<std::string> text = string_of(name, value, services.limits.max_tokenized_bytes);
  if (!text) return text.error();
  request.prompt = std::move(*text);
  return Done{};
}

Result<Done> leave_to_chat(const std::string&, element, const Services&, GenerationRequest&) { return Done{}; }

Result<Done> read_return_token_strs(const std::string& name, element value, const Services&, TokenizeRequest& request) {
  const Result<bool> flag = boolean_of(name, value);
  if (!flag) return flag.error();
  request.return_token_strs = *flag;
  return Done{};
}

Result<Done> read_tokens(const std::string& name, element value, const Services& services, DetokenizeRequest& request) {
  Result<std::vector<TokenId>> ids = token_ids_of(name, value, services, services.limits.max_detokenized_tokens);
  if (!ids) return ids.error();
  request.tokens = std::move(*ids);
  return Done{};
}

// clang-format off
constexpr Field kTokenizeFields[] = {
    {"model", kTokenize, Shaped{"string", "a served name", read_model}, "the first served name", "model whose tokenizer is used; a name that is not served gets 404", "wire/test_tokenize.py"},
    {"prompt", kTokenize, Shaped{"string", "up to 1048576 bytes", read_own<TokenizeRequest, read_text>}, "required without `messages`", "the text", "wire/test_tokenize.py"},
    {"messages", kTokenize, Shaped{"[ChatMessage]", "messages as in /v1/chat/completions", leave_to_chat}, "required without `prompt`", "the conversation", "wire/test_tokenize.py"},
    {"add_special_tokens", kTokenize, Flag{&GenerationRequest::add_special_tokens}, "prompt: true; messages: false", "add the tokenizer's special tokens, such as BOS", "wire/test_tokenize.py"},
    {"add_generation_prompt", kTokenize, Shaped{"boolean", "true or false", leave_to_chat}, "true", "with `messages`: as in /v1/chat/completions", "api/tokenize/tokenize_test.cc"},
    {"continue_final_message", kTokenize, Shaped{"boolean", "true or false", leave_to_chat}, "false", "with `messages`: as in /v1/chat/completions", "api/tokenize/tokenize_test.cc"},
    {"chat_template_kwargs", kTokenize, Shaped{"object", "names and values", leave_to_chat}, "none", "with `messages`: as in /v1/chat/completions", "api/tokenize/tokenize_test.cc"},
    {"tools", kTokenize, Shaped{"[Tool]", "functions", leave_to_chat}, "none", "with `messages`: as in /v1/chat/completions", "api/tokenize/tokenize_test.cc"},
    {"tool_choice", kTokenize, Shaped{"string|object", "`none`, `auto`, `required`, or a function", leave_to_chat}, "`auto` with tools", "with `messages`: as in /v1/chat/completions", "api/tokenize/tokenize_test.cc"},
    {"documents", kTokenize, Shaped{"[object]", "objects", leave_to_chat}, "none", "with `messages`: as in /v1/chat/completions", "api/tokenize/tokenize_test.cc"},
    {"reasoning_effort", kTokenize, Shaped{"string", "`none`, `minimal`, `low`, `medium`, `high`, `xhigh`", leave_to_chat}, "the template's", "with `messages`: as in /v1/chat/completions", "api/tokenize/tokenize_test.cc"},
    {"return_token_strs", kTokenize, Shaped{"boolean", "true or false", read_own<TokenizeRequest, read_return_token_strs>}, "false", "return each token's spelling in the vocabulary", "wire/test_tokenize.py"},
};
constexpr Field kDetokenizeFields[] = {
    {"model", kDetokenize, Shaped{"string", "a served name", read_model}, "the first served name", "model whose tokenizer is used; a name that is not served gets 404", "wire/test_tokenize.py"},
    {"tokens", kDetokenize, Shaped{"[integer]", "up to 262144 token ids", read_own<DetokenizeRequest, read_tokens>}, "required", "the token ids", "wire/test_tokenize.py"},
};
// clang-format on

void add_warnings(const GenerationRequest& request, http::Response& response) {
  std::string warnings = warnings_of(request);
  if (!warnings.empty()) response.fields.push_back({http::kWarningsHeader, std::move(warnings)});
}

// Token ids of `prompt`, or of `messages` as /v1/chat/completions would run them.
Result<std::vector<TokenId>> ids_of(const std::string& body, const TokenizeRequest& request, const Given& given,
                                    const Services& services, Allowance& allowance) {
  if (!given("messages")) {
    if (!request.prompt) return invalid("prompt", "prompt is missing");
    for (const char* field : kOfMessages) {
      if (given(field)) return invalid(field, std::string(field) + " is allowed only with messages, not with prompt");
    }
    return services.tokenizer->encode(*request.prompt, request.add_special_tokens, {.allowance = &allowance});
  }
  if (request.prompt) return invalid("messages", "messages and prompt cannot be combined: leave one of them out");
  const Result<chat::ChatRequest> conversation = chat::parse_chat_request(body, services);
  if (!conversation) return conversation.error();
  Result<chat::TokenPrompt> prompt = chat::prompt_of(*conversation, services, allowance, chat::AnyLength::kYes);
  if (!prompt) return prompt.error();
  return std::move(prompt->ids);
}

}  // namespace

http::Response tokenize(const Services& services, const std::string& body, Allowance& allowance) {
  TokenizeRequest request;
  const Result<Given> given = read_body(body, kTokenize, tokenize_fields(), services, request);
  if (!given) return error_response(given.error());
  const Result<std::vector<TokenId>> reported = ids_of(body, request, *given, services, allowance);
  if (!reported) return error_response(reported.error());

  const std::vector<TokenId>& ids = *reported;
  http::Response response;
  JsonWriter json(response.body);
  json.begin_object().key("count").number(std::uint64_t{ids.size()});
  json.key("max_model_len").number(std::uint64_t{services.max_model_len}).key("tokens").begin_array();
  for (const TokenId id : ids) json.number(std::int64_t{id});
  json.end_array().key("token_strs");
  if (request.return_token_strs) {
    json.begin_array();
    for (const TokenId id : ids) json.text(services.tokenizer->piece(id));
    json.end_array();
  } else {
    json.null();
  }
  json.end_object();
  add_warnings(request, response);
  return response;
}

http::Response detokenize(const Services& services, const std::string& body, Allowance&) {
  DetokenizeRequest request;
  const Result<Given> given = read_body(body, kDetokenize, detokenize_fields(), services, request);
  if (!given) return error_response(given.error());
  if (!(*given)("tokens")) return error_response(invalid("tokens", "tokens is missing"));

  http::Response response;
  JsonWriter json(response.body);
  json.begin_object().key("prompt").text(services.tokenizer->decode(request.tokens, /*skip_special_tokens=*/false));
  json.end_object();
  add_warnings(request, response);
  return response;
}

std::span<const Field> tokenize_fields() { return kTokenizeFields; }
std::span<const Field> detokenize_fields() { return kDetokenizeFields; }

}  // namespace quire::api
