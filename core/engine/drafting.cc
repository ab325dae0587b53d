#include "core/engine/drafting.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "core/engine/live_sequences.h"

namespace quire::engine {

Drafting::Drafting(const DraftingOptions& options, speculate::Drafter* drafter, speculate::DepthControl* depth,
                   model::Runner& runner, observe::Metrics& metrics, const Clock& clock)
    : options_(options), drafter_(drafter), depth_(depth), runner_(runner), metrics_(metrics), clock_(clock) {
  CHECK_LE(options.max_draft_nodes, sample::TokenTree::kMaxNodes);
  path_.reserve(sample::TokenTree::kMaxNodes);
  if (drafter_ == nullptr) return;
  asking_.reserve(options.max_num_seqs);
  candidates_.reserve(options.max_num_seqs);
  budgets_.reserve(options.max_num_seqs);
  asked_.reserve(options.max_num_seqs);
  trees_.reserve(options.max_num_seqs);
  observed_.reserve(options.max_num_seqs);
  observed_rows_.reserve(options.max_num_batched_tokens);  // spans into these are given out
  lookahead_results_.reserve(options.max_num_batched_tokens);
}

// Drafts under rejection sampling have a fixed size, whatever they cost or bring: they come last, and are neither
// planned nor trimmed.
void Drafting::propose(std::span<schedule::Sequence* const> running, LiveSequences& live,
                       std::uint64_t max_prompt_rows) {
  if (drafter_ == nullptr || options_.max_draft_nodes == 0 || !runner_.idle()) return;
  candidates_.clear();
  asking_.clear();
  for (const bool by_rejection : {false, true}) {
    if (by_rejection) num_planned_ = asking_.size();
    for (schedule::Sequence* sequence : running) {
      if (sample::accepts_by_rejection(sequence->request().sampling) != by_rejection) continue;
      sequence->draft.clear();
      Live& one = live.of(sequence->id());
      if (depth_of(one) == 0) continue;
      candidates_.push_back({sequence->id(), limit_of(*sequence)});
      asking_.push_back(&one);
    }
  }
  if (asking_.empty()) return;
  budgets_.clear();
  for (const speculate::Candidate& one : candidates_) budgets_.push_back(one.limit);
  const speculate::StepLoad load = load_without_drafts(running, max_prompt_rows);
  if (depth_ != nullptr && num_planned_ > 0) {
    depth_->plan(std::span(candidates_).first(num_planned_), load, std::span(budgets_).first(num_planned_));
  }
  for (std::size_t i = 0; i < budgets_.size(); ++i) {
    static constexpr std::uint32_t kPlainStepsToUntrack = 32;
    metrics_.spec_budget_nodes.observe(budgets_[i]);
    Live& one = *asking_[i];
    one.plain_steps = budgets_[i] == 0 ? one.plain_steps + 1 : 0;
    if (depth_ == nullptr || !depth_->rests() || one.keeps_tracked || one.plain_steps < kPlainStepsToUntrack) continue;
    if (i >= num_planned_) continue;
    one.tracked = false;
    budgets_[i] = 0;
    drafter_->release(one.sequence.id(), /*ended=*/false);
  }
  ask(budgets_, load);
}

void Drafting::ask(std::span<const std::uint32_t> budgets, const speculate::StepLoad& load) {
  asked_.clear();
  std::uint32_t most = 0;
  std::size_t num_trimmed = 0;
  for (std::size_t i = 0; i < asking_.size(); ++i) {
    if (budgets[i] == 0) continue;
    if (i < num_planned_) ++num_trimmed;
    const schedule::Sequence& sequence = asking_[i]->sequence;
    asking_[asked_.size()] = asking_[i];
    asked_.push_back({sequence.id(), sequence.tokens(), sequence.table.blocks(), &sequence.request().sampling,
                      budgets[i], depth_of(*asking_[i])});
    most = std::max(most, budgets[i]);
  }
  trees_.resize(std::max(trees_.size(), asked_.size()));
  const auto trees = std::span(trees_).first(asked_.size());
  for (sample::TokenTree& tree : trees) tree.clear();
  if (!asked_.empty()) {
    const TimePoint before = clock_.now();
    drafter_->propose(asked_, trees);
    const double seconds = std::chrono::duration<double>(clock_.now() - before).count();
    metrics_.spec_drafting_s.observe(seconds);
    if (depth_ != nullptr)
      depth_->note_draft(most, static_cast<std::uint32_t>(asked_.size()),
                         seconds + std::exchange(observing_seconds_, 0.0));
  }
  for (const sample::TokenTree& tree : trees) metrics_.spec_proposed_tokens.add(tree.size());
  if (depth_ != nullptr) {
    depth_->trim(std::span(asked_).first(num_trimmed), trees.first(num_trimmed), load);
    metrics_.spec_estimated_speedup.set(depth_->estimated_speedup());
  }
  for (std::size_t i = 0; i < trees.size(); ++i) take(asking_[i]->sequence, trees[i], asked_[i].max_depth);
}

void Drafting::admit(Live& live) {
  if (drafter_ == nullptr) return;
  static constexpr std::uint64_t kOneIn = 16;
  const schedule::Sequence& sequence = live.sequence;
  live.keeps_tracked = sequence.id().value % kOneIn == 0;
  live.tracked =
      sequence.request().speculation.enabled && (depth_ == nullptr || !depth_->rests() || live.keeps_tracked);
  if (live.tracked) drafter_->admit({sequence.id(), sequence.request().prompt, sequence.request().cache_namespace});
}

void Drafting::release(SeqId id) {
  if (drafter_ != nullptr) drafter_->release(id, /*ended=*/false);
}

void Drafting::forget(SeqId id) {
  if (drafter_ != nullptr) drafter_->release(id, /*ended=*/true);
  if (depth_ != nullptr) depth_->forget(id);
}

void Drafting::track_blocks(std::span<const flow::BlockOp> ops) {
  if (drafter_ != nullptr && !ops.empty()) drafter_->track(ops);
}

// The rows of the coming step as far as they are known: decoding sequences, and prompt rows beside them.
speculate::StepLoad Drafting::load_without_drafts(std::span<schedule::Sequence* const> running,
                                                  std::uint64_t max_prompt_rows) const {
  speculate::StepLoad load;
  std::uint64_t prompt_rows_wanted = 0;
  for (const schedule::Sequence* sequence : running) {
    if (sequence->paused) continue;
    if (sequence->decoding()) {
      load.rows += sequence->remaining();
      ++load.sampling_rows;
    } else {
      prompt_rows_wanted += sequence->remaining();
    }
  }
  const std::uint32_t budget = options_.max_num_batched_tokens;
  const std::uint64_t room = std::min<std::uint64_t>(budget - std::min(budget, load.rows), max_prompt_rows);
  load.rows += static_cast<std::uint32_t>(std::min(prompt_rows_wanted, room));
  return load;
}

// The most nodes that its draft may have.
std::uint32_t Drafting::limit_of(const schedule::Sequence& sequence) const {
  const std::uint32_t wanted = sequence.request().speculation.max_nodes;
  return wanted == 0 ? options_.max_draft_nodes : std::min(wanted, options_.max_draft_nodes);
}

// The most tokens that a draft may be ahead: the stream must have room for them and for the token that is sampled
// anyway. Under rejection sampling all that the request may have, or none.
std::uint32_t Drafting::depth_of(const Live& live) const {
  const schedule::Sequence& sequence = live.sequence;
  if (sequence.paused || !sequence.may_draft() || !live.stream || !live.tracked) return 0;
  std::uint32_t depth = std::min(sequence.max_draft_depth(), limit_of(sequence));
  const bool by_rejection = sample::accepts_by_rejection(sequence.request().sampling);
  while (depth > 0 && !live.stream->can_take(depth + 2)) depth = by_rejection ? 0 : depth - 1;
  return depth;
}

// The drafter's tree is checked, not trusted: only nodes that can run are taken, in their order (a token of the
// vocabulary, no deeper and no more than asked). Under rejection sampling the whole tree is taken, or nothing: leaving
// out draft tokens because of their values would change the distribution of the others.
void Drafting::take(schedule::Sequence& sequence, const sample::TokenTree& tree, std::uint32_t max_depth) {
  std::array<int, sample::TokenTree::kMaxNodes> node_of;  // [tree] the node that it became; -1: left out
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    const int parent =
        tree.parent(i) == sample::TokenTree::kRoot ? tree.parent(i) : node_of[static_cast<std::size_t>(tree.parent(i))];
    const bool is_token = tree.token(i) >= 0 && static_cast<std::uint32_t>(tree.token(i)) < options_.vocab;
    const bool has_parent = tree.parent(i) == sample::TokenTree::kRoot || parent >= 0;
    const bool runs =
        is_token && has_parent && tree.depth(i) <= max_depth && sequence.draft.size() < options_.max_draft_nodes;
    node_of[i] = runs ? sequence.draft.add(tree.token(i), parent, tree.likely(i)) : -1;
    if (runs && tree.is_lookahead_node(i))
      sequence.draft.make_lookahead_node(static_cast<std::uint32_t>(node_of[i]), tree.lookahead_node(i));
  }
  if (!sample::accepts_by_rejection(sequence.request().sampling)) return;
  if (sequence.draft.size() != tree.size() || tree.size() > limit_of(sequence)) return sequence.draft.clear();
  sequence.draft.set_distributions(tree.distributions());
}

// If the step had decoding rows only, its time tells what that many rows cost.
void Drafting::begin_commit(const Flight& flight, Duration step_time) {
  observed_.clear();
  observed_rows_.clear();
  lookahead_results_.clear();
  if (drafter_ == nullptr) return;
  std::uint32_t rows = 0;
  std::uint32_t nodes = 0;
  bool all_decode = true;
  for (const flow::PlannedSequence& planned : flight.plan->sequences) {
    rows += planned.num_rows;
    nodes += planned.num_nodes;
    all_decode = all_decode && planned.decodes;
  }
  if (!all_decode || rows == 0) return;
  metrics_.spec_step_nodes.observe(nodes);
  if (depth_ != nullptr) depth_->note_step(rows, std::chrono::duration<double>(step_time).count());
}

void Drafting::verify(Live& live, std::span<const flow::StepChoice> nodes, const CommitChoice& commit) {
  schedule::Sequence& sequence = live.sequence;
  path_.clear();
  copies_.clear();
  const std::uint32_t first_slot = sequence.progress.computed();
  int at = sample::TokenTree::kRoot;
  while (live.event.finish == flow::Finish::kNone) {
    at = sequence.draft.child(at, live.event.token);
    if (at < 0 || at >= static_cast<int>(nodes.size())) break;
    const auto node = static_cast<std::uint32_t>(at);
    live.earlier.push_back({live.event, live.top});
    const auto depth = static_cast<std::uint32_t>(path_.size());
    if (node != depth) {
      for (std::uint32_t group = 0; group < sequence.table.num_groups(); ++group) {
        copies_.push_back(
            {sequence.table.slot(group, first_slot + node), sequence.table.slot(group, first_slot + depth), group});
      }
    }
    path_.push_back(node);
    sequence.progress.commit(1);
    commit(live, nodes[node]);
  }
  if (nodes.empty()) return;
  if (!copies_.empty()) runner_.copy_rows(copies_);
  sequence.table.shrink_to(sequence.progress.computed());
  note_verification(live, static_cast<std::uint32_t>(nodes.size()));
}

void Drafting::note_verification(Live& live, std::uint32_t num_nodes) {
  const auto num_taken = static_cast<std::uint32_t>(path_.size());
  metrics_.spec_drafts.add();
  metrics_.spec_draft_tokens.add(num_nodes);
  metrics_.spec_accepted_tokens.add(num_taken);
  for (std::uint32_t depth = 0; depth < num_taken; ++depth) metrics_.spec_accepted_per_pos[depth].add();
  live.timeline->note_draft(num_nodes, num_taken);
  if (depth_ == nullptr || sample::accepts_by_rejection(live.sequence.request().sampling)) return;
  live.sequence.draft.shrink_to(num_nodes);
  const int taken = path_.empty() ? sample::TokenTree::kRoot : static_cast<int>(path_.back());
  depth_->note_verification(live.sequence.id(), live.sequence.draft, taken);
}

void Drafting::note_prompt_rows(const Live& live, const flow::PlannedSequence& planned) {
  path_.clear();
  note_observed(live, planned, {});
}

// The rows that are permanent now and whose next token is known, and the results of lookahead nodes.
void Drafting::note_observed(const Live& live, const flow::PlannedSequence& planned,
                             std::span<const flow::StepChoice> nodes) {
  if (drafter_ == nullptr || !live.tracked || live.search != nullptr ||
      (live.has_event && flow::is_fault(live.event.finish))) {
    return;
  }
  const schedule::Sequence& sequence = live.sequence;
  const std::uint32_t num_plain = planned.num_rows - planned.num_nodes;
  const std::size_t first = observed_rows_.size();
  for (std::uint32_t row = 0; row < num_plain; ++row) observed_rows_.push_back(planned.first_row + row);
  for (const std::uint32_t node : path_) observed_rows_.push_back(planned.first_row + num_plain + node);
  if (planned.first_position + (observed_rows_.size() - first) == sequence.num_tokens()) observed_rows_.pop_back();
  auto rows = std::span<const std::uint32_t>(observed_rows_).subspan(first);
  std::uint32_t first_position = planned.first_position;
  const auto blocks = sequence.table.blocks();
  while (!rows.empty() && blocks[first_position / sequence.table.block_tokens()] == kNoBlock) {
    rows = rows.subspan(1);  // the sliding window has left its block in this very step
    ++first_position;
  }
  const bool done = live.has_event && live.event.finish != flow::Finish::kNone;
  const std::size_t first_lookahead_result = lookahead_results_.size();
  const auto num_nodes = static_cast<std::uint32_t>(nodes.size());
  for (std::uint64_t left = sequence.draft.lookahead_nodes(num_nodes); left != 0; left &= left - 1) {
    const auto node = static_cast<std::uint32_t>(std::countr_zero(left));
    if (nodes[node].token >= 0) lookahead_results_.push_back({sequence.draft.lookahead_node(node), nodes[node].token});
  }
  observed_.push_back({sequence.id(), sequence.tokens(), first_position, rows, blocks, done,
                       std::span(lookahead_results_).subspan(first_lookahead_result)});
}

void Drafting::keep_candidates(std::span<Live* const> touched) {
  std::size_t count = 0;
  const auto for_each_list = [&](auto&& body) {
    for (Live* live : touched) {
      for (Emitted& emitted : live->earlier) body(emitted.top);
      body(live->top);
    }
  };
  for_each_list([&](std::span<const flow::Candidate>& top) { count += top.size(); });
  kept_candidates_.clear();
  kept_candidates_.reserve(count);
  for_each_list([&](std::span<const flow::Candidate>& top) {
    const std::size_t first = kept_candidates_.size();
    kept_candidates_.insert(kept_candidates_.end(), top.begin(), top.end());
    top = std::span(kept_candidates_).subspan(first);
  });
}

void Drafting::observe(const Flight& flight, std::span<Live* const> touched) {
  if (drafter_ == nullptr || observed_.empty()) return;
  keep_candidates(touched);
  const TimePoint before = clock_.now();
  drafter_->observe({observed_, runner_.states()});
  const double seconds = std::chrono::duration<double>(clock_.now() - before).count();
  metrics_.spec_observing_s.observe(seconds);
  const bool all_decode = std::ranges::all_of(flight.plan->sequences, &flow::PlannedSequence::decodes);
  observing_seconds_ = all_decode ? seconds : 0.0;  // observing prompts is not a cost of drafts
}

}  // namespace quire::engine
