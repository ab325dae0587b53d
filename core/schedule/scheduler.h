// Decides what the next step runs: running sequences first, then waiting ones, inside one token budget.
//   - Every sequence that decodes gets its row before any prompt gets a chunk: a long prompt never stalls a stream.
//   - Where more sequences may run than a step has rows, those that decode are served round-robin: in the order of
//     admission, each step from where the last one stopped; and half of the rows are the others', while anybody else
//     can use them.
//   - A waiting sequence is admitted, in the policy's order, when blocks for all its tokens are free; nobody is
//   admitted past the
//     one whose turn it is. One whose prompt somebody else is computing right now waits for that instead, and lets
//     others pass.
//   - A running sequence grows at a block boundary, and copies a block that it shares before it writes there. When the
//   pool is
//     dry the policy's victim is sent back to wait, and is recomputed (or swapped in) later; being a function of its
//     own tokens, it goes on as if nothing had been.
//   - Drafts come last: of what rows, rows of logits and blocks are left then. Nobody waits or gives way for guesses.
//   - Every running sequence is entitled to one row of logits a step, and so is the next that waits while there is a
//     place. A prompt that is scored, whose rows all want logits, takes what is left beside its own: it gets on by a
//     row at least whenever a plain one would, and holds nobody up.
//   - A step may be planned while the one before it is in flight: its rows stand behind those. Who decodes and has
//     nothing to its next row but the token (can_look_ahead()) has a row there whose token is the choice it is still to
//     make; all others sit such a plan out. So does who finds no room: nobody is sent back, or let in after that,
//     before all is collected
//     (short_of_room()), for what a step in flight stores into must stay its sequence's.
// Nobody starves: the policies bound who may go first (waiting_line.h); a sequence is not sent back for a newer one
// before it has said a token since its admission, so every scheduled period moves it on by one token at least; the pool
// holds one sequence of maximum length, so somebody always runs; and nobody is served twice before everybody else has
// been once.
// Shape   at most max_num_seqs running sequences, max_num_batched_tokens rows and max_logit_rows rows of logits a step.
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
#include "core/schedule/sequence.h"
#include "core/schedule/waiting_line.h"

namespace quire::schedule {

struct PromptRows {
  std::uint32_t while_streaming = ~0u;  // while somebody decodes
  std::uint32_t alone = ~0u;
};

// Since the start.
struct SchedulerCounts {
  std::uint64_t recomputed = 0;    // preemptions that threw blocks away
  std::uint64_t swapped = 0;       // preemptions that moved them
  std::uint64_t block_hits = 0;    // blocks that sequences began with
  std::uint64_t block_misses = 0;  // blocks of their tokens that they had to compute
  std::uint64_t block_copies = 0;  // copied before a write
};

class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, kv::BlockPool& pool, kv::PrefixIndex& index);

  void add(Sequence& sequence) REQUIRES(engine_role);
  // A fork goes on where its parent stands: running beside it, or waiting where there is no place or no blocks to go on
  // with.
  void add_fork(Sequence& fork, const Sequence& parent) REQUIRES(engine_role);
  // Forgets it, whatever its state. Its blocks are its own to give back.
  void remove(Sequence& sequence) REQUIRES(engine_role);

  // Sends every running sequence back that has said a token since it came in, as if the pool were dry.
  void preempt_all() REQUIRES(engine_role);

  // The next step. Empty when nothing can run. Valid until the next plan() but one; planned()[i] is plan.sequences[i]'s
  // sequence. Prompts get at most so many rows of the budget (at least one): a device that needs seconds for a full
  // budget must not make streams wait for it, nor look stuck. Tokens do not depend on it.
  const flow::StepPlan& plan(const PromptRows& limit = {}) REQUIRES(engine_role);
  std::span<Sequence* const> planned() const { return step_->sequences; }
  // The last plan would have sent somebody back, had no step been in flight.
  bool short_of_room() const { return short_of_room_; }
  // Sequences that plan() could not admit because there is no memory for what they may come to say: they wait still,
  // and are to be ended.
  std::span<Sequence* const> roomless() const { return roomless_; }
  // Sequences that plan() moved from waiting to running, first runs and returns alike.
  std::span<Sequence* const> admitted() const { return admitted_; }

  struct Preempted {
    const Sequence* sequence = nullptr;
    bool swapped = false;
  };
  // Sequences that plan(), or preempt_all(), sent back.
  std::span<const Preempted> preempted() const { return preempted_; }

  // Nothing that was decided between steps still has to be done to blocks.
  bool settled() const { return early_ops_.empty(); }

  std::span<Sequence* const> running() const { return running_; }
  std::uint32_t num_waiting() const { return waiting_.size(); }
  const SchedulerCounts& counts() const { return counts_; }
  std::uint64_t num_preemptions() const { return counts_.recomputed + counts_.swapped; }
  std::uint64_t num_overtakes() const { return waiting_.num_overtakes(); }
  double served(std::uint32_t tenant) const { return waiting_.served(tenant); }

 private:
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
  void emit(Sequence& sequence) REQUIRES(engine_role);
  // admit.cc
  void enter(Sequence& sequence) REQUIRES(engine_role);
  void leave(Sequence& sequence) REQUIRES(engine_role);
  void admit_waiting() REQUIRES(engine_role);
  bool admit(Sequence& sequence) REQUIRES(engine_role);
  flow::WaitCause admit_until_held() REQUIRES(engine_role);
  flow::WaitCause cause_of_wait(const Sequence& sequence) const;
  static bool can_be_waited_for(const Sequence& sequence);
  bool waits_for_prefix(Sequence& sequence) REQUIRES(engine_role);
  std::uint32_t next_rows(const Sequence& sequence, std::uint32_t entitled) const;
  bool reserve(Sequence& sequence, std::uint32_t num_tokens) REQUIRES(engine_role);
  bool must_copy(const Sequence& sequence) const;
  void poison_emptied() REQUIRES(engine_role);
  void note_fresh(BlockId block) REQUIRES(engine_role);
  // preempt.cc
  bool make_room(Sequence& asker, std::uint32_t num_tokens) REQUIRES(engine_role);
  bool send_back_parked() REQUIRES(engine_role);
  Sequence& victim_for(Sequence& asker) const;
  void preempt(Sequence& victim) REQUIRES(engine_role);
  void take_back_copies(const Sequence& victim);
  bool swap_out(Sequence& victim) REQUIRES(engine_role);
  bool swap_in(Sequence& sequence, std::uint32_t num_tokens) REQUIRES(engine_role);
  void forget_swapped(Sequence& sequence) REQUIRES(engine_role);

  const SchedulerOptions options_;
  kv::BlockPool& pool_;
  kv::PrefixIndex& index_;
  WaitingLine waiting_;
  std::vector<Sequence*> running_;   // in order of admission
  std::vector<Sequence*> snapshot_;  // running_ as it was when a planning pass began
  std::vector<Sequence*> unheard_;   // of the running ones, those that others may wait for
  std::vector<Sequence*> admitted_;
  std::vector<Sequence*> roomless_;
  std::vector<Preempted> preempted_;
  std::vector<std::uint32_t> free_host_blocks_;
  std::vector<std::uint32_t> free_open_groups_;
  std::vector<flow::BlockOp> early_ops_;  // of forks and preemptions between steps, for the next plan
  std::array<Step, 2> steps_;
  Step* step_ = steps_.data();           // planned last
  flow::StepPlan* plan_ = &step_->plan;  // where block operations go
  bool looks_ahead_ = false;             // steps are in flight while this one is planned
  bool short_of_room_ = false;
  std::size_t next_served_ = 0;         // index in running_: who is first in the next step, where not all are in each
  std::uint32_t budget_ = 0;            // rows left in the step being planned
  std::uint32_t spare_logit_rows_ = 0;  // of logits, that nobody is entitled to
  std::uint32_t num_choices_ = 0;       // of the step being planned
  SchedulerCounts counts_;
  std::uint64_t num_plans_ = 0;
  flow::WaitCause held_by_ = flow::WaitCause::kNone;  // why the last plan let nobody more in
};

}  // namespace quire::schedule
