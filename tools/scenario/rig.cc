#include "tools/scenario/rig.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/bridge/token_stream.h"

namespace quire::tools {
namespace {

constexpr std::uint64_t kMaxSteps = 1'000'000;
constexpr std::uint32_t kMaxStreams = 4096;

engine::EngineOptions engine_options(const RigOptions& options) {
  engine::EngineOptions out;
  out.scheduler = options.scheduler;
  out.vocab = options.vocab;
  out.max_model_len = options.max_model_len;
  out.prefix_caching = options.prefix_caching;
  // Fixed: scenarios need equal figures every time, and no protection against crafted prompts.
  out.prefix_index.hash_key = 1;
  if (!options.cut_by_time) out.max_step_time = out.max_prompt_step_time = Duration::zero();
  return out;
}

}  // namespace

Rig::Rig(const RigOptions& options, kv::BlockPool& pool, model::Runner& runner, const Clock& clock)
    : prefix_caching_(options.prefix_caching),
      clock_(clock),
      metrics_(observe::MetricsInfo{}),
      admission_({}, doorbell_),
      hub_(std::make_shared<bridge::StreamHub>(
          kMaxStreams, [] {}, doorbell_)),
      engine_(engine_options(options), {runner, pool, admission_, control_, doorbell_, status_, metrics_, clock_}) {}

std::vector<Outcome> Rig::run(std::span<const Job> jobs, const AfterStep& after_step) {
  CHECK(std::is_sorted(jobs.begin(), jobs.end(),
                       [](const Job& a, const Job& b) { return a.arrival_step < b.arrival_step; }));
  std::vector<Outcome> outcomes(jobs.size());
  std::vector<Client> clients;
  clients.reserve(jobs.size());
  std::size_t num_done = 0;
  for (std::uint64_t step = 0; num_done < jobs.size(); ++step) {
    CHECK_LT(step, kMaxSteps);
    while (clients.size() < jobs.size() && jobs[clients.size()].arrival_step <= step) {
      outcomes[clients.size()].submitted = clock_.now();
      clients.push_back(submit(jobs[clients.size()]));
    }
    turn();
    for (std::size_t i = 0; i < clients.size(); ++i) {
      if (!clients[i].done && read(clients[i], step, outcomes[i])) ++num_done;
    }
    if (after_step) after_step(step, outcomes, num_done);
  }
  turn();  // an idle iteration: the engine counts its blocks and publishes the counts
  return outcomes;
}

Rig::Client Rig::submit(const Job& job) {
  static constexpr CacheNamespace kNamespace{1, 1};
  std::vector<bridge::Submission> submissions(1);
  flow::Request& request = submissions.front().request;
  request.arrival = clock_.now();
  request.prompt = job.prompt;
  request.max_tokens = job.max_tokens;
  request.sampling.temperature = 0;
  if (prefix_caching_) request.cache_namespace = kNamespace;
  request.tenant = job.tenant;
  request.priority = job.priority;
  if (job.deadline_step) request.first_token_by = time_of_step(*job.deadline_step);
  Client client{hub_->open([] {})};
  submissions.front().stream = client.stream;
  CHECK(admission_.admit(submissions).ok());
  return client;
}

void Rig::turn() {
  doorbell_.ring();  // an engine without work would sleep
  engine_.step();
  hub_->drain();
}

bool Rig::read(Client& client, std::uint64_t step, Outcome& outcome) {
  while (const std::optional<flow::TokenEvent> event = client.stream->pop()) {
    CHECK(!client.done);  // the end is the last event
    if (flow::has_token(event->finish) && outcome.num_tokens++ == 0) {
      outcome.first_token_step = step;
      outcome.first_token = clock_.now();
    }
    client.done = event->finish != flow::Finish::kNone;
  }
  if (!client.done) return false;
  outcome.finished_step = step;
  outcome.finished = clock_.now();
  outcome.cached_tokens = client.stream->cached_tokens();
  client.stream.reset();
  return true;
}

}  // namespace quire::tools
