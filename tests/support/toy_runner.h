// A model small enough to reason about and strict enough to catch any paging mistake: every slot remembers which token
// was stored there at which position, and the next token is a hash of all the tokens a row can read through its block
// table. A wrong slot, a stale block, a lost token or a row too few changes the answer; toy_answer() computes it from
// tokens alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/model/runner.h"

namespace quire::testing {

inline constexpr std::uint32_t kToyVocab = 997;

inline std::uint64_t toy_mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 33);
}

inline TokenId toy_choose(std::uint64_t prefix_hash, const sample::Params& params, std::uint32_t position) {
  const std::uint64_t noise = params.temperature < sample::kGreedyTemperature ? 0 : params.seed + 1;
  return static_cast<TokenId>(toy_mix(toy_mix(prefix_hash, noise), position) % kToyVocab);
}

// What a lone request must answer, from its tokens alone.
inline std::vector<TokenId> toy_answer(std::vector<TokenId> tokens, const sample::Params& params, std::uint32_t count) {
  std::vector<TokenId> answer;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint64_t hash = 0;
    for (std::uint32_t p = 0; p < tokens.size(); ++p)
      hash = toy_mix(toy_mix(hash, static_cast<std::uint64_t>(tokens[p])), p);
    answer.push_back(toy_choose(hash, params, static_cast<std::uint32_t>(tokens.size())));
    tokens.push_back(answer.back());
  }
  return answer;
}

class ToyRunner final : public model::Runner {
 public:
  ToyRunner(std::uint32_t num_blocks, std::uint32_t block_tokens)
      : block_tokens_(block_tokens), slots_(std::size_t{num_blocks} * block_tokens) {}

  void submit(const flow::StepPlan& plan) override {
    CHECK(idle());
    in_flight_ = true;
    choices_.clear();
    ++steps;
    rows_in_step.push_back(static_cast<std::uint32_t>(plan.tokens.size()));
    std::vector<bool> written(slots_.size(), false);
    for (std::size_t row = 0; row < plan.tokens.size(); ++row) {
      CHECK(!written.at(plan.slots[row]));  // no slot twice in one step
      written[plan.slots[row]] = true;
      slots_[plan.slots[row]] = {plan.tokens[row], plan.positions[row]};
    }
    for (const flow::PlannedSequence& entry : plan.sequences) {
      CHECK_GE(entry.num_rows, 1u);
      if (!entry.speaks) continue;
      const std::uint32_t length = entry.first_position + entry.num_rows;
      CHECK_LE(length, entry.num_table * block_tokens_);
      std::uint64_t hash = 0;
      for (std::uint32_t p = 0; p < length; ++p) {
        const BlockId block = plan.block_tables[entry.first_table + p / block_tokens_];
        const Slot& slot = slots_.at(std::size_t{block.value} * block_tokens_ + p % block_tokens_);
        CHECK_EQ(slot.position, p);
        hash = toy_mix(toy_mix(hash, static_cast<std::uint64_t>(slot.token)), p);
      }
      flow::StepChoice choice{entry.seq, toy_choose(hash, entry.sampling, length), true};
      if (entry.sampling.seed == poisoned_seed) choice = {entry.seq, -1, false};
      choices_.push_back(choice);
    }
  }
  std::span<const flow::StepChoice> collect() override {
    CHECK(in_flight_);
    in_flight_ = false;
    if (clock != nullptr) clock->advance(row_time * rows_in_step.back());
    if (fail_next_collect) throw std::runtime_error("the device is gone");
    return choices_;
  }
  bool idle() const override { return !in_flight_; }
  bool full() const override { return in_flight_; }

  std::uint64_t steps = 0;
  std::vector<std::uint32_t> rows_in_step;
  std::uint64_t poisoned_seed = ~0ull;  // a request with this seed gets logits that are not finite
  bool fail_next_collect = false;
  FakeClock* clock = nullptr;  // moved on by row_time for every row of a step
  Duration row_time{};

 private:
  struct Slot {
    TokenId token = -1;
    std::uint32_t position = ~0u;
  };
  const std::uint32_t block_tokens_;
  std::vector<Slot> slots_;
  std::vector<flow::StepChoice> choices_;
  bool in_flight_ = false;
};

}  // namespace quire::testing
