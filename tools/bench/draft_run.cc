#include "tools/bench/draft_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/base/start_error.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/control_queue.h"
#include "core/bridge/doorbell.h"
#include "core/bridge/engine_status.h"
#include "core/bridge/stream_hub.h"
#include "core/bridge/token_stream.h"
#include "core/engine/engine.h"
#include "core/kv/block_pool.h"
#include "core/observe/metrics.h"

namespace quire::tools {
namespace {

engine::EngineOptions options_of(const DraftRunShape& shape, std::uint32_t streams) {
  engine::EngineOptions options;
  options.scheduler.max_num_seqs = streams;
  options.scheduler.max_num_batched_tokens = shape.max_rows;
  options.scheduler.max_logits_rows = shape.max_logits_rows;
  options.scheduler.residual_groups = shape.residual_groups;
  options.vocab = shape.vocab;
  options.max_model_len = shape.max_model_len;
  options.max_draft_nodes = shape.max_draft_nodes;
  options.prefix_caching = false;
  options.prefix_index.hash_key = 1;
  options.max_step_time = options.max_prompt_step_time = Duration::zero();  // prompts are not measured
  return options;
}

class Run {
 public:
  Run(const DraftRunShape& shape, std::uint32_t streams, model::Runner& runner, speculate::Drafter* drafter,
      speculate::DepthControl* depth)
      : pool_(shape.num_blocks, shape.block_tokens),
        admission_({}, doorbell_),
        control_(doorbell_),
        hub_(std::make_shared<bridge::StreamHub>(
            streams, [] {}, doorbell_)),
        engine_(options_of(shape, streams), {.runner = runner,
                                             .pool = pool_,
                                             .admission = admission_,
                                             .control = control_,
                                             .doorbell = doorbell_,
                                             .status = status_,
                                             .metrics = metrics_,
                                             .clock = clock_,
                                             .drafter = drafter,
                                             .depth = depth}) {}

  void ask(const std::vector<TokenId>& prompt, std::uint32_t answer_tokens) {
    Client& client = clients_.emplace_back();
    client.stream = hub_->open([] {});
    std::vector<bridge::Submission> submissions(1);
    flow::Request& request = submissions.front().request;
    request.prompt = prompt;
    request.max_tokens = answer_tokens;
    request.sampling.temperature = 0;
    request.arrival = clock_.now();
    submissions.front().stream = client.stream;
    CHECK(admission_.admit(submissions).ok());
  }

  DraftRunFigures answer_all() REQUIRES(engine_role) {
    while (!std::ranges::all_of(clients_, [](const Client& one) { return one.has_begun(); })) turn();
    const TimePoint start = clock_.now();
    const std::size_t before = num_tokens();
    std::uint32_t steps = 0;
    while (std::ranges::none_of(clients_, &Client::ended)) {
      turn();
      ++steps;
    }
    const double seconds = std::chrono::duration<double>(clock_.now() - start).count();
    const auto tokens = static_cast<double>(num_tokens() - before);
    DraftRunFigures out;
    if (steps > 0) {  // otherwise the first stream ended before the last had begun
      out.tokens_per_s = tokens / seconds;
      out.tokens_per_step = tokens / steps / static_cast<double>(clients_.size());
    }
    while (!std::ranges::all_of(clients_, &Client::ended)) turn();
    for (Client& client : clients_) out.answers.push_back(std::move(client.tokens));
    return out;
  }

 private:
  struct Client {
    std::shared_ptr<bridge::TokenStream> stream;
    std::vector<TokenId> tokens;
    bool ended = false;
    bool has_begun() const { return !tokens.empty(); }
  };

  void turn() REQUIRES(engine_role) {
    doorbell_.ring();  // so that the engine does not sleep
    engine_.step();
    hub_->drain();
    for (Client& client : clients_) {
      while (const std::optional<flow::TokenEvent> event = client.stream->pop()) {
        if (flow::has_token(event->finish)) client.tokens.push_back(event->token);
        if (event->finish == flow::Finish::kNone) continue;
        if (event->finish != flow::Finish::kLength) throw StartError("bench --mode speculate: an answer failed");
        client.ended = true;
      }
    }
  }
  std::size_t num_tokens() const {
    std::size_t sum = 0;
    for (const Client& client : clients_) sum += client.tokens.size();
    return sum;
  }

  SteadyClock clock_;
  bridge::Doorbell doorbell_;
  bridge::EngineStatus status_;
  observe::Metrics metrics_{observe::MetricsInfo{}};
  kv::BlockPool pool_;
  bridge::AdmissionQueue admission_;
  bridge::ControlQueue control_;
  std::shared_ptr<bridge::StreamHub> hub_;
  engine::Engine engine_;
  std::vector<Client> clients_;
};

}  // namespace

DraftRunFigures run_drafts(const DraftRunShape& shape, const std::vector<std::vector<TokenId>>& prompts,
                           model::Runner& runner, speculate::Drafter* drafter, speculate::DepthControl* depth) {
  Run run(shape, static_cast<std::uint32_t>(prompts.size()), runner, drafter, depth);
  for (const std::vector<TokenId>& prompt : prompts) run.ask(prompt, shape.answer_tokens);
  return run.answer_all();
}

}  // namespace quire::tools
