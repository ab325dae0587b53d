#include "app/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/model/decoder_runner.h"
#include "core/speculate/agreement.h"

namespace quire::app {
namespace {

using speculate::Agreement;
using speculate::AgreementText;

// What any model of a language can go on from.
constexpr std::string_view kPrompt = "Once upon a time there was";

AgreementText text_for(const SelfTestParts& parts) {
  AgreementText text;
  text.prompt = parts.tokenizer.encode(kPrompt, /*add_special_tokens=*/true);
  text.prompt.resize(std::min<std::size_t>(text.prompt.size(), parts.max_rows));
  text.block_tokens = parts.block_tokens;
  const auto num_prompt = static_cast<std::uint32_t>(text.prompt.size());
  text.num_guesses = std::min(text.num_guesses, parts.max_model_len - std::min(parts.max_model_len, num_prompt));
  return text;
}

Agreement measure(speculate::Drafter& drafter, const speculate::Needs& needs, const AgreementText& text,
                  const SelfTestParts& parts) REQUIRES(engine_role) {
  model::RunnerLimits limits;
  limits.max_rows = static_cast<std::uint32_t>(text.prompt.size());
  limits.max_sequences = 1;
  limits.block_tokens = text.block_tokens;
  limits.num_blocks = text.num_blocks();
  limits.kv_dtype = parts.kv_dtype;
  limits.captures = {needs.boundaries, needs.final_norm};
  model::DecoderRunner runner(parts.ops, parts.target, limits);
  return measure_agreement(drafter, runner, text, parts.clock);
}

// How another reading of the head would do, where that is clearly better; else empty.
std::string better_reading(speculate::Drafter& drafter, const Agreement& seen, TimePoint until,
                           const AgreementText& text, const SelfTestParts& parts) REQUIRES(engine_role) {
  if (seen.sure()) return "";
  std::string best;
  Agreement most = seen;
  for (const auto& other : speculate::other_readings(drafter.needs().boundaries, parts.target.config().num_layers)) {
    if (parts.clock.now() >= until) break;  // a slow model: what was seen has to do
    const Agreement as_other = measure(drafter, {.boundaries = other.boundaries, .final_norm = false}, text, parts);
    if (!seen.clearly_less_than(as_other) || as_other.share() <= most.share()) continue;
    most = as_other;
    best = fmt::format("{} of {} are right with {}", as_other.num_right, as_other.num_guesses, other.what);
  }
  return best;
}

Agreement test_one(speculate::Drafter& drafter, const AgreementText& text, const SelfTestParts& parts)
    REQUIRES(engine_role) {
  constexpr std::string_view kCause =
      "look at eagle_aux_hidden_state_layer_ids in its config.json, and at what it was made for. No answer changes by "
      "it; guessing costs time";
  const TimePoint until = parts.clock.now() + text.limit;
  const Agreement seen = measure(drafter, drafter.needs(), text, parts);
  const std::string better = better_reading(drafter, seen, until, text, parts);
  const std::string told = fmt::format("drafter={} right={} of={}", drafter.method(), seen.num_right, seen.num_guesses);
  if (!better.empty()) {
    log_warn("draft_self_test", "{}, but {}: it takes the states of other layers than it was made for; {}", told,
             better, kCause);
  } else if (seen.too_low()) {
    log_warn(
        "draft_self_test",
        "{}: one that was made for this model guesses more than one in five of its tokens. It may be another model's, "
        "or the layers whose states it takes are off by one or in another order: {}",
        told, kCause);
  } else {
    log_info("draft_self_test", "{}", told);
  }
  return seen;
}

}  // namespace

void self_test(std::span<speculate::Drafter* const> drafters, const SelfTestParts& parts) {
  const AgreementText text = text_for(parts);
  if (text.prompt.empty() || text.num_guesses == 0) {
    log_info("draft_self_test", "skipped: sequences of {} tokens have no room for it", parts.max_model_len);
    return;
  }
  double least = 1.0;
  for (speculate::Drafter* drafter : drafters) {
    least = std::min(least, test_one(*drafter, text, parts).share());
  }
  if (!drafters.empty()) parts.metrics.spec_agreement.set(least);
}

}  // namespace quire::app
