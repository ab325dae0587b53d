#include "core/bridge/load_estimate.h"

#include <algorithm>

namespace quire::bridge {
namespace {

constexpr double kShare = 0.125;    // weight of a new sample in its exponential mean
constexpr double kRowShare = 0.25;  // higher, because steps of many rows are rare

double read(const std::atomic<double>& value) { return value.load(std::memory_order_relaxed); }
void write(std::atomic<double>& value, double number) { value.store(number, std::memory_order_relaxed); }

void learn(std::atomic<double>& mean, double sample, double share = kShare) {
  const double before = read(mean);
  write(mean, before == 0.0 ? sample : before + share * (sample - before));
}

}  // namespace

// A running slot is free at once, or when another sequence ends. Prompts that wait before the request are computed
// before its own. The two waits overlap, so the longer one counts.
Outlook outlook(const Rates& rates, const Line& line, const Demand& demand) {
  const std::uint64_t wanted = std::uint64_t{line.sequences} + demand.sequences;
  const std::uint64_t ends = wanted - std::min<std::uint64_t>(wanted, line.places);
  const double row_s = rates.row_s * rates.computed;
  const double waits = std::max(static_cast<double>(ends) * rates.start_s, static_cast<double>(line.tokens) * row_s);
  const double reads = std::max(static_cast<double>(demand.prompt_tokens) * row_s, rates.token_s);
  const double first = waits + reads;
  const std::uint64_t more = demand.answer_tokens - std::min<std::uint64_t>(demand.answer_tokens, 1);
  return {first, first + static_cast<double>(more) * rates.token_s};
}

void LoadEstimate::note_end(Duration residence, std::uint32_t running) {
  const double seconds = std::chrono::duration<double>(residence).count();
  learn(start_s_, std::max(seconds, 0.0) / std::max(running, 1u));
}

void LoadEstimate::note_prompt(std::uint32_t tokens, std::uint32_t cached) {
  write(prompt_tokens_, (1.0 - kShare) * read(prompt_tokens_) + tokens);
  write(computed_tokens_, (1.0 - kShare) * read(computed_tokens_) + (tokens - std::min(tokens, cached)));
}

void LoadEstimate::note_row(double seconds) { learn(row_s_, seconds, kRowShare); }

void LoadEstimate::note_gap(double seconds) { learn(token_s_, seconds); }

void LoadEstimate::note_answer(std::uint32_t tokens) { learn(answer_tokens_, tokens); }

Rates LoadEstimate::rates() const {
  const double prompts = read(prompt_tokens_);
  const double computed = prompts > 0.0 ? std::min(1.0, read(computed_tokens_) / prompts) : 1.0;
  return {read(start_s_), read(row_s_), computed, read(token_s_), read(answer_tokens_)};
}

}  // namespace quire::bridge
