// An engine on the calling thread, driven iteration by iteration through its admission queue and streams.
// Owner   the scenario. Borrows pool, runner and clock; all of them outlive it.
// Thread  engine, for everything: there is no other thread.
// Fails   jobs that are not sorted by arrival, or that never end, are our bug (CHECK).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/clock.h"
#include "core/base/thread_role.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/control_queue.h"
#include "core/bridge/doorbell.h"
#include "core/bridge/engine_status.h"
#include "core/bridge/stream_hub.h"
#include "core/engine/engine.h"
#include "core/kv/block_pool.h"
#include "core/model/run/runner.h"
#include "core/observe/metrics.h"
#include "tools/common/mix.h"

namespace quire::tools {

struct RigOptions {
  schedule::SchedulerOptions scheduler;
  std::uint32_t vocab = 0;
  std::uint32_t max_model_len = 0;
  bool prefix_caching = true;  // false: no two jobs share a block, even while both run
  bool cut_by_time = true;     // false: prompts are cut by the token budget only, whatever a row costs on this machine
};

// Result of a job, as its client saw it.
struct Outcome {
  std::uint64_t first_token_step = 0;
  std::uint64_t finished_step = 0;
  TimePoint submitted{};
  TimePoint first_token{};
  TimePoint finished{};
  std::uint32_t num_tokens = 0;
  std::uint32_t cached_tokens = 0;

  double ttft_s() const { return std::chrono::duration<double>(first_token - submitted).count(); }
  double finish_s() const { return std::chrono::duration<double>(finished - submitted).count(); }
};

class Rig {
 public:
  Rig(const RigOptions& options, kv::BlockPool& pool, model::Runner& runner, const Clock& clock);

  // Submits each job at its step and iterates the engine until all have ended. Clients read at once. The engine numbers
  // its sequences by arrival: job i of the first run is SeqId(i + 1). `after_step` is called after every iteration,
  // with the results so far and the number of jobs that have ended.
  using AfterStep = std::function<void(std::uint64_t step, std::span<const Outcome> so_far, std::size_t num_done)>;
  std::vector<Outcome> run(std::span<const Job> jobs, const AfterStep& after_step = {}) REQUIRES(engine_role);

  observe::Metrics& metrics() { return metrics_; }

 private:
  struct Client {
    std::shared_ptr<bridge::TokenStream> stream;
    bool done = false;
  };
  Client submit(const Job& job);
  void turn() REQUIRES(engine_role);
  // True if the end was read.
  bool read(Client& client, std::uint64_t step, Outcome& outcome);

  const bool prefix_caching_;
  const Clock& clock_;
  bridge::Doorbell doorbell_;
  bridge::ControlQueue control_{doorbell_};
  bridge::EngineStatus status_;
  observe::Metrics metrics_;
  bridge::AdmissionQueue admission_;
  std::shared_ptr<bridge::StreamHub> hub_;
  engine::Engine engine_;
};

}  // namespace quire::tools
