#include "tests/sim/world.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/expected.h"
#include "tests/sim/invariants.h"
#include "tests/support/cache_tracker.h"
#include "tests/support/engine_rig.h"
#include "tests/support/scripted_drafter.h"

namespace quire::sim {
namespace {

using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RigOptions;
using quire::testing::ToyRunner;

constexpr Duration kIteration = std::chrono::milliseconds(1);
constexpr int kStallIterations = 40;

// The longest that a turn takes.
Duration iteration_time(const World& world) {
  return kIteration + std::chrono::milliseconds(world.row_ms) * world.rows;
}

RigOptions rig_options(const World& world, speculate::Drafter* drafter = nullptr) {
  const auto u32 = [](int value) { return static_cast<std::uint32_t>(value); };
  RigOptions options;
  options.num_blocks = u32(world.blocks);
  options.block_tokens = u32(world.p);
  options.max_num_seqs = u32(world.seqs);
  options.max_num_batched_tokens = u32(world.rows);
  options.max_logits_rows = u32(world.seqs + world.logits);
  options.max_model_len = u32(world.max_len);
  options.vocab = u32(world.vocab);
  options.queue = {.max_sequences = 64};
  options.prefix_caching = world.cache != 0;
  options.hash_bits = u32(world.bits);
  options.policy = static_cast<schedule::Policy>(world.policy);
  options.victim = static_cast<schedule::Victim>(world.victim);
  options.max_overtakes = u32(world.overtakes);
  options.num_swap_blocks = u32(world.swap);
  options.groups = groups_of(world);
  options.restore_tokens = u32(world.restore);
  options.poison_blocks = world.poison != 0;
  // However long a step takes, a client has turns enough to read in.
  options.stall_timeout = kIteration * kStallIterations + 3 * iteration_time(world);
  options.max_streams = 64;
  options.partial_blocks = world.partial_blocks != 0;
  options.residual_groups = world.groups != 0;
  options.jump_ahead = world.jump != 0;
  if (world.draft > 0) options.drafter = drafter;
  options.max_draft_nodes = u32(world.draft);
  return options;
}

// It knows what everybody is going to say.
quire::testing::ScriptedDrafter drafter_of(const World& world, const std::vector<Expected>& expected) {
  std::vector<std::vector<TokenId>> texts;
  for (const Expected& one : expected) {
    for (const Answer& answer : one.answers) {
      texts.push_back(one.request.prompt);
      texts.back().insert(texts.back().end(), answer.tokens.begin(), answer.tokens.end());
    }
  }
  const quire::testing::DrafterScript how{0.7, world.draft % 2 == 0, world.draft % 5 == 0,
                                          static_cast<std::uint32_t>(world.draft)};
  return {how, static_cast<std::uint32_t>(world.vocab), std::move(texts)};
}

// A turn commits a token of somebody, and every sequence commits one each time it has been admitted: so many turns are
// enough for everything to have run one after the other, each prompt again for every token.
std::uint64_t iterations_enough(const Scenario& scenario) {
  std::uint64_t iterations = 100 + 500 * scenario.arrivals.size();  // who never reads looks again after 400
  for (const Arrival& one : scenario.arrivals) {
    const auto sequences = static_cast<std::uint64_t>(std::max(one.n, one.beam));
    const auto prompt_iterations = static_cast<std::uint64_t>(one.len + one.gen) + kStallIterations;
    iterations += sequences * static_cast<std::uint64_t>(std::max(one.gen, 1)) * (prompt_iterations + 2) *
                  static_cast<std::uint64_t>(std::max(one.read, 1));
  }
  if (scenario.world.depth > 1)
    iterations *= 3;  // with one turn to submit, one to collect, and one that finds no room ahead
  return iterations + static_cast<std::uint64_t>(scenario.arrivals.empty() ? 0 : scenario.arrivals.back().at);
}

class Sim {
 public:
  Sim(const Scenario& scenario, Counts& counts)
      : scenario_(scenario),
        counts_(counts),
        expected_(expect(scenario)),
        runner_(static_cast<std::uint32_t>(scenario.world.blocks), static_cast<std::uint32_t>(scenario.world.p),
                {.vocab = static_cast<std::uint32_t>(scenario.world.vocab), .groups = groups_of(scenario.world)}),
        late_(runner_, quire::testing::LateRunner::Runs::kWhenCollected),
        drafter_(drafter_of(scenario.world, expected_)),
        tracker_(static_cast<std::uint32_t>(scenario.world.p)),
        rig_(rig_options(scenario.world, &drafter_),
             scenario.world.depth > 1 ? static_cast<model::Runner&>(late_) : static_cast<model::Runner&>(runner_)),
        longest_stall_(rig_options(scenario.world).stall_timeout + iteration_time(scenario.world)) {
    if (scenario.world.spoilt != 0) runner_.poisoned_token = 0;
    rig_.clock.advance(kIteration);  // time zero means never
    runner_.clock = &rig_.clock;
    runner_.row_time = std::chrono::milliseconds(scenario.world.row_ms);
    clients_.resize(scenario.arrivals.size());
  }

  void run() REQUIRES(engine_role) {
    const std::uint64_t limit = iterations_enough(scenario_);
    const World& world = scenario_.world;
    rig_.engine.report_cache(feed_);
    if (world.pin > 0) rig_.engine.pin_prefix(stem(world, 0, world.pin), CacheNamespace{0, 1});
    const std::uint32_t pinned = rig_.pool.num_held();
    std::size_t arrived = 0;
    for (int iteration = 0; (arrived < scenario_.arrivals.size() || !all_done()) && !stopped_; ++iteration) {
      CHECK_LT(rig_.iterations, limit);  // somebody starves
      for (; arrived < scenario_.arrivals.size() && scenario_.arrivals[arrived].at <= iteration; ++arrived)
        arrive(arrived);
      cancel(arrived, iteration);
      if (iteration == world.save) order(bridge::ControlOrder::Kind::kSaveCache);
      if (iteration == world.load) order(bridge::ControlOrder::Kind::kLoadCache);
      // What a load writes into may still have to be swapped out: a storm outside a plan gives blocks back too early.
      if (world.storm > 0 && iteration % world.storm == 0 && iteration != world.load) rig_.engine.preempt_all();
      if (iteration == world.stop) {
        stop();
      } else {
        rig_.iterate();
      }
      rig_.clock.advance(kIteration);
      check_iteration(world, rig_, runner_, late_, counts_);
      tracker_.drain(feed_);
      patience_.look(world, rig_, ran(), longest_stall_);
      read(arrived, iteration);
    }
    if (!stopped_) {
      // Of who has ended a row may be in flight, and then what is to be done to its blocks, before the engine rests.
      while (!rig_.engine.idle()) rig_.iterate();
      for (int iteration = 0; iteration < 2 * world.depth - 1; ++iteration) rig_.iterate();
      tracker_.drain(feed_);
      CHECK(tracker_.knows(rig_.engine.prefix_index()));
    }
    CHECK_EQ(rig_.pool.num_held(), pinned);
    check_end();
  }

 private:
  void arrive(std::size_t i) {
    const Arrival& one = scenario_.arrivals[i];
    const flow::Request& request = expected_[i].request;
    quire::testing::Ask ask;
    ask.params = request.sampling;
    ask.stop_tokens = request.stop_tokens;
    ask.rules = request.rules;
    ask.grammar = request.grammar;
    ask.scores_prompt = request.scores_prompt;
    ask.pooling = request.pooling;
    ask.cache_namespace = request.cache_namespace;
    ask.tenant = request.tenant;
    ask.weight = request.weight;
    ask.priority = request.priority;
    if (one.deadline >= 0) ask.first_token_by = TimePoint{} + kIteration * one.deadline;
    ask.kv_policy = request.kv_policy;
    ask.beam = request.beam;
    ask.n = static_cast<std::uint32_t>(one.n);
    clients_[i] = rig_.submit_many(request.prompt, request.max_tokens, ask);
  }

  void order(bridge::ControlOrder::Kind kind) {
    if (std::exchange(ordered_, true)) return;  // with steps in flight and storms the save may take long
    const std::string path = std::filesystem::temp_directory_path() / ("quire-sim-" + std::to_string(getpid()));
    const bool loads = kind == bridge::ControlOrder::Kind::kLoadCache;
    const auto done = [this, path, loads](const Result<bridge::CacheReport>& report) {
      ordered_ = false;
      CHECK(report.ok() || stopped_);
      counts_.loaded_blocks += loads && report.ok() ? report->num_blocks : 0;
      if (loads) std::filesystem::remove(path);
    };
    CHECK(rig_.control.give({kind, path, done}).ok());
  }

  // As engine_thread.cc does it.
  void stop() REQUIRES(engine_role) {
    stopped_ = true;
    runner_.fail_next_collect = scenario_.world.broken != 0;
    rig_.doorbell.ring();
    try {
      rig_.engine.step();
    } catch (const std::runtime_error&) {
      ++counts_.broken;
    }
    rig_.engine.abandon();
  }

  void cancel(std::size_t arrived, int iteration) {
    for (std::size_t i = 0; i < arrived; ++i) {
      const Arrival& one = scenario_.arrivals[i];
      if (one.cancel < 0 || iteration != one.at + one.cancel) continue;
      for (std::size_t choice = 0; choice < cancels(i); ++choice) clients_[i][choice].stream->cancel();
    }
  }
  std::size_t cancels(std::size_t i) const {
    return std::min(static_cast<std::size_t>(scenario_.arrivals[i].cancels), clients_[i].size());
  }

  void read(std::size_t arrived, int iteration) {
    for (std::size_t i = 0; i < arrived; ++i) {
      const Arrival& one = scenario_.arrivals[i];
      const bool reads = one.read != 0 ? (iteration - one.at) % one.read == 0 : iteration - one.at > 400;
      const bool left = one.cancel >= 0 && iteration >= one.at + one.cancel;
      for (std::size_t choice = 0; choice < clients_[i].size(); ++choice) {
        Client& client = clients_[i][choice];
        const bool gone = left && choice < cancels(i);
        if (reads || gone || stopped_) client.read_all();
        // A sequence ends within the turn; a search runs on as long as somebody waits for one of its answers.
        if (gone && (one.beam == 0 || cancels(i) == clients_[i].size())) CHECK(client.done());
      }
    }
  }

  // Since it was asked last a step of some rows ran, or with several in flight one was submitted or ran.
  bool ran() {
    const std::uint64_t steps = runner_.steps + late_.num_submitted;
    if (std::exchange(steps_, steps) == steps) return false;
    return scenario_.world.depth > 1 || runner_.rows_in_step.back() > 0;
  }

  bool all_done() const {
    return std::ranges::all_of(clients_,
                               [](const auto& streams) { return std::ranges::all_of(streams, &Client::done); });
  }

  void check_end() REQUIRES(engine_role) {
    CHECK(rig_.engine.idle());
    CHECK_EQ(rig_.admission.waiting_sequences(), 0u);
    CHECK_EQ(rig_.admission.waiting_tokens(), 0u);
    if (scenario_.world.cache == 0) CHECK_EQ(rig_.pool.num_cached_blocks(), 0u);
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      if (clients_[i].empty() && stopped_) continue;  // it never arrived
      CHECK_EQ(clients_[i].size(), expected_[i].answers.size());
      for (std::size_t choice = 0; choice < clients_[i].size(); ++choice) check_answer(i, choice);
    }
    clients_.clear();
    CHECK_EQ(rig_.hub->num_open(), 0u);

    ++counts_.schedules;
    counts_.iterations += rig_.iterations;
    for (const std::uint32_t rows : runner_.rows_in_step) counts_.rows += rows;
    counts_.pinned += rig_.engine.pinned().size();
    counts_.cached_tokens += rig_.metrics.prefix_cache_hits.value();
    if (!kv::all_full(rig_.pool.groups())) counts_.windowed_tokens += rig_.metrics.prefix_cache_hits.value();
    counts_.grouped += rig_.pool.num_groups() > 1;
    counts_.preemptions += rig_.engine.scheduler().num_preemptions();
    counts_.overtakes += rig_.engine.scheduler().num_overtakes();
    counts_.jumped += rig_.metrics.jumped_tokens.value();
    counts_.copies += runner_.copies;
    counts_.poisons += runner_.poisons;
    counts_.swaps_in += runner_.swaps_in;
    counts_.ahead += late_.num_ahead;
    counts_.fed += late_.num_fed;
  }

  void check_answer(std::size_t i, std::size_t choice) {
    const Arrival& one = scenario_.arrivals[i];
    const Client& client = clients_[i][choice];
    const Answer& answer = expected_[i].answers[choice];
    ++counts_.sequences;
    counts_.beams += one.beam > 0 && choice == 0;
    counts_.ruled += one.rules > 0;
    counts_.governed += one.grammar > 0;
    counts_.complete += client.finish == flow::Finish::kComplete;
    counts_.tokens += client.tokens.size();
    CHECK_LE(client.tokens.size(), answer.tokens.size());
    for (std::size_t k = 0; k < client.tokens.size(); ++k) {
      CHECK_EQ(client.tokens[k], answer.tokens[k]);
      CHECK_EQ(client.logprobs[k], one.logprob != 0 || one.beam > 0 ? answer.scores[k].logprob : 0.0f);
      check_top(client.tops[k], answer.scores[k]);
    }
    if (client.finish == flow::Finish::kCancelled) {  // it left, or it did not read and was dropped
      CHECK((one.cancel >= 0 && choice < cancels(i)) || one.read != 1);
      ++counts_.cancelled;
    } else if (flow::is_fault(client.finish) && (answer.may_fail || stopped_)) {
      if (!stopped_) CHECK(client.tokens.empty());
      ++counts_.failed;
    } else {
      CHECK_EQ(client.tokens.size(), answer.tokens.size());
      CHECK_EQ(static_cast<int>(client.finish), static_cast<int>(answer.finish));
      if (flow::is_fault(client.finish)) ++counts_.failed;
    }
    const std::uint32_t cached = client.stream->cached_tokens();
    CHECK_LT(cached, expected_[i].request.prompt.size());  // at least the last token is run
    if (one.cache_namespace == 0 || one.kv != 0) CHECK_EQ(cached, 0u);
    if (one.score != 0 && choice == 0) check_scores(client, answer);
    if (one.pool != 0) check_embedding(client, expected_[i]);
  }

  void check_top(std::span<const flow::Candidate> emitted, const Score& score) {
    CHECK_EQ(emitted.size(), score.top.size());
    for (std::size_t i = 0; i < emitted.size(); ++i) {
      CHECK_EQ(emitted[i].token, score.top[i].token);
      CHECK_EQ(emitted[i].logprob, score.top[i].logprob);
    }
  }

  void check_scores(const Client& client, const Answer& answer) {
    CHECK_EQ(client.stream->cached_tokens(), 0u);
    const bool ended_early = client.tokens.empty() && client.finish != flow::Finish::kScored;
    const bridge::PromptScores& scores = *client.stream->scores();
    for (std::size_t i = 0; i < answer.prompt_scores.size() && !ended_early; ++i) {
      CHECK_EQ(scores.logprobs[i], answer.prompt_scores[i].logprob);
      CHECK_EQ(scores.ranks[i], answer.prompt_scores[i].rank);
      check_top(scores.top_of(i).first(answer.prompt_scores[i].top.size()), answer.prompt_scores[i]);
      ++counts_.scored;
    }
  }

  void check_embedding(const Client& client, const Expected& expected) {
    if (expected.request.needs_every_row()) CHECK_EQ(client.stream->cached_tokens(), 0u);
    if (client.finish != flow::Finish::kScored) return;
    CHECK(client.stream->embedding()->sums == expected.answers[0].embedding);
    ++counts_.pooled;
  }

  const Scenario& scenario_;
  Counts& counts_;
  const std::vector<Expected> expected_;
  ToyRunner runner_;
  quire::testing::LateRunner late_;
  quire::testing::ScriptedDrafter drafter_;
  quire::testing::CacheTracker tracker_;
  bridge::CacheFeed feed_{1000};
  EngineRig rig_;
  Patience patience_;
  bool stopped_ = false;
  bool ordered_ = false;  // and not obeyed
  std::uint64_t steps_ = 0;
  const Duration longest_stall_;
  std::vector<std::vector<Client>> clients_;  // by arrival
};

}  // namespace

void run(const Scenario& scenario, Counts& counts) {
  const RoleScope role(engine_role);
  const auto sim = std::make_unique<Sim>(scenario, counts);
  sim->run();
}

}  // namespace quire::sim
