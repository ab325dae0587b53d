// Engine: guesses, from asking for them to what became of them.
#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

#include "core/base/check.h"
#include "core/engine/engine.h"

namespace quire::engine {

// Whoever goes on by one row may be guessed at. Those whose drafts have one size, whatever they cost or bring, come
// last: they are neither planned nor trimmed.
void Engine::draft() {
  if (drafter_ == nullptr || options_.max_draft_nodes == 0 || !runner_.idle()) return;
  candidates_.clear();
  asking_.clear();
  for (const bool by_law : {false, true}) {
    if (by_law) num_planned_ = asking_.size();
    for (schedule::Sequence* sequence : scheduler_.running()) {
      if (sample::accepts_by_law(sequence->request().sampling) != by_law) continue;
      sequence->draft.clear();
      if (draft_depth(*sequence) == 0) continue;
      candidates_.push_back({sequence->id(), draft_limit(*sequence)});
      asking_.push_back(sequence);
    }
  }
  if (asking_.empty()) return;
  budgets_.clear();
  for (const speculate::Candidate& one : candidates_) budgets_.push_back(one.limit);
  const speculate::StepLoad load = load_without_drafts();
  if (depth_ != nullptr && num_planned_ > 0) {
    depth_->plan(std::span(candidates_).first(num_planned_), load, std::span(budgets_).first(num_planned_));
  }
  for (std::size_t i = 0; i < budgets_.size(); ++i) {
    static constexpr std::uint32_t kPlainStepsToLetGo = 32;
    metrics_.spec_budget_nodes.observe(budgets_[i]);
    Live& live = live_of(asking_[i]->id());
    live.plain_steps = budgets_[i] == 0 ? live.plain_steps + 1 : 0;
    if (depth_ == nullptr || !depth_->rests() || live.keeps_followed || live.plain_steps < kPlainStepsToLetGo) continue;
    if (i >= num_planned_) continue;
    live.followed = false;
    budgets_[i] = 0;
    drafter_->release(live.sequence.id(), /*ended=*/false);
  }
  ask_for_drafts(load);
}

void Engine::ask_for_drafts(const speculate::StepLoad& load) {
  asked_.clear();
  std::uint32_t most = 0;
  std::size_t num_trimmed = 0;
  for (std::size_t i = 0; i < asking_.size(); ++i) {
    if (budgets_[i] == 0) continue;
    if (i < num_planned_) ++num_trimmed;
    schedule::Sequence& sequence = *asking_[i];
    asking_[asked_.size()] = &sequence;
    asked_.push_back({sequence.id(), sequence.tokens(), sequence.table.blocks(), &sequence.request().sampling,
                      budgets_[i], draft_depth(sequence)});
    most = std::max(most, budgets_[i]);
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
  for (std::size_t i = 0; i < trees.size(); ++i) take_draft(*asking_[i], trees[i], asked_[i].max_depth);
}

// Following costs, prompts most of all. While guessing does not pay one in sixteen is followed, so that it is seen when
// it does.
void Engine::follow_or_not(Live& live) {
  static constexpr std::uint64_t kOneIn = 16;
  const schedule::Sequence& sequence = live.sequence;
  live.keeps_followed = sequence.id().value % kOneIn == 0;
  live.followed =
      sequence.request().speculation.enabled && (depth_ == nullptr || !depth_->rests() || live.keeps_followed);
  if (live.followed) drafter_->admit({sequence.id(), sequence.request().prompt, sequence.request().cache_root});
}

// Rows of the coming step as far as they can be foreseen: those who decode, and what prompts may have beside them.
speculate::StepLoad Engine::load_without_drafts() const {
  speculate::StepLoad load;
  std::uint64_t prompt_rows_wanted = 0;
  for (const schedule::Sequence* sequence : scheduler_.running()) {
    if (sequence->parked) continue;
    if (sequence->decoding()) {
      load.rows += sequence->remaining();
      ++load.speaking;
    } else {
      prompt_rows_wanted += sequence->remaining();
    }
  }
  const std::uint32_t budget = options_.scheduler.max_num_batched_tokens;
  const std::uint64_t room = std::min(budget - std::min(budget, load.rows), prompt_rows().while_streaming);
  load.rows += static_cast<std::uint32_t>(std::min(prompt_rows_wanted, room));
  return load;
}

// Nodes of its draft, at most.
std::uint32_t Engine::draft_limit(const schedule::Sequence& sequence) const {
  const std::uint32_t wanted = sequence.request().speculation.max_nodes;
  return wanted == 0 ? options_.max_draft_nodes : std::min(wanted, options_.max_draft_nodes);
}

// How many tokens it may be ahead of itself: as many as its stream has room for besides the one that comes anyway. By
// law all that it may have, or none.
std::uint32_t Engine::draft_depth(const schedule::Sequence& sequence) {
  const Live& live = live_of(sequence.id());
  if (sequence.parked || !sequence.may_draft() || !live.stream || !live.followed) return 0;
  std::uint32_t depth = std::min(sequence.max_draft_depth(), draft_limit(sequence));
  const bool by_law = sample::accepts_by_law(sequence.request().sampling);
  while (depth > 0 && !live.stream->can_take(depth + 2)) depth = by_law ? 0 : depth - 1;
  return depth;
}

// What came back is checked, not trusted. The nodes that can be run: tokens of the vocabulary, no deeper than asked, no
// more than asked. Their order stays.
// By law it is all of them or none: to leave out guesses for what they are would change what the others were drawn
// from.
void Engine::take_draft(schedule::Sequence& sequence, const sample::TokenTree& tree, std::uint32_t max_depth) {
  std::array<int, sample::TokenTree::kMaxNodes> places;
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    const int parent =
        tree.parent(i) == sample::TokenTree::kRoot ? tree.parent(i) : places[static_cast<std::size_t>(tree.parent(i))];
    const bool is_token = tree.token(i) >= 0 && static_cast<std::uint32_t>(tree.token(i)) < options_.vocab;
    const bool has_parent = tree.parent(i) == sample::TokenTree::kRoot || parent >= 0;
    const bool runs =
        is_token && has_parent && tree.depth(i) <= max_depth && sequence.draft.size() < options_.max_draft_nodes;
    places[i] = runs ? sequence.draft.add(tree.token(i), parent, tree.likely(i)) : -1;
    if (runs && tree.is_lookahead_node(i))
      sequence.draft.make_lookahead_node(static_cast<std::uint32_t>(places[i]), tree.lookahead_node(i));
  }
  if (!sample::accepts_by_law(sequence.request().sampling)) return;
  if (sequence.draft.size() != tree.size() || tree.size() > draft_limit(sequence)) return sequence.draft.clear();
  sequence.draft.set_laws(tree.laws());
}

// From what its row said down the draft: as far as what was said is in it, its rows are there already. Their K and V go
// where their positions are before anything else is stored; what was guessed wrongly is left behind.
void Engine::walk_draft(Live& live, std::span<const flow::StepChoice> nodes) {
  schedule::Sequence& sequence = live.sequence;
  path_.clear();
  const std::uint32_t first_slot = sequence.computed();
  int at = sample::TokenTree::kRoot;
  while (live.event.finish == flow::Finish::kNone) {
    at = sequence.draft.child(at, live.event.token);
    if (at < 0 || at >= static_cast<int>(nodes.size())) break;
    const auto node = static_cast<std::uint32_t>(at);
    live.earlier.push_back({live.event, live.top});
    const auto depth = static_cast<std::uint32_t>(path_.size());
    if (node != depth) {
      runner_.copy_row(sequence.table.slot(first_slot + node), sequence.table.slot(first_slot + depth));
    }
    path_.push_back(node);
    sequence.commit_rows(1);
    commit_choice(live, nodes[node]);
  }
  if (nodes.empty()) return;
  sequence.table.shrink_to(sequence.computed());
  note_walk(live, static_cast<std::uint32_t>(nodes.size()));
}

void Engine::note_walk(Live& live, std::uint32_t num_nodes) {
  const auto num_taken = static_cast<std::uint32_t>(path_.size());
  metrics_.spec_drafts.add();
  metrics_.spec_draft_tokens.add(num_nodes);
  metrics_.spec_accepted_tokens.add(num_taken);
  for (std::uint32_t depth = 0; depth < num_taken; ++depth) metrics_.spec_accepted_per_pos[depth].add();
  live.timeline->note_draft(num_nodes, num_taken);
  if (depth_ == nullptr || sample::accepts_by_law(live.sequence.request().sampling)) return;
  live.sequence.draft.shrink_to(num_nodes);
  const int taken = path_.empty() ? sample::TokenTree::kRoot : static_cast<int>(path_.back());
  depth_->note_walk(live.sequence.id(), live.sequence.draft, taken);
}

// A step in which anybody could have a draft: what its rows cost is known now, if none is a prompt's.
void Engine::note_draft_step(const Flight& flight, Duration step_time) {
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

// For the drafter: the rows that are permanent now, as far as the token behind each is known, and what its lookahead
// nodes saw.
void Engine::note_observed(const Live& live, const flow::PlannedSequence& planned,
                           std::span<const flow::StepChoice> nodes) {
  if (drafter_ == nullptr || !live.followed || live.search != nullptr ||
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
  while (!rows.empty() && blocks[first_position / sequence.table.block_tokens()] == kv::kNoBlock) {
    rows = rows.subspan(1);  // a window has passed it by in this very step
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

// A drafter begins steps of its own on the device, and with them what the runner lent is over.
void Engine::keep_candidates() {
  std::size_t count = 0;
  const auto for_each_list = [&](auto&& body) {
    for (Live* live : touched_) {
      for (Told& told : live->earlier) body(told.top);
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

void Engine::observe(const Flight& flight) {
  if (observed_.empty()) return;
  keep_candidates();
  const TimePoint before = clock_.now();
  drafter_->observe({observed_, runner_.states()});
  const double seconds = std::chrono::duration<double>(clock_.now() - before).count();
  metrics_.spec_observing_s.observe(seconds);
  const bool all_decode = std::ranges::all_of(flight.plan->sequences, &flow::PlannedSequence::decodes);
  observing_seconds_ = all_decode ? seconds : 0.0;  // prompts are not drafts' cost
}

}  // namespace quire::engine
