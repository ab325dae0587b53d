// An engine on one thread with everything it needs, driven turn by turn by a test: fake clock, real queue, streams and
// pool.
#pragma once

#include <memory>
#include <vector>

#include "core/base/check.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/stream_hub.h"
#include "core/engine/engine.h"
#include "tests/support/late_runner.h"
#include "tests/support/toy_runner.h"

namespace quire::testing {

struct RigOptions {
  std::uint32_t num_blocks = 64;
  std::uint32_t block_tokens = 16;
  std::uint32_t max_num_seqs = 8;
  std::uint32_t max_num_batched_tokens = 64;
  std::uint32_t max_logits_rows = 0;  // 0: max_num_seqs
  std::uint32_t max_model_len = 0;    // 0: what the pool holds
  std::uint32_t vocab = 997;
  bridge::AdmissionQueue::Limits queue{};
  bool prefix_caching = true;
  std::uint32_t hash_bits = 64;  // of the prefix index: fewer make buckets collide
  schedule::Policy policy = schedule::Policy::kFcfs;
  schedule::Victim victim = schedule::Victim::kNewest;
  std::uint32_t max_overtakes = 64;
  std::uint32_t num_swap_blocks = 0;
  std::vector<kv::CacheGroup> groups{kv::CacheGroup{}};  // of the model: give them to ToyModel, too
  std::uint32_t restore_tokens = 1024;                   // multiples of these are restore points
  bool residual_groups = false;                          // int4
  bool check_blocks = false;
  bool poison_blocks = false;
  Duration stall_timeout = std::chrono::seconds(30);
  std::uint32_t max_streams = 4096;
  bool cut_by_time = true;  // false: only the budget cuts prompts
  bool jump_ahead = true;
  bool partial_blocks = true;  // part of a block may be shared
  speculate::Drafter* drafter = nullptr;
  speculate::DepthControl* depth = nullptr;
  std::uint32_t max_draft_nodes = 8;
};

// What a client may ask for beyond a prompt and a number of tokens.
struct Ask {
  sample::Params params{.temperature = 0.0f};
  std::vector<TokenId> stop_tokens{};
  std::optional<CacheNamespace> cache_namespace{CacheNamespace{0, 1}};  // by default everybody shares
  std::uint32_t tenant = 0;
  std::uint32_t weight = 1;
  std::int32_t priority = 0;
  std::optional<TimePoint> deadline{};
  std::optional<TimePoint> first_token_by{};
  std::optional<Duration> token_time{};
  flow::KvPolicy kv_policy{};
  std::uint32_t n = 1;                     // so many choices of one prompt: one client each
  std::optional<flow::BeamSearch> beam{};  // one client for each of the best
  std::shared_ptr<const sample::Rules> rules{};
  std::shared_ptr<const grammar::Grammar> grammar{};
  bool scores_prompt = false;  // the first choice's alone
  flow::Pooling pooling = flow::Pooling::kNone;
};

// One request as its client sees it.
struct Client {
  std::shared_ptr<bridge::TokenStream> stream;
  std::vector<TokenId> tokens{};
  flow::Finish finish = flow::Finish::kNone;
  std::uint64_t finished_at_step = 0;
  std::vector<float> logprobs{};                     // one for each token
  std::vector<std::vector<flow::Candidate>> tops{};  // likewise

  bool done() const { return finish != flow::Finish::kNone; }
  void read_all() {
    while (const auto event = stream->pop()) {
      CHECK(!done());  // nothing follows the end
      if (flow::has_token(event->finish)) {
        tokens.push_back(event->token);
        logprobs.push_back(event->logprob);
        tops.emplace_back(stream->top().begin(), stream->top().end());
      }
      finish = event->finish;
    }
  }
};

class EngineRig {
 public:
  EngineRig(const RigOptions& options, model::Runner& runner)
      : pool(options.num_blocks, options.block_tokens, options.groups),
        admission(options.queue, doorbell),
        control(doorbell),
        hub(std::make_shared<bridge::StreamHub>(
            options.max_streams, [this] { ++wakes; }, doorbell)),
        hidden_width(runner.hidden_width()),
        engine(engine_options(options), engine::EngineParts{runner, pool, admission, control, doorbell, status, metrics,
                                                            clock, options.drafter, options.depth}) {
    const auto watch = [this](auto& watcher) {
      watcher.holders = [this](BlockId block) { return pool.holders(block); };
      watcher.num_relied_tokens = [this](BlockId block) { return engine.prefix_index().num_relied_tokens(block); };
    };
    auto* toy = dynamic_cast<ToyRunner*>(&runner);
    if (auto* const late = dynamic_cast<LateRunner*>(&runner)) {
      watch(*late);
      toy = &late->toy();
    } else if (toy != nullptr) {
      watch(*toy);
    }
    if (toy == nullptr) return;
    toy->max_logits_rows = options.max_logits_rows != 0 ? options.max_logits_rows : options.max_num_seqs;
    if (options.residual_groups) toy->keep_residual_groups(options.max_num_seqs);
  }

  Client submit(std::vector<TokenId> prompt, std::uint32_t max_tokens, sample::Params params = greedy(),
                std::vector<TokenId> stop_tokens = {}) {
    return submit_many(std::move(prompt), max_tokens, {.params = params, .stop_tokens = std::move(stop_tokens)})[0];
  }

  // All sequences of one HTTP request: the choices in order, or the best of a beam search, best first.
  std::vector<Client> submit_many(std::vector<TokenId> prompt, std::uint32_t max_tokens, const Ask& ask) {
    std::vector<Client> clients(ask.beam ? ask.beam->num_best : ask.n);
    for (Client& client : clients) {
      const bool scores = ask.scores_prompt && &client == &clients[0];
      const bool embeds = ask.pooling != flow::Pooling::kNone;
      client.stream =
          hub->open([] {}, ask.params.num_top,
                    scores ? std::make_unique<bridge::PromptScores>(prompt.size(), ask.params.num_top) : nullptr,
                    embeds ? std::make_unique<bridge::PromptEmbedding>(hidden_width) : nullptr);
    }
    std::vector<bridge::Submission> submissions(ask.beam ? 1 : ask.n);
    for (std::uint32_t i = 0; i < submissions.size(); ++i) {
      flow::Request& request = submissions[i].request;
      request.arrival = clock.now();
      request.prompt = prompt;
      request.max_tokens = max_tokens;
      request.sampling = ask.params;
      request.sampling.choice_index += i;
      request.rules = ask.rules;
      request.grammar = ask.grammar;
      request.scores_prompt = ask.scores_prompt && i == 0;
      request.pooling = ask.pooling;
      request.stop_tokens = ask.stop_tokens;
      request.cache_namespace = ask.cache_namespace;
      request.tenant = ask.tenant;
      request.weight = ask.weight;
      request.priority = ask.priority;
      request.deadline = ask.deadline;
      request.first_token_by = ask.first_token_by;
      request.token_time = ask.token_time;
      request.kv_policy = ask.kv_policy;
      request.beam = ask.beam;
      submissions[i].stream = clients[i].stream;
    }
    for (std::size_t i = submissions.size(); i < clients.size(); ++i) {
      submissions[0].more_streams.push_back(clients[i].stream);
    }
    CHECK(admission.admit(submissions).ok());
    return clients;
  }

  // One turn. Rings first, so that an idle engine does not sleep.
  void iterate() REQUIRES(engine_role) {
    doorbell.ring();
    engine.step();
    hub->drain();
    ++iterations;
  }
  // Turns until every client has its end, reading as it goes; dies after `limit` turns.
  template <typename Clients>
  void run(Clients& clients, std::uint64_t limit = 100000) REQUIRES(engine_role) {
    for (;;) {
      bool all_done = true;
      for (Client& client : clients) {
        client.read_all();
        if (client.done() && client.finished_at_step == 0) client.finished_at_step = iterations;
        all_done = all_done && client.done();
      }
      if (all_done) return;
      CHECK_GT(limit--, 0u);
      iterate();
    }
  }

  static sample::Params greedy() { return sample::Params{.temperature = 0.0f}; }

  static engine::EngineOptions engine_options(const RigOptions& options) {
    return {.scheduler = {.max_num_seqs = options.max_num_seqs,
                          .max_num_batched_tokens = options.max_num_batched_tokens,
                          .max_logits_rows = options.max_logits_rows,
                          .policy = options.policy,
                          .victim = options.victim,
                          .max_overtakes = options.max_overtakes,
                          .num_swap_blocks = options.num_swap_blocks,
                          .residual_groups = options.residual_groups},
            .vocab = options.vocab,
            .max_model_len = options.max_model_len ? options.max_model_len : options.num_blocks * options.block_tokens,
            .max_draft_nodes = options.max_draft_nodes,
            .jump_ahead = options.jump_ahead,
            .prefix_caching = options.prefix_caching,
            .check_blocks = options.check_blocks,
            .poison_blocks = options.poison_blocks,
            .prefix_index = {.hash_key = 1,
                             .hash_bits = options.hash_bits,
                             .partial_blocks = options.partial_blocks,
                             .restore_tokens = options.restore_tokens},
            .numeric_mode = "toy",
            .stall_timeout = options.stall_timeout,
            .max_step_time = std::chrono::milliseconds(options.cut_by_time ? 100 : 0),
            .max_prompt_step_time = std::chrono::milliseconds(options.cut_by_time ? 1000 : 0)};
  }

  FakeClock clock;
  bridge::Doorbell doorbell;
  bridge::EngineStatus status;
  observe::Metrics metrics{observe::MetricsInfo{}};
  kv::BlockPool pool;
  bridge::AdmissionQueue admission;
  bridge::ControlQueue control;
  std::uint64_t wakes = 0;
  std::shared_ptr<bridge::StreamHub> hub;
  const std::uint32_t hidden_width;  // of the runner
  engine::Engine engine;
  std::uint64_t iterations = 0;
};

}  // namespace quire::testing
