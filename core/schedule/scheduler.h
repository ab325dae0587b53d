// Decides what the next step runs: running sequences first, then waiting ones, inside one token budget.
//   - Every sequence that decodes gets its row before any prompt gets a chunk: a long prompt never stalls a stream.
//   - A waiting sequence is admitted when blocks for all its tokens are free; strictly in order of arrival.
//   - A running sequence grows at a block boundary. When the pool is dry the newest running sequence is sent back to
//   wait
//     and recomputed later; being a function of its own tokens, it goes on as if nothing had been.
// The oldest running sequence is never sent back for another, and the pool holds one sequence of maximum length:
// somebody always finishes.
// Shape   at most max_num_seqs running sequences and max_num_batched_tokens rows a step.
// Owner   the engine. Borrows sequences from add() to remove().
// Thread  engine.
// Source  Orca (Yu et al. 2022) iteration-level scheduling; Sarathi-Serve (Agrawal et al. 2024) chunked prefill; vLLM's
//         preemption by recompute.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/base/thread_role.h"
#include "core/flow/step_plan.h"
#include "core/kv/block_pool.h"
#include "core/schedule/sequence.h"

namespace quire::schedule {

// Who is admitted next.
enum class Policy : std::uint8_t {
  kFcfs,      // by arrival
  kPriority,  // Request::priority, lower first
  kDeadline,  // Request::deadline, earlier first, none last
  kFair,      // tenants in turn: deficit round robin over tokens (Shreedhar & Varghese 1996)
  kCache,     // the longest cached prefix first
};
// Who gives up its place when the pool is dry. Ties, and what the name leaves open: the newest.
enum class Victim : std::uint8_t { kNewest, kLongest, kLowestPriority };

struct SchedulerOptions {
  std::uint32_t max_num_seqs = 64;
  std::uint32_t max_num_batched_tokens = 512;  // >= max_num_seqs, so that every decoding sequence fits in one step
  Policy policy = Policy::kFcfs;
  Victim victim = Victim::kNewest;
  std::uint32_t max_overtakes = 64;         // so many later arrivals may go first; then a waiting sequence is next
  std::uint32_t fair_quantum_tokens = 512;  // kFair: what a tenant may take more, each round
  std::uint32_t num_swap_blocks = 0;        // host blocks that preempted sequences move to; 0: they are recomputed
  std::uint32_t window = 0;  // every layer looks back so far and no farther: older blocks are given back; 0: all
};

struct PromptRows {
  std::uint32_t while_streaming = ~0u;  // while somebody decodes
  std::uint32_t alone = ~0u;
};

class Scheduler {
 public:
  // Without an index every prompt is computed whole.
  Scheduler(SchedulerOptions options, kv::BlockPool& pool, kv::PrefixIndex* index = nullptr);

  void add(Sequence& sequence) REQUIRES(engine_role);
  // Forgets it, whatever its state. Its blocks are its own to give back.
  void remove(Sequence& sequence) REQUIRES(engine_role);

  // The next step. Empty when nothing can run. Valid until the next plan(); planned()[i] is plan.sequences[i]'s
  // sequence. Prompts get at most so many rows of the budget (at least one): a device that needs seconds for a full
  // budget must not make streams wait for it, nor look stuck. Tokens do not depend on it.
  const flow::StepPlan& plan(const PromptRows& limit = {}) REQUIRES(engine_role);
  std::span<Sequence* const> planned() const { return planned_; }
  // Sequences that plan() moved from waiting to running, first runs and returns alike.
  std::span<Sequence* const> admitted() const { return admitted_; }

  std::span<Sequence* const> running() const { return running_; }
  std::uint32_t num_waiting() const { return static_cast<std::uint32_t>(waiting_.size()); }
  std::uint64_t num_preemptions() const { return num_preemptions_; }

 private:
  void plan_running(bool decoding) REQUIRES(engine_role);
  void admit_waiting() REQUIRES(engine_role);
  void plan_rows(Sequence& sequence) REQUIRES(engine_role);
  bool make_room(Sequence& asker, std::uint32_t num_tokens) REQUIRES(engine_role);
  bool send_back_parked() REQUIRES(engine_role);
  Sequence* newest(bool parked) const;
  void preempt(Sequence& victim) REQUIRES(engine_role);
  void emit(Sequence& sequence) REQUIRES(engine_role);

  const SchedulerOptions options_;
  kv::BlockPool& pool_;
  kv::PrefixIndex* const index_;
  std::deque<Sequence*> waiting_;   // arrival order; sequences sent back stand in front
  std::vector<Sequence*> running_;  // in order of admission
  std::vector<Sequence*> turn_;     // running_ as it was when a planning pass began
  std::vector<Sequence*> planned_;
  std::vector<Sequence*> admitted_;
  flow::StepPlan plan_;
  std::uint32_t budget_ = 0;  // rows left in the step being planned
  std::uint64_t num_preemptions_ = 0;
};

}  // namespace quire::schedule
