// An engine on one thread with everything it needs, driven turn by turn by a test: fake clock, real queue, streams and
// pool.
#pragma once

#include <memory>
#include <vector>

#include "core/base/check.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/stream_hub.h"
#include "core/engine/engine.h"

namespace quire::testing {

struct RigOptions {
  std::uint32_t num_blocks = 64;
  std::uint32_t block_tokens = 16;
  std::uint32_t max_num_seqs = 8;
  std::uint32_t max_num_batched_tokens = 64;
  std::uint32_t max_model_len = 0;  // 0: what the pool holds
  std::uint32_t vocab = 997;
  bridge::AdmissionQueue::Limits queue{};
  bool prefix_caching = true;
  std::uint32_t hash_bits = 64;  // of the prefix index: fewer make buckets collide
};

// One request as its client sees it.
struct Client {
  std::shared_ptr<bridge::TokenStream> stream;
  std::vector<TokenId> tokens;
  flow::Finish finish = flow::Finish::kNone;
  std::uint64_t finished_at_step = 0;

  bool done() const { return finish != flow::Finish::kNone; }
  void read_all() {
    while (const auto event = stream->pop()) {
      CHECK(!done());  // nothing follows the end
      if (flow::has_token(event->finish)) tokens.push_back(event->token);
      finish = event->finish;
    }
  }
};

class EngineRig {
 public:
  EngineRig(const RigOptions& options, model::Runner& runner)
      : pool(options.num_blocks, options.block_tokens),
        admission(options.queue, doorbell),
        hub(std::make_shared<bridge::StreamHub>(
            4096, [this] { ++wakes; }, doorbell)),
        engine(engine::EngineOptions{.scheduler = {.max_num_seqs = options.max_num_seqs,
                                                   .max_num_batched_tokens = options.max_num_batched_tokens},
                                     .vocab = options.vocab,
                                     .max_model_len = options.max_model_len ? options.max_model_len
                                                                            : options.num_blocks * options.block_tokens,
                                     .prefix_caching = options.prefix_caching,
                                     .prefix_index = {.hash_key = 1, .hash_bits = options.hash_bits}},
               engine::EngineParts{runner, pool, admission, doorbell, status, metrics, clock}) {}

  Client submit(std::vector<TokenId> prompt, std::uint32_t max_tokens, sample::Params params = greedy(),
                std::vector<TokenId> stop_tokens = {}) {
    Client client{hub->open([] {}), {}, flow::Finish::kNone, 0};
    std::vector<bridge::Submission> submissions(1);
    submissions[0].request = {clock.now(), std::move(prompt), max_tokens, params, std::move(stop_tokens)};
    submissions[0].stream = client.stream;
    CHECK(admission.admit(submissions).ok());
    return client;
  }

  // One turn. Rings first, so that an idle engine does not sleep.
  void turn() REQUIRES(engine_role) {
    doorbell.ring();
    engine.step();
    hub->drain();
    ++turns;
  }
  // Turns until every client has its end, reading as it goes; dies after `limit` turns.
  template <typename Clients>
  void run(Clients& clients, std::uint64_t limit = 100000) REQUIRES(engine_role) {
    for (;;) {
      bool all_done = true;
      for (Client& client : clients) {
        client.read_all();
        if (client.done() && client.finished_at_step == 0) client.finished_at_step = turns;
        all_done = all_done && client.done();
      }
      if (all_done) return;
      CHECK_GT(limit--, 0u);
      turn();
    }
  }

  static sample::Params greedy() { return sample::Params{.temperature = 0.0f}; }

  FakeClock clock;
  bridge::Doorbell doorbell;
  bridge::EngineStatus status;
  observe::Metrics metrics{observe::MetricsInfo{}};
  kv::BlockPool pool;
  bridge::AdmissionQueue admission;
  std::uint64_t wakes = 0;
  std::shared_ptr<bridge::StreamHub> hub;
  engine::Engine engine;
  std::uint64_t turns = 0;
};

}  // namespace quire::testing
