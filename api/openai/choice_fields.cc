#include "api/openai/choice_fields.h"

#include <algorithm>
#include <utility>

#include "api/openai/json_values.h"

namespace quire::api::openai {
namespace {

using simdjson::dom::element;

constexpr double kMaxLengthPenalty = 5.0;  // tokens ^ penalty stays far from the ends of a float

// A search ranks by log probability: what would bend the distribution is refused, not passed over.
Result<Done> check_ranking(const CompletionRequest& request, const Given& given) {
  const sample::Params& sampling = request.sampling;
  const std::pair<const char*, bool> neutral[] = {
      {"temperature", sampling.temperature == 0.0f || sampling.temperature == 1.0f},
      {"top_p", sampling.top_p == 1.0f},
      {"top_k", sampling.top_k == 0},
      {"min_p", sampling.min_p == 0.0f},
  };
  for (const auto& [name, is_neutral] : neutral) {
    if (given(name) && !is_neutral) {
      return invalid(name, std::string(name) +
                               " has no place in a beam search, which ranks by log probability: "
                               "leave it out");
    }
  }
  return Done{};
}

Result<Done> settle_search(CompletionRequest& request, const Services& services, const char* wide, const Given& given) {
  if (request.stream) {
    return invalid("use_beam_search", "use_beam_search cannot be streamed: a search tells its results at the end");
  }
  if (!request.stop.empty()) {
    return invalid("stop", "stop has no place in a beam search, which compares whole answers: leave it out");
  }
  if (request.kv_policy.kind != flow::KvPolicy::Kind::kFull) {
    return invalid("kv_policy", "kv_policy has no place in a beam search, whose hypotheses share their blocks");
  }
  // As many continuations of a hypothesis are looked at as go on, and one more for each token that ends an answer.
  const std::size_t ends = request.ignore_eos ? 0 : services.eos.size();
  const std::size_t most = std::min<std::size_t>(sample::kMaxTop, services.logits_width);
  const std::size_t widest = std::min<std::size_t>(services.max_num_seqs, most - std::min(most, ends));
  if (request.best_of > widest) {
    return invalid(wide, std::string(wide) + " may be at most " + std::to_string(widest) +
                             " with use_beam_search: its hypotheses run at the same time");
  }
  if (Result<Done> ranked = check_ranking(request, given); !ranked) return ranked.error();
  request.sampling = sample::Params{};
  request.sampling.temperature = 0.0f;
  return Done{};
}

}  // namespace

Result<Done> read_n(const std::string& name, element value, const Services& services, CompletionRequest& request) {
  const Result<std::int64_t> number = integer_of(name, value, 1, services.limits.max_choices);
  if (!number) return number.error();
  request.n = static_cast<std::uint32_t>(*number);
  return Done{};
}

Result<Done> read_best_of(const std::string& name, element value, const Services& services,
                          CompletionRequest& request) {
  const Result<std::int64_t> number = integer_of(name, value, 1, services.limits.max_choices);
  if (!number) return number.error();
  request.best_of = static_cast<std::uint32_t>(*number);
  return Done{};
}

Result<Done> read_use_beam_search(const std::string& name, element value, const Services&, CompletionRequest& request) {
  const Result<bool> flag = boolean_of(name, value);
  if (!flag) return flag.error();
  request.use_beam_search = *flag;
  return Done{};
}

Result<Done> read_length_penalty(const std::string& name, element value, const Services&, CompletionRequest& request) {
  const Result<double> number = number_of(name, value, "from -5 to 5",
                                          [](double x) { return x >= -kMaxLengthPenalty && x <= kMaxLengthPenalty; });
  if (!number) return number.error();
  request.length_penalty = *number;
  return Done{};
}

Result<Done> settle_choices(CompletionRequest& request, const Services& services, const Given& given) {
  if (!given("best_of")) request.best_of = request.n;
  const char* wide = given("best_of") ? "best_of" : "n";
  if (request.best_of < request.n) {
    return invalid("best_of", "best_of must be at least n, which is " + std::to_string(request.n));
  }
  const std::size_t num_choices = request.prompts.size() * request.best_of;
  if (num_choices > services.limits.max_choices) {
    return invalid(wide, std::string(wide) + " is " + std::to_string(request.best_of) + " for each of " +
                             std::to_string(request.prompts.size()) + " prompts; one request may ask for " +
                             std::to_string(services.limits.max_choices) + " choices in all: send several requests");
  }
  if (request.use_beam_search) return settle_search(request, services, wide, given);
  if (request.length_penalty != 1.0) {
    return invalid("length_penalty", "length_penalty belongs to a beam search: it needs \"use_beam_search\": true");
  }
  if (request.stream && request.best_of > request.n) {
    return invalid("best_of", "best_of above n cannot be streamed: which answers are the best is known at the end");
  }
  request.sampling.logprob = request.best_of > request.n;
  return Done{};
}

}  // namespace quire::api::openai
