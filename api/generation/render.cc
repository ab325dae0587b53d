#include "api/generation/render.h"

#include <string>
#include <utility>

#include "api/fields/read_body.h"
#include "api/sequences/sequences.h"
#include "api/wire/headers.h"
#include "api/wire/response_head.h"

namespace quire::api {
namespace {

void write_sampling(JsonWriter& json, const GenerationRequest& request, const flow::Request& sequence) {
  const sample::Params& sampling = sequence.sampling;
  const auto write_optional = [&json](std::string_view key, const auto& value) {
    json.key(key);
    if (value) {
      json.number(std::int64_t{*value});
    } else {
      json.null();
    }
  };
  json.begin_object().key("n").number(std::uint64_t{request.n});
  json.key("temperature").number(sampling.temperature).key("top_p").number(sampling.top_p);
  json.key("top_k").number(std::int64_t{sampling.top_k}).key("min_p").number(sampling.min_p);
  write_optional("seed", request.seed);
  json.key("max_tokens").number(std::uint64_t{sequence.max_tokens});
  json.key("min_tokens").number(std::uint64_t{request.rules.min_tokens});
  json.key("repetition_penalty").number(request.rules.repetition_penalty);
  json.key("frequency_penalty").number(request.rules.frequency_penalty);
  json.key("presence_penalty").number(request.rules.presence_penalty);
  json.key("stop").begin_array();
  for (const std::string& stop : request.stop) json.text(stop);
  json.end_array().key("stop_token_ids").begin_array();
  for (const TokenId id : request.stop_token_ids) json.number(std::int64_t{id});
  json.end_array().key("ignore_eos").boolean(request.ignore_eos);
  write_optional("logprobs", request.logprobs);
  write_optional("prompt_logprobs", request.prompt_logprobs);
  json.key("skip_special_tokens").boolean(request.skip_special_tokens).end_object();
}

}  // namespace

Result<std::vector<flow::Request>> sequences_to_render(const GenerationRequest& request,
                                                       std::vector<std::vector<TokenId>> prompts,
                                                       const Services& services) {
  SequenceFacts facts;
  facts.seed = request.seed.value_or(0);
  Result<Sequences> all = sequences_of(request, std::move(prompts), std::move(facts), services);
  if (!all) return all.error();
  std::erase_if(all->sequences, [](const flow::Request& one) { return one.sampling.choice_index != 0; });
  return std::move(all->sequences);
}

void write_rendered(JsonWriter& json, std::string_view id_prefix, const GenerationRequest& request,
                    const flow::Request& sequence, const Services& services) {
  const std::string id = request.request_id.empty() ? http::random_id() : request.request_id;
  json.key("request_id").text(std::string(id_prefix) + id).key("token_ids").begin_array();
  for (const TokenId token : sequence.prompt) json.number(std::int64_t{token});
  json.end_array().key("features").null().key("sampling_params");
  write_sampling(json, request, sequence);
  json.key("model").text(request.model).key("stream").boolean(request.stream).key("cache_salt");
  if (request.cache_salt.empty()) {
    json.null();
  } else {
    json.text(request.cache_salt);
  }
  json.key("priority").number(std::int64_t{sequence.priority});
  json.key("count").number(std::uint64_t{sequence.prompt.size()});
  json.key("max_model_len").number(std::uint64_t{services.max_model_len});
}

http::Response rendered_response(const GenerationRequest& request, std::string body) {
  http::Response response;
  response.body = std::move(body);
  std::string warnings = warnings_of(request);
  if (!warnings.empty()) response.fields.push_back({http::kWarningsHeader, std::move(warnings)});
  return response;
}

}  // namespace quire::api
