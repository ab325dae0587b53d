// The engine: takes admitted requests, runs them step by step on a Runner, and tells each stream its tokens.
// CONTRACT.md in this directory says owner, thread and invariants of every noun here.
// Owner   app. Borrows everything in EngineParts; all of it outlives the engine.
// Thread  engine; abandon() and step() alike.
// Fails   a fault contained to one request ends that request; anything else is our bug (CHECK) or the device's
// (exception).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/thread_role.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/cache_feed.h"
#include "core/bridge/control_queue.h"
#include "core/bridge/engine_status.h"
#include "core/engine/cache_reporter.h"
#include "core/engine/cache_task.h"
#include "core/engine/search.h"
#include "core/flow/step_choice.h"
#include "core/kv/block_pool.h"
#include "core/kv/prefix_index.h"
#include "core/model/runner.h"
#include "core/observe/metrics.h"
#include "core/schedule/scheduler.h"
#include "core/speculate/depth/depth_control.h"
#include "core/speculate/drafter.h"

namespace quire::engine {

struct EngineOptions {
  schedule::SchedulerOptions scheduler;
  std::uint32_t vocab = 0;            // logits width: a prompt id at or above it is refused
  std::uint32_t max_model_len = 0;    // prompt + max_tokens never exceed it
  std::uint32_t max_draft_nodes = 0;  // of a sequence in a step, where there is a drafter
  bool jump_ahead = true;             // a token that a grammar leaves no choice of waits for no step of its own
  bool prefix_caching = true;         // else blocks are shared among living sequences alone
  bool check_blocks = false;          // the pool's invariants, every step (debug builds always)
  bool poison_blocks = false;         // blocks given back, and fresh ones, are filled with NaN
  bool log_blocks = false;            // a line for every sequence that ends: its tokens and blocks
  kv::PrefixIndexOptions prefix_index{};
  std::string numeric_mode{};                         // a saved cache is good for this one alone
  Duration stall_timeout = std::chrono::seconds(30);  // a client that reads nothing for so long is dropped
  // Prompts are cut so that a step is expected to take no longer than this, from the measured time of a row: while
  // streams run, and else (a step is also how long a cancel may wait, and what liveness is judged by). Zero: only the
  // budget cuts.
  Duration max_step_time = std::chrono::milliseconds(100);
  Duration max_prompt_step_time = std::chrono::seconds(1);
  Duration min_step_time{};  // a step takes so long at least: a toy model's pace, for load tests
};

struct EngineParts {
  model::Runner& runner;
  kv::BlockPool& pool;
  bridge::AdmissionQueue& admission;
  bridge::ControlQueue& control;
  bridge::Doorbell& doorbell;
  bridge::EngineStatus& status;
  observe::Metrics& metrics;
  const Clock& clock;
  speculate::Drafter* drafter = nullptr;     // null: nobody guesses
  speculate::DepthControl* depth = nullptr;  // null: every draft is as large as it may be
};

class Engine {
 public:
  Engine(const EngineOptions& options, const EngineParts& parts);
  ~Engine();

  // Computes the K and V of these tokens, which stay in the prefix cache for good. Before the first step(); the pool
  // must hold a sequence of maximum length besides. Throws StartError where the model gives no finite result.
  void pin_prefix(std::vector<TokenId> tokens, CacheRoot root) REQUIRES(engine_role);

  // From now on `feed` is told what becomes of the prefix cache, beginning with all that it holds. Before the first
  // step(); `feed` outlives the last one.
  void report_cache(bridge::CacheFeed& feed) REQUIRES(engine_role);

  // One turn. Sleeps on the doorbell when there is nothing to do.
  void step() REQUIRES(engine_role);
  // Ends every sequence with kFailed: the engine stops.
  void abandon() REQUIRES(engine_role);

  // Sends every sequence back that has said a token since it came in, as if the pool were dry. Between steps.
  void preempt_all() REQUIRES(engine_role) {
    scheduler_.preempt_all();
    note_preempted();
  }

  bool idle() const { return live_.empty() && searches_.empty(); }
  std::uint32_t num_live() const { return static_cast<std::uint32_t>(live_.size()); }

  // ---- for who looks on: tools and tests
  const kv::PrefixIndex& prefix_index() const { return index_; }
  const schedule::Scheduler& scheduler() const { return scheduler_; }
  std::span<const kv::BlockTable> pinned() const { return pinned_; }
  template <typename Visit>
  void for_each_sequence(Visit visit) const {
    for (const auto& [id, live] : live_) visit(live->sequence);
  }

 private:
  // A sequence and who waits for it.
  struct Told {
    flow::TokenEvent event;
    std::span<const flow::Candidate> top{};  // the runner's, until the next step
  };
  struct Live {
    Live(SeqId id, bridge::Submission&& submission, kv::BlockPool& pool);
    Live(SeqId id, const Live& parent, kv::BlockPool& pool) REQUIRES(engine_role);
    schedule::Sequence sequence;
    std::shared_ptr<bridge::TokenStream> stream;  // null: it is a hypothesis of `search`
    Search* search = nullptr;
    std::shared_ptr<bridge::Timeline> timeline;  // of the stream, or of the search's first one
    bridge::Credit credit;                       // of the waiting line, until the first run
    bool followed = true;                        // the drafter hears of it, and guesses at it
    std::uint32_t plain_steps = 0;               // since it had a draft; of a followed one that may be let go
    bool keeps_followed = false;                 // a probe: for when guessing pays again
    TimePoint first_run{};
    std::uint32_t num_cached = 0;  // tokens of its prompt that were in the cache then
    bool prompt_counted = false;
    TimePoint first_token{};
    TimePoint last_token{};
    TimePoint parked_since{};
    std::vector<Told> earlier;               // of the step being committed, before its last event
    flow::TokenEvent event;                  // of that step
    std::span<const flow::Candidate> top{};  // with it
    bool has_event = false;
  };

  // A step that is submitted and not collected.
  struct Flight {
    const flow::StepPlan* plan = nullptr;            // the scheduler's
    std::span<schedule::Sequence* const> sequences;  // likewise
    TimePoint submitted_at{};
  };

  // step.cc
  void admit_new() REQUIRES(engine_role);
  Live* make_live(SeqId id, bridge::Submission& submission) REQUIRES(engine_role);
  void refuse(std::span<const std::shared_ptr<bridge::TokenStream>> streams) REQUIRES(engine_role);
  bool fits(const flow::Request& request) const;
  bool can_tell(const bridge::Submission& submission) const;
  void drop_unwanted() REQUIRES(engine_role);
  bool is_late(const std::optional<TimePoint>& deadline) const { return deadline && now_ >= *deadline; }
  bool may_plan() REQUIRES(engine_role);
  bool plan_step() REQUIRES(engine_role);
  void end_roomless() REQUIRES(engine_role);
  void submit(const flow::StepPlan& plan) REQUIRES(engine_role);
  std::span<const flow::StepChoice> collect() REQUIRES(engine_role);
  void note_preempted() REQUIRES(engine_role);
  void obey_orders() REQUIRES(engine_role);
  void rest() REQUIRES(engine_role);
  schedule::PromptRows prompt_rows() const;
  // commit.cc
  void commit(const Flight& flight, std::span<const flow::StepChoice> choices) REQUIRES(engine_role);
  void commit_sequence(const Flight& flight, std::size_t i, std::span<const flow::StepChoice> choices)
      REQUIRES(engine_role);
  void learn_step_time(const Flight& flight, Duration step_time) REQUIRES(engine_role);
  void commit_scores(Live& live, std::span<const flow::StepChoice> scores) REQUIRES(engine_role);
  void commit_pooled(Live& live, std::span<const float> rows) REQUIRES(engine_role);
  void hear(schedule::Sequence& sequence) REQUIRES(engine_role);
  void fail(Live& live) REQUIRES(engine_role);
  void commit_choice(Live& live, const flow::StepChoice& choice) REQUIRES(engine_role);
  void jump_ahead(Live& live) REQUIRES(engine_role);
  // draft.cc
  void draft() REQUIRES(engine_role);
  void ask_for_drafts(const speculate::StepLoad& load) REQUIRES(engine_role);
  void follow_or_not(Live& live) REQUIRES(engine_role);
  speculate::StepLoad load_without_drafts() const;
  std::uint32_t draft_limit(const schedule::Sequence& sequence) const;
  std::uint32_t draft_depth(const schedule::Sequence& sequence) REQUIRES(engine_role);
  void take_draft(schedule::Sequence& sequence, const sample::TokenTree& tree, std::uint32_t max_depth)
      REQUIRES(engine_role);
  void walk_draft(Live& live, std::span<const flow::StepChoice> nodes) REQUIRES(engine_role);
  void note_walk(Live& live, std::uint32_t num_nodes) REQUIRES(engine_role);
  void note_draft_step(const Flight& flight, Duration step_time) REQUIRES(engine_role);
  void note_observed(const Live& live, const flow::PlannedSequence& planned, std::span<const flow::StepChoice> nodes)
      REQUIRES(engine_role);
  void keep_candidates() REQUIRES(engine_role);
  void observe(const Flight& flight) REQUIRES(engine_role);
  void count_prompt(Live& live) REQUIRES(engine_role);
  void count_token(Live& live) REQUIRES(engine_role);
  // search.cc
  void begin_search(Live& root, std::unique_ptr<Search> search) REQUIRES(engine_role);
  void hear_offer(Live& live, const flow::StepChoice& choice) REQUIRES(engine_role);
  void advance_searches() REQUIRES(engine_role);
  void advance(Search& search) REQUIRES(engine_role);
  void tell_best(Search& search) REQUIRES(engine_role);
  void end_search(Search& search, flow::Finish finish) REQUIRES(engine_role);
  // deliver.cc
  void deliver() REQUIRES(engine_role);
  void count_request(const Live& live) REQUIRES(engine_role);
  void finish(Live& live, flow::Finish finish) REQUIRES(engine_role);
  void forget(Live& live) REQUIRES(engine_role);
  void drop_flights() REQUIRES(engine_role);
  void count_end(const bridge::TokenStream& stream, flow::Finish finish) REQUIRES(engine_role);
  void count_slos(const Live& live, flow::Finish finish) REQUIRES(engine_role);
  void note_pace(const Live& live, flow::Finish finish) REQUIRES(engine_role);
  void flush_streams() REQUIRES(engine_role);
  void publish_gauges() REQUIRES(engine_role);

  Live& live_of(SeqId id) { return *live_.at(id); }

  const EngineOptions options_;
  model::Runner& runner_;
  kv::BlockPool& pool_;
  bridge::AdmissionQueue& admission_;
  bridge::ControlQueue& control_;
  bridge::Doorbell& doorbell_;
  bridge::EngineStatus& status_;
  observe::Metrics& metrics_;
  const Clock& clock_;
  kv::PrefixIndex index_;
  schedule::Scheduler scheduler_;
  speculate::Drafter* const drafter_;
  speculate::DepthControl* const depth_;
  std::unique_ptr<CacheReporter> reporter_;  // null: nobody follows the prefix cache

  std::unordered_map<SeqId, std::unique_ptr<Live>> live_;
  std::vector<std::unique_ptr<Search>> searches_;
  static constexpr std::size_t kMostInFlight = 2;  // so many plans the scheduler keeps
  std::vector<Flight> flights_;                    // the oldest first
  std::vector<speculate::Asked> asked_;
  std::vector<schedule::Sequence*> asking_;
  std::vector<speculate::Candidate> candidates_;
  std::size_t num_planned_ = 0;  // of asking_, the first: whose drafts' sizes are planned
  std::vector<std::uint32_t> budgets_;
  std::vector<sample::TokenTree> trees_;
  std::vector<speculate::Observed> observed_;
  std::vector<std::uint32_t> observed_rows_;
  std::vector<speculate::LookaheadResult> lookahead_results_;
  std::vector<std::uint32_t> path_;  // nodes that the walk took, of one sequence
  std::vector<flow::Candidate> kept_candidates_;

  std::vector<Live*> touched_;                           // sequences with rows in the step being committed
  std::vector<bridge::StreamHub*> hubs_;                 // whose streams got news since the last flush
  std::vector<std::pair<SeqId, flow::Finish>> dropped_;  // scratch of drop_unwanted()
  std::vector<kv::BlockTable> pinned_;
  std::uint32_t num_pinned_ = 0;     // blocks that they hold
  std::unique_ptr<CacheTask> task_;  // a saving or loading under way
  bridge::ControlOrder order_;       // that it obeys
  std::uint64_t next_seq_ = 1;
  TimePoint now_{};                 // read once a turn
  TimePoint collected_at_{};        // the last step
  TimePoint began_at_{};            // the step being committed: before that its device had the one before to do
  double observing_seconds_ = 0.0;  // of the step before: a part of what drafts cost
  double gap_seconds_ = 0.0;        // between tokens of one sequence, all those that the step has told
  std::uint32_t num_gaps_ = 0;
};

}  // namespace quire::engine
