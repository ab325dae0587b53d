// Speculative decoding in the engine: asks the drafter for drafts, checks them, verifies them against the sampled
// tokens, and shows the drafter the rows that became permanent.
//   propose() → plan and run the step → begin_commit() → per sequence: verify(), note_observed() → observe()
// Shape   a draft has at most max_draft_nodes nodes. Its node i is stored in the slot i + 1 after its sequence's last
//         row; accepted nodes are moved to their positions.
// Owner   the engine; borrows drafter, depth control, runner, metrics and clock.
// Thread  engine.
// Source  Leviathan et al. 2023; drafts as trees: SpecInfer (Miao et al. 2024).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/clock.h"
#include "core/base/thread_role.h"
#include "core/engine/live.h"
#include "core/flow/step_choice.h"
#include "core/flow/step_plan.h"
#include "core/model/run/runner.h"
#include "core/observe/metrics.h"
#include "core/speculate/depth/depth_control.h"
#include "core/speculate/drafter.h"

namespace quire::engine {

class LiveSequences;

struct DraftingOptions {
  std::uint32_t max_draft_nodes = 0;  // of a sequence in a step
  std::uint32_t vocab = 0;            // draft tokens are below it
  std::uint32_t max_num_seqs = 0;
  std::uint32_t max_num_batched_tokens = 0;  // rows of a step
};

class Drafting {
 public:
  // Commits the sampled token of one more row: sets the event of `live`.
  using CommitChoice = std::function<void(Live& live, const flow::StepChoice& choice)>;

  // drafter null: no drafts. depth null: every draft is as large as it may be.
  Drafting(const DraftingOptions& options, speculate::Drafter* drafter, speculate::DepthControl* depth,
           model::Runner& runner, observe::Metrics& metrics, const Clock& clock);

  bool enabled() const { return drafter_ != nullptr; }

  // ---- before a step
  // Gives the running sequences that can have one their drafts for the step to be planned; all others have none.
  // Nothing happens while a step is in flight. max_prompt_rows: prompt rows that the step may have beside decoding
  // ones.
  void propose(std::span<schedule::Sequence* const> running, LiveSequences& live, std::uint64_t max_prompt_rows)
      REQUIRES(engine_role);

  // ---- sequences and blocks
  // The sequence is about to run for the first time. While drafts do not pay only one sequence in 16 is tracked,
  // because observing prompts costs time.
  void admit(Live& live) REQUIRES(engine_role);
  void release(SeqId id) REQUIRES(engine_role);  // preempted
  void forget(SeqId id) REQUIRES(engine_role);   // ended
  void track_blocks(std::span<const flow::BlockOp> ops) REQUIRES(engine_role);

  // ---- commit
  void begin_commit(const Flight& flight, Duration step_time) REQUIRES(engine_role);
  // Follows the draft from the token that live.event holds: as long as a child carries the sampled token, that child's
  // row is committed by `commit`, and its K and V are copied to the row's position. `nodes`: the draft's sampled
  // tokens.
  void verify(Live& live, std::span<const flow::StepChoice> nodes, const CommitChoice& commit) REQUIRES(engine_role);
  // Rows of a sequence that is not sampled in this step: part of its prompt.
  void note_prompt_rows(const Live& live, const flow::PlannedSequence& planned) REQUIRES(engine_role);
  // Rows of a sequence whose draft was verified last.
  void note_observed(const Live& live, const flow::PlannedSequence& planned, std::span<const flow::StepChoice> nodes)
      REQUIRES(engine_role);
  // Shows the drafter all that was noted. Candidate lists of `touched` are copied before, since the drafter may run
  // steps of its own, which end what the runner lent.
  void observe(const Flight& flight, std::span<Live* const> touched) REQUIRES(engine_role);

 private:
  void ask(std::span<const std::uint32_t> budgets, const speculate::StepLoad& load) REQUIRES(engine_role);
  speculate::StepLoad load_without_drafts(std::span<schedule::Sequence* const> running,
                                          std::uint64_t max_prompt_rows) const;
  std::uint32_t limit_of(const schedule::Sequence& sequence) const;
  std::uint32_t depth_of(const Live& live) const REQUIRES(engine_role);
  void take(schedule::Sequence& sequence, const sample::TokenTree& tree, std::uint32_t max_depth) REQUIRES(engine_role);
  void note_verification(Live& live, std::uint32_t num_nodes) REQUIRES(engine_role);
  void keep_candidates(std::span<Live* const> touched) REQUIRES(engine_role);

  const DraftingOptions options_;
  speculate::Drafter* const drafter_;
  speculate::DepthControl* const depth_;
  model::Runner& runner_;
  observe::Metrics& metrics_;
  const Clock& clock_;

  // The step to be planned
  std::vector<Live*> asking_;
  std::vector<speculate::Candidate> candidates_;  // [asking_]
  std::vector<std::uint32_t> budgets_;            // [asking_] nodes
  std::size_t num_planned_ = 0;                   // the first of asking_, whose draft sizes depth_ plans
  std::vector<speculate::Asked> asked_;
  std::vector<sample::TokenTree> trees_;  // [asked_]
  // The step being committed
  std::vector<std::uint32_t> path_;       // accepted nodes of the sequence verified last
  std::vector<backend::RowCopy> copies_;  // of the path, in order
  std::vector<speculate::Observed> observed_;
  std::vector<std::uint32_t> observed_rows_;
  std::vector<speculate::LookaheadResult> lookahead_results_;
  std::vector<flow::Candidate> kept_candidates_;
  double observing_seconds_ = 0.0;  // of the step before; a part of the cost of drafts
};

}  // namespace quire::engine
