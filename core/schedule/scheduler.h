// Plans each step: rows of running sequences first, then of waiting ones, within one budget of rows.
//   - Every decoding sequence gets its row before any prompt gets a chunk: a long prompt never stalls a stream.
//   - If more sequences may run than a step has rows, decoding sequences are served round-robin: in order of admission,
//     each step from where the last one stopped. Half of the rows are left to prompts and admissions while there are
//     any.
//   - A waiting sequence is admitted, in the policy's order, when blocks for all its tokens (lossy: of its next span)
//     are free; no other is admitted before the one that is next. A sequence whose prefix a running sequence is
//     computing waits for that prefix; meanwhile others are admitted before it.
//   - A running sequence takes a block at each block boundary, and copies a shared block before it writes there. In
//     groups of layers that do not keep all positions it gives back what no later row reads, and has blocks for a
//     window and a step only. If no block is free, blocks that are kept for restore points to come are given back;
//     then the policy's victim is preempted, and is later recomputed or swapped in. Its tokens are a function of
//     itself alone, so it goes on as if nothing had happened.
//   - Drafts are planned last, from the rows, logits rows and blocks that are left. No sequence waits or is preempted
//     for a draft.
//   - Every running sequence is entitled to one logits row a step, and so is the next waiting sequence if another may
//     run. A scored prompt, all of whose rows are logits rows, takes the spare ones besides its own: it advances by at
//     least one row whenever a plain prompt would, and delays no other sequence.
//   - A step may be planned while the one before it is in flight; its rows follow the rows in flight. A decoding
//     sequence that waits only for its next token id (can_look_ahead()) gets a row, into which the device feeds that
//     id; a sequence that needs any other result first skips the plan. So does one that finds no free block: that plan
//     has no preemption and no later admission (short_of_room()), since a block that a step in flight writes must stay
//     with its sequence until all steps are collected.
// No sequence starves: the policies bound overtaking (waiting_queue.h); unless paused, a sequence is not preempted for
// a newer one before it has had output since its admission, so every scheduled period advances it by at least one
// token; the pool holds one sequence of maximum length, so at least one sequence always runs; and round-robin serves no
// sequence twice before it has served all others once.
// Shape   at most max_num_seqs running sequences, max_num_batched_tokens rows and max_logits_rows logits rows a step.
// Owner   the engine. Borrows sequences from add() to remove().
// Thread  engine.
// Source  Orca (Yu et al. 2022) iteration-level scheduling; Sarathi-Serve (Agrawal et al. 2024) chunked prefill; vLLM's
//         preemption by recompute and by swapping.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/thread_role.h"
#include "core/flow/step_plan.h"
#include "core/flow/wait_cause.h"
#include "core/kv/block_pool.h"
#include "core/kv/prefix_index.h"
#include "core/schedule/options.h"
#include "core/schedule/sequence/sequence.h"
#include "core/schedule/waiting_queue.h"

namespace quire::schedule {

// Most prompt rows of a step.
struct PromptRows {
  std::uint32_t while_streaming = ~0u;  // if any sequence decodes, in this step or in one in flight
  std::uint32_t alone = ~0u;
};

// Counts since the start.
struct SchedulerCounts {
  std::uint64_t recomputed = 0;    // preemptions that gave the blocks back
  std::uint64_t swapped = 0;       // preemptions that moved the blocks' content to the host
  std::uint64_t block_hits = 0;    // blocks that admitted sequences took from the prefix cache
  std::uint64_t block_misses = 0;  // other blocks that admitted sequences needed
  std::uint64_t block_copies = 0;  // blocks copied before a write
};

class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, kv::BlockPool& pool, kv::PrefixIndex& index);

  void add(Sequence& sequence) REQUIRES(engine_role);
  // Adds a fork, which goes on where its parent stands. It runs at once if its parent runs, fewer than max_num_seqs
  // sequences run and there is host memory for its answer; else it gives its blocks back and waits.
  void add_fork(Sequence& fork, const Sequence& parent) REQUIRES(engine_role);
  // Removes the sequence, whatever its state. It keeps its blocks: its BlockTable gives them back.
  void remove(Sequence& sequence) REQUIRES(engine_role);

  // Preempts every running sequence that has had output since its admission and has no row in flight, as if the pool
  // had no free block.
  void preempt_all() REQUIRES(engine_role);

  // Plans the next step; empty if nothing can run. planned()[i] is the sequence of plan.sequences[i]. Both are valid
  // until the second plan() after this one. Prompts get at most `limit` rows of the budget, and at least one: on a
  // device that needs seconds for a full budget, streams must not wait that long, nor the engine look stuck. Tokens do
  // not depend on `limit`.
  const flow::StepPlan& plan(const PromptRows& limit = {}) REQUIRES(engine_role);
  std::span<Sequence* const> planned() const { return step_->sequences; }
  // True if the last plan would have preempted a sequence, had no step been in flight.
  bool short_of_room() const { return short_of_room_; }
  // Sequences that the last plan() did not admit because there is no host memory for their answers. They still wait;
  // the caller has to end them.
  std::span<Sequence* const> out_of_memory() const { return out_of_memory_; }
  // Sequences that the last plan() moved from waiting to running, for the first time or after a preemption.
  std::span<Sequence* const> admitted() const { return admitted_; }

  struct Preempted {
    const Sequence* sequence = nullptr;
    bool swapped = false;
  };
  // Sequences that the last plan() or preempt_all() preempted.
  std::span<const Preempted> preempted() const { return preempted_; }

  // True if no block operation that was decided between steps waits for the next plan.
  bool settled() const { return early_ops_.empty(); }

  std::span<Sequence* const> running() const { return running_; }
  std::uint32_t num_waiting() const { return waiting_.size(); }
  const SchedulerCounts& counts() const { return counts_; }
  std::uint64_t num_preemptions() const { return counts_.recomputed + counts_.swapped; }
  std::uint64_t num_overtakes() const { return waiting_.num_overtakes(); }
  double served(std::uint32_t tenant) const { return waiting_.served(tenant); }

 private:
  static constexpr std::size_t kMostGroups = 32;

  struct Step {
    flow::StepPlan plan;
    std::vector<Sequence*> sequences;  // [plan.sequences]
  };

  void plan_running(bool decoding) REQUIRES(engine_role);
  void plan_round_robin() REQUIRES(engine_role);
  bool serves_round_robin() const { return options_.max_num_batched_tokens < options_.max_num_seqs; }
  void take_rows(Sequence& sequence, std::uint32_t rows, std::uint32_t entitled) REQUIRES(engine_role);
  void plan_drafts() REQUIRES(engine_role);
  std::uint32_t draft_room(const Sequence& sequence) const REQUIRES(engine_role);
  void append_to_plan(Sequence& sequence) REQUIRES(engine_role);
  void append_tables(const Sequence& sequence, std::uint32_t num_table) REQUIRES(engine_role);
  void append_slots() REQUIRES(engine_role);
  // admit.cc
  void enter(Sequence& sequence) REQUIRES(engine_role);
  void leave(Sequence& sequence) REQUIRES(engine_role);
  void admit_waiting() REQUIRES(engine_role);
  bool admit(Sequence& sequence) REQUIRES(engine_role);
  flow::WaitCause admit_until_held() REQUIRES(engine_role);
  static bool can_be_waited_for(const Sequence& sequence);
  bool waits_for_prefix(Sequence& sequence) REQUIRES(engine_role);
  std::uint32_t next_rows(const Sequence& sequence, std::uint32_t entitled) const;
  bool reserve(Sequence& sequence, std::uint32_t num_tokens) REQUIRES(engine_role);
  kv::BlockTable::Reach reach_of(const Sequence& sequence, std::uint32_t num_tokens) const;
  void grow(Sequence& sequence, const kv::BlockTable::Reach& reach) REQUIRES(engine_role);
  void copy_next_block(Sequence& sequence, std::uint32_t group) REQUIRES(engine_role);
  bool must_copy(const Sequence& sequence, std::uint32_t group) const;
  void poison_emptied() REQUIRES(engine_role);
  void poison_taken(BlockId block) REQUIRES(engine_role);
  // preempt.cc
  bool reserve_or_preempt(Sequence& asker, std::uint32_t num_tokens) REQUIRES(engine_role);
  bool drop_restore_points() REQUIRES(engine_role);
  bool preempt_paused() REQUIRES(engine_role);
  Sequence& victim_for(Sequence& asker) const;
  void preempt(Sequence& victim) REQUIRES(engine_role);
  void cancel_block_ops(const Sequence& victim);
  bool swap_out(Sequence& victim) REQUIRES(engine_role);
  bool swap_in(Sequence& sequence, std::uint32_t num_tokens) REQUIRES(engine_role);
  void forget_swapped(Sequence& sequence) REQUIRES(engine_role);

  const SchedulerOptions options_;
  kv::BlockPool& pool_;
  kv::PrefixIndex& index_;
  WaitingQueue waiting_;
  std::vector<Sequence*> running_;   // in order of admission
  std::vector<Sequence*> snapshot_;  // running_ as it was when a planning pass began
  std::vector<Sequence*>
      prefix_producers_;  // running, without output yet: waiting sequences may wait for their prefixes
  std::vector<Sequence*> admitted_;
  std::vector<Sequence*> out_of_memory_;
  std::vector<Preempted> preempted_;
  std::vector<std::uint32_t> free_host_blocks_;
  std::vector<std::uint32_t> free_residual_groups_;
  std::vector<flow::BlockOp> early_ops_;  // for the next plan: from forks and preemptions between steps
  std::array<Step, 2> steps_;
  Step* step_ = steps_.data();           // the step planned last
  flow::StepPlan* plan_ = &step_->plan;  // the plan that takes block operations
  bool looks_ahead_ = false;             // steps are in flight while this one is planned
  bool short_of_room_ = false;
  std::size_t round_robin_next_ = 0;    // round-robin: index in running_ of the first to serve in the next step
  std::uint32_t budget_ = 0;            // rows left in the step being planned
  std::uint32_t spare_logit_rows_ = 0;  // logits rows left that no sequence is entitled to
  std::uint32_t num_choices_ = 0;       // choices of the step being planned, so far
  SchedulerCounts counts_;
  std::uint64_t num_plans_ = 0;
  flow::WaitCause wait_cause_ = flow::WaitCause::kNone;  // why the last plan admitted no further sequence
};

}  // namespace quire::schedule
