#include "core/speculate/depth/depth_control.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/base/check.h"
#include "core/speculate/depth/best_nodes.h"

namespace quire::speculate {
namespace {

constexpr double kWorthWhile = 1.04;  // least expected speedup at which drafts are planned
constexpr double kSpeedupKeep = 0.95;
constexpr double kProbeKeep = 0.85;         // of a sequence's past at a probe: those statistics are old
constexpr double kFewPlain = 1;             // plain steps measured at a size: below it two plain plans follow at once
constexpr double kManyPlain = 8;            // below it one plain plan, now and then
constexpr std::uint32_t kShortestRest = 8;  // plans between plain ones
constexpr std::uint32_t kLongestRest = 256;
constexpr double kKnownRows = 3;  // measurements from which a size's time is trusted
constexpr std::uint32_t kStepsOfASize = 3;
constexpr std::uint32_t kShortestInterval = 4;
constexpr double kBiasWorth = 2;

// Sizes of the largest draft to consider: the drafting cost depends on the largest.
constexpr std::array<std::uint32_t, 12> kCaps = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

}  // namespace

DepthControl::DepthControl(const DepthOptions& options, StepCosts step_costs, DraftCosts draft_costs)
    : options_(options), step_costs_(step_costs), draft_costs_(std::move(draft_costs)) {}

void DepthControl::plan(std::span<const Candidate> asked, const StepLoad& load, std::span<std::uint32_t> nodes) {
  CHECK_EQ(asked.size(), nodes.size());
  CHECK_GE(load.rows, load.sampling_rows);
  ++plan_;
  has_largest_ = false;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    nodes[i] = options_.adaptive ? 0 : std::min(asked[i].limit, kMaxRanks);
    known(asked[i].seq).probing = false;
  }
  if (!options_.adaptive || load.sampling_rows == 0 || wants_plain(load)) return;
  line_up(asked);
  plan_drafts(asked, load, nodes);
  const bool plain = std::ranges::all_of(nodes, [](std::uint32_t n) { return n == 0; });
  num_plain_plans_ = plain ? num_plain_plans_ + 1 : 0;
  plan_probes(asked, load, nodes);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (nodes[i] == 0) continue;
    known(asked[i].seq).last_asked = plan_;
    has_largest_ = has_largest_ || nodes[i] == largest_;
  }
}

void DepthControl::trim(std::span<const Asked> asked, std::span<sample::TokenTree> trees, const StepLoad& load) {
  CHECK_EQ(asked.size(), trees.size());
  line_.clear();
  StepLoad with_probes = load;
  const Chances all = everybody_.chances(nullptr, kMaxRanks);
  std::array<double, kMaxRanks> gains;
  for (std::uint32_t i = 0; i < asked.size(); ++i) {
    Known& one = known(asked[i].seq);
    sample::TokenTree& tree = trees[i];
    tree.shrink_to(asked[i].max_nodes);
    one.acceptance.note_offer(asked[i].max_nodes, tree.size());
    everybody_.note_offer(asked[i].max_nodes, tree.size());
    if (one.probing && tree.empty()) one.interval = options_.probe_plans;
    one.has_chances = !tree.empty() && tree.likely(0) > 0;
    gains_of(one, asked[i].max_nodes, all, tree, gains);
    put_best_first(tree, {gains.data(), tree.size()});
    if (one.probing) with_probes.rows += tree.size();
    for (std::uint32_t rank = 0; rank < tree.size() && !one.probing; ++rank) {
      line_.push_back({gains[rank], 1, gains[rank], i, rank});
    }
  }
  if (!options_.adaptive) return;
  std::sort(line_.begin(), line_.end(), InLine());
  const Best best = best_prefix(kMaxRanks, with_probes, /*drafted=*/true);
  granted_.assign(asked.size(), 0);
  for (std::size_t i = 0; i < line_.size(); ++i) {
    const Node& node = line_[i];
    Known& one = known(asked[node.owner].seq);
    if (i < best.num_nodes) {
      granted_[node.owner] = node.rank + 1;
    } else if (one.has_chances) {
      // Else the rank would count only nodes that looked good, and so a full draft would look good.
      one.acceptance.note_cut(node.rank, node.gain);
      everybody_.note_cut(node.rank, node.gain);
    }
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!known(asked[i].seq).probing) trees[i].shrink_to(granted_[i]);
  }
}

void DepthControl::note_step(std::uint32_t rows, double seconds) {
  step_costs_.add(rows, seconds);
  if (!std::exchange(has_largest_, false) || ++num_largest_ < kStepsOfASize) return;
  largest_ = std::min(2 * largest_, kMaxRanks);
  num_largest_ = 0;
}

void DepthControl::note_draft(std::uint32_t nodes, std::uint32_t num_sequences, double seconds) {
  draft_costs_.add(nodes, num_sequences, seconds);
}

void DepthControl::note_verification(SeqId seq, const sample::TokenTree& draft, int taken) {
  if (draft.empty()) return;
  Known& one = known(seq);
  const std::uint64_t path = taken == sample::TokenTree::kRoot ? 0 : draft.ancestors(static_cast<std::uint32_t>(taken));
  one.acceptance.note_verification(draft.size(), path, one.probing ? kProbeKeep : kKeepOne);
  everybody_.note_verification(draft.size(), path);
  one.promised *= kKeepOne;
  one.taken *= kKeepOne;
  for (std::uint32_t i = 0; i < draft.size(); ++i) {
    if (draft.likely(i) <= 0) continue;
    const bool was_taken = (path >> i & 1) != 0;
    one.promised += calibration_.chance(draft.likely(i));
    one.taken += was_taken ? 1 : 0;
    calibration_.note(draft.likely(i), was_taken);
  }
  if (!std::exchange(one.probing, false)) return;
  one.interval = path == 0 ? options_.probe_plans : std::max(kShortestInterval, one.interval / 2);
  // An accepted probe paid for itself: one token less for later steps to sample.
  if (path != 0) saved_ += token_seconds_;
}

DepthControl::Known& DepthControl::known(SeqId seq) {
  const auto [at, is_new] = sequences_.try_emplace(seq);
  if (is_new) {
    at->second.last_asked = plan_;
    at->second.interval = options_.probe_plans;
  }
  return at->second;
}

// Plain steps must be measured now and then: if their rate were underestimated, drafts would seem to pay for ever, and
// no plain step would correct it.
bool DepthControl::wants_plain(const StepLoad& load) {
  const double weight = step_costs_.weight_at(load.sampling_rows);
  if (plan_ >= next_plain_ && weight < kManyPlain) {
    plain_until_ = plan_ + (weight < kFewPlain ? 2 : 1);
    plain_rest_ = weight < kFewPlain ? kShortestRest : std::min(2 * plain_rest_, kLongestRest);
    next_plain_ = plan_ + plain_rest_;
  }
  return plan_ < plain_until_;
}

double DepthControl::seconds_with(double rows, const StepLoad& load) const {
  const double with = rows > 0 ? step_costs_.hopeful_seconds(load.rows + rows) : step_costs_.seconds(load.rows);
  if (load.rows == load.sampling_rows) return with;
  return with - step_costs_.seconds(load.rows) + step_costs_.seconds(load.sampling_rows);
}

DepthControl::Best DepthControl::best_prefix(std::uint32_t cap, const StepLoad& load, bool drafted) const {
  Best best{load.sampling_rows / seconds_with(0, load), 0, cap};
  double tokens = load.sampling_rows;
  double rows = 0;
  double draft_seconds = 0;
  std::uint32_t num_sequences = 0;
  std::size_t num_nodes = 0;
  for (const Node& node : line_) {
    if (node.rank >= cap) continue;
    ++num_nodes;
    tokens += node.gain;
    rows += node.rows;
    if (node.rank == 0 && !drafted) {
      ++num_sequences;
      draft_seconds = draft_costs_.seconds(cap, num_sequences);
    }
    const double rate = tokens / (seconds_with(rows, load) + draft_seconds);
    if (rate > best.rate) best = {rate, num_nodes, cap};
  }
  return best;
}

void DepthControl::line_up(std::span<const Candidate> asked) {
  line_.clear();
  const Chances all = everybody_.chances(nullptr, kMaxRanks);
  for (std::uint32_t i = 0; i < asked.size(); ++i) {
    const std::uint32_t limit = std::min({asked[i].limit, largest_, kMaxRanks});
    const Chances one = known(asked[i].seq).acceptance.chances(&all, limit);
    double gain = 1;
    double worth = 1;
    for (std::uint32_t rank = 0; rank < limit; ++rank) {
      gain = std::min(gain, one.offered[rank] * one.taken[rank]);
      worth = std::min(worth, one.taken[rank]);
      line_.push_back({gain, one.offered[rank], worth, i, rank});
    }
  }
  std::sort(line_.begin(), line_.end(), InLine());
}

void DepthControl::plan_drafts(std::span<const Candidate> asked, const StepLoad& load, std::span<std::uint32_t> nodes) {
  const double plain = load.sampling_rows / seconds_with(0, load);
  std::uint32_t largest = 0;
  for (const Candidate& one : asked) largest = std::max(largest, std::min(one.limit, largest_));
  Best best{plain, 0, 0};
  for (const std::uint32_t cap : kCaps) {
    const Best one = best_prefix(std::min(cap, largest), load, /*drafted=*/false);
    if (one.rate > best.rate) best = one;
    if (cap >= largest) break;
  }
  if (best.rate < kWorthWhile * plain) best = {plain, 0, 0};
  speedup_ = kSpeedupKeep * speedup_ + (1 - kSpeedupKeep) * best.rate / plain;
  std::size_t given = 0;
  for (const Node& node : line_) {
    if (given == best.num_nodes) break;
    if (node.rank >= best.cap) continue;
    nodes[node.owner] = node.rank + 1;
    ++given;
  }
}

void DepthControl::plan_probes(std::span<const Candidate> asked, const StepLoad& load, std::span<std::uint32_t> nodes) {
  double rows = 0;
  std::uint32_t largest = 0;
  std::uint32_t num_sequences = 0;
  bool is_due = false;
  const auto rested = [this](const Known& one) { return plan_ - one.last_asked; };
  for (std::size_t i = 0; i < asked.size(); ++i) {
    rows += nodes[i];
    largest = std::max(largest, nodes[i]);
    num_sequences += nodes[i] > 0 ? 1 : 0;
    const Known& one = known(asked[i].seq);
    is_due = is_due || (nodes[i] == 0 && asked[i].limit > 0 && rested(one) >= one.interval);
  }
  const double step = step_costs_.seconds(load.sampling_rows);
  token_seconds_ = step / load.sampling_rows;
  const double longest = 4 * (step_costs_.seconds(load.sampling_rows + 1.0) + draft_costs_.seconds(1, 1));
  if (num_sequences < asked.size()) saved_ = std::min(saved_ + options_.probe_part * step, longest);
  if (!is_due) return;
  // One propose() call serves all probes, so sequences that are nearly due join. The loop starts at another sequence
  // each plan, because the savings may not suffice for all.
  for (std::size_t turn = 0; turn < asked.size(); ++turn) {
    const std::size_t i = (turn + plan_) % asked.size();
    Known& one = known(asked[i].seq);
    if (nodes[i] > 0 || asked[i].limit == 0 || rested(one) < one.interval - one.interval / 4) continue;
    // At a step size with few measurements a row is charged at least an average row's time.
    const double least = step_costs_.weight_at(load.rows + rows + 1) < kKnownRows ? token_seconds_ : 0;
    const double cost = std::max(seconds_with(rows + 1, load) - seconds_with(rows, load), least) +
                        draft_costs_.seconds(std::max(largest, 1u), num_sequences + 1) -
                        draft_costs_.seconds(largest, num_sequences);
    if (cost > saved_) continue;
    saved_ -= cost;
    nodes[i] = 1;
    one.probing = true;
    rows += 1;
    largest = std::max(largest, 1u);
    ++num_sequences;
  }
}

// Expected gain of each node: the drafter's probabilities, calibrated, or by rank if it gives none.
void DepthControl::gains_of(const Known& one, std::uint32_t asked, const Chances& all, const sample::TokenTree& tree,
                            std::span<double> gains) const {
  if (one.has_chances) {
    const double bias = (one.taken + kBiasWorth) / (one.promised + kBiasWorth);
    for (std::uint32_t i = 0; i < tree.size(); ++i) {
      gains[i] = tree.likely(i) > 0 ? std::min(1.0, bias * calibration_.chance(tree.likely(i))) : 0;
    }
    return;
  }
  const Chances by_rank = one.acceptance.chances(&all, asked);
  double gain = 1;  // never rises: the order stays as it is
  for (std::uint32_t i = 0; i < tree.size(); ++i) gains[i] = gain = std::min(gain, by_rank.taken[i]);
}

}  // namespace quire::speculate
