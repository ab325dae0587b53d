#include "core/speculate/agreement.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "core/base/check.h"
#include "core/flow/step_plan.h"

namespace quire::speculate {
namespace {

constexpr SeqId kSeq(0);  // the engine's ids begin with 1
constexpr sample::Params kGreedy{.temperature = 0.0f};

// The generated text, its block table and the rows that have run.
class OwnText {
 public:
  explicit OwnText(const AgreementText& text) : block_tokens_(text.block_tokens), tokens_(text.prompt) {
    for (std::uint32_t block = 0; block < text.num_blocks(); ++block) table_.emplace_back(block);
  }

  // Runs the rows that have not run and appends the token sampled from the last one. False: the row is not finite.
  bool say(model::Runner& runner) REQUIRES(engine_role) {
    plan_rows();
    runner.submit(plan_);
    const std::span<const flow::StepChoice> choices = runner.collect();
    CHECK_EQ(choices.size(), 1u);
    if (!choices[0].finite) return false;
    first_position_ = static_cast<std::uint32_t>(tokens_.size() - plan_.tokens.size());
    tokens_.push_back(choices[0].token);
    return true;
  }

  void show(Drafter& drafter, const backend::Buffer* states) REQUIRES(engine_role) {
    rows_.resize(plan_.tokens.size());
    std::iota(rows_.begin(), rows_.end(), 0u);
    const Observed observed{kSeq, tokens_, first_position_, rows_, table_};
    drafter.observe({{&observed, 1}, states});
  }

  // The drafter's first draft token; -1: an empty draft.
  TokenId draft(Drafter& drafter) REQUIRES(engine_role) {
    const Asked asked{kSeq, tokens_, table_, &kGreedy, 1, 1};
    tree_.clear();
    drafter.propose({&asked, 1}, {&tree_, 1});
    return tree_.empty() ? -1 : tree_.token(0);
  }

  TokenId newest() const { return tokens_.back(); }

 private:
  void plan_rows() {
    const auto first = static_cast<std::uint32_t>(num_run_);
    num_run_ = tokens_.size();
    plan_.clear();
    plan_.block_tables = table_;
    for (std::uint32_t position = first; position < num_run_; ++position) {
      plan_.tokens.push_back(tokens_[position]);
      plan_.positions.push_back(position);
      plan_.slots.push_back(table_[position / block_tokens_].value * block_tokens_ + position % block_tokens_);
    }
    flow::PlannedSequence planned;
    planned.seq = kSeq;
    planned.num_rows = static_cast<std::uint32_t>(plan_.tokens.size());
    planned.first_position = first;
    planned.num_table = (static_cast<std::uint32_t>(num_run_) + block_tokens_ - 1) / block_tokens_;
    planned.samples = true;
    planned.sampling = kGreedy;
    plan_.sequences.push_back(planned);
  }

  const std::uint32_t block_tokens_;
  std::vector<TokenId> tokens_;
  std::vector<BlockId> table_{};
  std::size_t num_run_ = 0;
  std::uint32_t first_position_ = 0;  // of the last step's rows
  std::vector<std::uint32_t> rows_{};
  flow::StepPlan plan_{};
  sample::TokenTree tree_{};
};

}  // namespace

std::vector<OtherReading> other_readings(std::span<const std::uint32_t> boundaries, std::uint32_t num_layers) {
  std::vector<OtherReading> out;
  if (boundaries.empty()) return out;
  const std::vector<std::uint32_t> as_they_are(boundaries.begin(), boundaries.end());
  const auto moved = [&](std::uint32_t by) {  // ~0u: earlier by one
    std::vector<std::uint32_t> other = as_they_are;
    for (std::uint32_t& boundary : other) boundary += by;
    return other;
  };
  if (std::ranges::min(boundaries) > 0) out.push_back({"each layer one earlier", moved(~0u)});
  if (std::ranges::max(boundaries) < num_layers) out.push_back({"each layer one later", moved(1)});
  if (boundaries.size() > 1) out.push_back({"the states in reverse order", {as_they_are.rbegin(), as_they_are.rend()}});
  return out;
}

Agreement measure_agreement(Drafter& drafter, model::Runner& runner, const AgreementText& text, const Clock& clock) {
  CHECK(!text.prompt.empty());
  CHECK_GT(text.block_tokens, 0u);
  const TimePoint started = clock.now();
  const auto over = [&](const Agreement& seen) {
    const bool late = clock.now() - started >= text.limit;
    return seen.num_draft_tokens >= text.num_draft_tokens || (late && seen.num_draft_tokens >= text.least);
  };
  OwnText own(text);
  Agreement seen;
  drafter.admit({kSeq, text.prompt});
  for (bool sound = own.say(runner); sound && !over(seen);) {
    own.show(drafter, runner.states());
    const TokenId draft_token = own.draft(drafter);
    sound = own.say(runner);
    if (!sound) break;
    ++seen.num_draft_tokens;
    if (draft_token == own.newest()) ++seen.num_right;
  }
  drafter.release(kSeq, /*ended=*/true);
  return seen;
}

}  // namespace quire::speculate
