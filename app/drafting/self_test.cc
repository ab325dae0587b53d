#include "app/drafting/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/model/run/decoder_runner.h"
#include "core/speculate/agreement.h"

namespace quire::app {
namespace {

using speculate::Agreement;
using speculate::AgreementText;

// Any language model can continue it.
constexpr std::string_view kPrompt = "Once upon a time there was";

AgreementText text_for(const SelfTestParts& parts) {
  AgreementText text;
  text.prompt = parts.tokenizer.encode(kPrompt, /*add_special_tokens=*/true);
  text.prompt.resize(std::min<std::size_t>(text.prompt.size(), parts.max_rows));
  text.block_tokens = parts.block_tokens;
  const auto num_prompt = static_cast<std::uint32_t>(text.prompt.size());
  text.num_draft_tokens =
      std::min(text.num_draft_tokens, parts.max_model_len - std::min(parts.max_model_len, num_prompt));
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

// Text on another reading of the head, if one is clearly better; else empty.
std::string better_reading(speculate::Drafter& drafter, const Agreement& seen, TimePoint until,
                           const AgreementText& text, const SelfTestParts& parts) REQUIRES(engine_role) {
  if (seen.sure()) return "";
  std::string best;
  Agreement most = seen;
  for (const auto& other : speculate::other_readings(drafter.needs().boundaries, parts.target.config().num_layers())) {
    if (parts.clock.now() >= until) break;  // a slow model: the readings tested so far must do
    const Agreement as_other = measure(drafter, {.boundaries = other.boundaries, .final_norm = false}, text, parts);
    if (!seen.clearly_less_than(as_other) || as_other.share() <= most.share()) continue;
    most = as_other;
    best = fmt::format("{} of {} draft tokens are right with {}", as_other.num_right, as_other.num_draft_tokens,
                       other.what);
  }
  return best;
}

Agreement test_one(speculate::Drafter& drafter, const AgreementText& text, const SelfTestParts& parts)
    REQUIRES(engine_role) {
  constexpr std::string_view kCause =
      "check eagle_aux_hidden_state_layer_ids in its config.json, and the model it was trained for. Answers do not "
      "change; drafting only costs time";
  const TimePoint until = parts.clock.now() + text.limit;
  const Agreement seen = measure(drafter, drafter.needs(), text, parts);
  const std::string better = better_reading(drafter, seen, until, text, parts);
  const std::string reported =
      fmt::format("drafter={} right={} of={}", drafter.method(), seen.num_right, seen.num_draft_tokens);
  if (!better.empty()) {
    log_warn("draft_self_test", "{}, but {}: it reads states of other layers than it was trained on; {}", reported,
             better, kCause);
  } else if (seen.too_low()) {
    log_warn("draft_self_test",
             "{}: a head trained for this model drafts more than one in five tokens correctly. It may belong to "
             "another model, or the layers whose states it reads are off by one or in another order: {}",
             reported, kCause);
  } else {
    log_info("draft_self_test", "{}", reported);
  }
  return seen;
}

}  // namespace

void self_test(std::span<speculate::Drafter* const> drafters, const SelfTestParts& parts) {
  const AgreementText text = text_for(parts);
  if (text.prompt.empty() || text.num_draft_tokens == 0) {
    log_info("draft_self_test", "skipped: the test needs longer sequences than {} tokens", parts.max_model_len);
    return;
  }
  double least = 1.0;
  for (speculate::Drafter* drafter : drafters) {
    least = std::min(least, test_one(*drafter, text, parts).share());
  }
  if (!drafters.empty()) parts.metrics.spec_agreement.set(least);
}

}  // namespace quire::app
