// Any bytes as the body of POST /v1/completions.
// Holds   what is accepted is within every range the engine relies on; a refusal is short JSON.
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "api/completions/completion_request.h"
#include "api/fields/read_body.h"
#include "api/wire/errors.h"
#include "core/base/check.h"
#include "tests/api/generation/fake_engine.h"

namespace {

using namespace quire::api;

void check_accepted(const CompletionRequest& request, const Services& services) {
  CHECK(!request.prompts.empty());
  CHECK_LE(request.prompts.size(), services.limits.max_prompts);
  for (const Prompt& prompt : request.prompts) {
    if (const auto* ids = std::get_if<std::vector<quire::TokenId>>(&prompt)) {
      CHECK(!ids->empty());
      for (const quire::TokenId id : *ids) CHECK(id >= 0 && static_cast<std::uint32_t>(id) < services.logits_width);
    }
  }
  CHECK(request.max_tokens != 0u || request.scores_prompt());
  CHECK(request.logprobs.value_or(0) <= services.limits.max_logprobs);
  CHECK(request.prompt_logprobs.value_or(0) <= services.limits.max_logprobs);
  CHECK_LE(request.rules.bias.size(), services.limits.max_logit_bias);
  CHECK_LE(request.bad_words.size(), services.limits.max_bad_words);
  CHECK(request.rules.repetition_penalty > 0.0f && request.rules.repetition_penalty <= 2.0f);
  CHECK(request.sampling.typical_p > 0.0f && request.sampling.typical_p <= 1.0f);
  for (const quire::TokenId id : request.stop_token_ids) {
    CHECK(id >= 0 && static_cast<std::uint32_t>(id) < services.logits_width);
  }
  for (const quire::TokenId id : request.rules.allowed) {
    CHECK(id >= 0 && static_cast<std::uint32_t>(id) < services.logits_width);
  }
  for (const char c : warnings_of(request)) CHECK(c >= ' ' && c <= '~');
  CHECK_LE(warnings_of(request).size(), 1200u);
  CHECK(request.sampling.temperature >= 0.0f && request.sampling.temperature <= 2.0f);
  CHECK(request.sampling.top_p > 0.0f && request.sampling.top_p <= 1.0f);
  CHECK(request.sampling.min_p >= 0.0f && request.sampling.min_p <= 1.0f);
  CHECK_GE(request.sampling.top_k, 0);
  CHECK_LE(request.stop.size(), services.limits.max_stop_strings);
  std::size_t bytes = 0;
  for (const std::string& stop : request.stop) {
    CHECK(!stop.empty());
    bytes += stop.size();
  }
  CHECK_LE(bytes, services.limits.max_stop_bytes);
  CHECK(request.stream || !request.include_usage);
  CHECK_GE(request.n, 1u);
  CHECK_GE(request.best_of, request.n);
  CHECK_LE(request.best_of * request.prompts.size(), services.limits.max_choices);
  CHECK_LE(request.sampling.num_top, quire::sample::kMaxTop);
  CHECK(!request.use_beam_search || (!request.stream && request.best_of <= services.max_num_seqs));
  CHECK(request.use_beam_search || request.length_penalty == 1.0);
  CHECK_LE(request.cache_salt.size(), services.limits.max_salt_bytes);
  CHECK_LE(request.speculation.max_nodes, 64u);
  CHECK_EQ(request.speculation.drafter, 0u);
  const quire::flow::KvPolicy& policy = request.kv_policy;
  if (policy.kind != quire::flow::KvPolicy::Kind::kFull) {
    CHECK(policy.sinks >= 16 && policy.sinks % 16 == 0);
    CHECK(policy.window >= 256 && policy.window % 256 == 0);
    CHECK_EQ(policy.budget % 16, 0u);
    CHECK_LE(policy.sinks + policy.window + policy.budget, services.max_model_len);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static test::World world;
  static const Services services = world.services();
  const std::string body(reinterpret_cast<const char*>(data), size);
  const quire::Result<CompletionRequest> parsed = parse_completion_request(body, services);
  if (parsed) {
    check_accepted(*parsed, services);
    return 0;
  }
  const std::string error = error_json(parsed.error());
  CHECK_LE(error.size(), 2000u);
  boost::json::parse(error);
  return 0;
}
