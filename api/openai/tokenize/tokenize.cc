#include "api/openai/tokenize/tokenize.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "api/openai/errors.h"
#include "api/openai/fields/list_fields.h"
#include "api/openai/fields/read_body.h"
#include "api/openai/json_values.h"
#include "api/openai/response_writer.h"

namespace quire::api::openai {
namespace {

using simdjson::dom::element;

struct TokenizeRequest : GenerationRequest {
  std::optional<std::string> prompt;
  bool return_token_strs = false;
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
    {"model", kTokenize, Shaped{"string", "a served name", read_model}, "the first one", "whose tokenizer; another one is answered 404", "wire/test_tokenize.py"},
    {"prompt", kTokenize, Shaped{"string", "up to 1048576 bytes", read_own<TokenizeRequest, read_text>}, "required", "the text", "wire/test_tokenize.py"},
    {"add_special_tokens", kTokenize, Flag{&GenerationRequest::add_special_tokens}, "true", "begin as a prompt does", "wire/test_tokenize.py"},
    {"return_token_strs", kTokenize, Shaped{"boolean", "true or false", read_own<TokenizeRequest, read_return_token_strs>}, "false", "tell each token's spelling in the vocabulary", "wire/test_tokenize.py"},
};
constexpr Field kDetokenizeFields[] = {
    {"model", kDetokenize, Shaped{"string", "a served name", read_model}, "the first one", "whose tokenizer; another one is answered 404", "wire/test_tokenize.py"},
    {"tokens", kDetokenize, Shaped{"array", "up to 262144 token ids", read_own<DetokenizeRequest, read_tokens>}, "required", "the ids", "wire/test_tokenize.py"},
};
// clang-format on

void add_warnings(const GenerationRequest& request, http::Response& response) {
  std::string warnings = warnings_of(request);
  if (!warnings.empty()) response.fields.push_back({"X-Quire-Warnings", std::move(warnings)});
}

}  // namespace

http::Response tokenize(const Services& services, const std::string& body) {
  TokenizeRequest request;
  const Result<Given> given = read_body(body, kTokenize, tokenize_fields(), services, request);
  if (!given) return error_response(given.error());
  if (!request.prompt) return error_response(invalid("prompt", "prompt is missing"));

  const std::vector<TokenId> ids = services.tokenizer->encode(*request.prompt, request.add_special_tokens);
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

http::Response detokenize(const Services& services, const std::string& body) {
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

}  // namespace quire::api::openai
