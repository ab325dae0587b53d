// The body of POST /v1/completions, read and range-checked. Plain data.
// Rules   what we honour is a field below; what OpenAI or vLLM know and we do not yet is accepted at its neutral value
//         and answered 400 at any other; everything else is answered 400. Every refusal names its field.
// Thread  any; pure functions of the body and the Services.
// Fails   kInvalidArgument with param; kNotFound when the model is not served. Nothing is allocated past the limits.
// Source  OpenAI's API reference for completions; names and neutral values of vLLM's CompletionRequest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/services.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/flow/request.h"
#include "core/sample/params.h"

namespace quire::api::openai {

using Prompt = std::variant<std::string, std::vector<TokenId>>;

struct CompletionRequest {
  std::string model;            // one of the served names
  std::vector<Prompt> prompts;  // [1 .. max_prompts]; ids are in [0, logits_width)
  std::optional<std::uint32_t> max_tokens;
  sample::Params
      sampling;  // the server's defaults where the body says nothing; neither seed nor choice_index is set here
  std::optional<std::int64_t> seed;
  std::vector<std::string> stop;  // none of them empty
  bool stream = false;
  bool include_usage = false;
  bool ignore_eos = false;

  std::uint32_t n = 1;           // answers to each prompt
  std::uint32_t best_of = 1;     // n .. max_choices: sequences that run for each prompt, or the width of its search
  bool use_beam_search = false;  // then `sampling` is greedy, with the candidates that a search of that width needs
  double length_penalty = 1.0;   // 1 without a search

  std::string cache_salt;  // empty: none
  std::int32_t priority = 0;
  std::optional<std::uint32_t> deadline_ms;  // after arrival
  flow::KvPolicy kv_policy;                  // fits max_model_len
};

Result<CompletionRequest> parse_completion_request(const std::string& body, const Services& services);

}  // namespace quire::api::openai
