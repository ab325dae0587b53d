// An engine without a model, for api tests: a thread that pops submissions and says each prompt's own tokens again and
// again. A search is told on all its streams alike, as if each were a sequence. Tests hold it, step it and wait for
// what it saw.
// Thread  its own for the engine's side; every public method is for the test's thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/services/services.h"
#include "core/base/check.h"
#include "core/bridge/stream_hub.h"
#include "tests/support/source_tree.h"

namespace quire::api::test {

using quire::test::source_text;

inline std::shared_ptr<const text::Tokenizer> stories_tokenizer() {
  static const std::shared_ptr<const text::Tokenizer> tokenizer = text::Tokenizer::load(
      source_text("models/stories/tokenizer.json"), source_text("models/stories/tokenizer_config.json"));
  return tokenizer;
}

// Everything a Server needs but the engine. The queue, the workers and the streams are the real ones.
struct World {
  explicit World(bridge::AdmissionQueue::Limits limits = {}, std::size_t worker_bytes = 64u << 20)
      : queue(limits, doorbell), workers(1, worker_bytes), budgets(worker_bytes) {}

  Services services() {
    return {.queue = queue,
            .workers = workers,
            .budgets = budgets,
            .doorbell = doorbell,
            .engine = status,
            .control = control,
            .requests = requests,
            .metrics = metrics,
            .tokenizer = stories_tokenizer(),
            .model_names = {"stories", "org/stories"},
            .created = 1700000000,
            .max_model_len = 512,
            .logits_width = 4096,
            .hidden_size = 6,
            .eos = {0},
            .bos = TokenId{0},
            .defaults = {.temperature = 0.8f, .top_p = 0.9f},
            .fingerprint = "fp-test",
            .version = "1.2.3",
            .limits = {},
            .cache_dir = {}};
  }

  bridge::Doorbell doorbell;
  bridge::AdmissionQueue queue;
  Workers workers;
  Budgets budgets;
  bridge::EngineStatus status;
  bridge::ControlQueue control{doorbell};
  requests::RequestBook requests{4};
  observe::Metrics metrics{{.model_name = "stories", .version = "1.2.3", .numeric_mode = "test"}};
};

class FakeEngine {
 public:
  // The event number `n` (from 0) of a sequence.
  using Script = std::function<flow::TokenEvent(const flow::Request&, std::size_t n)>;

  static flow::TokenEvent repeat_prompt(const flow::Request& request, std::size_t n) {
    const TokenId token = request.prompt[n % request.prompt.size()];
    const bool stop =
        std::find(request.stop_tokens.begin(), request.stop_tokens.end(), token) != request.stop_tokens.end();
    if (stop) return {token, flow::Finish::kStop};
    return {token, n + 1 == request.max_tokens ? flow::Finish::kLength : flow::Finish::kNone};
  }

  explicit FakeEngine(World& world, Script script = repeat_prompt)
      : world_(world), script_(std::move(script)), thread_([this] { run(); }) {}
  ~FakeEngine() {
    change([this] { stopping_ = true; });
    thread_.join();
  }

  void hold_queue(bool held) {
    change([&] { held_ = held; });
  }  // true: submissions stay in the queue
  void allow_tokens(std::int64_t n) {
    change([&] { allowed_ = n; });
  }  // steps left to take; -1: no limit

  bool wait_running(std::size_t n) {
    return wait([&] { return running_.size() == n; });
  }
  bool wait_cancelled(std::size_t n) {
    return wait([&] { return num_cancelled_ >= n; });
  }
  bool wait_ended(std::size_t n) {
    return wait([&] { return num_ended_ >= n; });
  }
  bool wait_order() {
    return wait([&] { return order_.has_value(); });
  }
  // Carries out the order to the cache that waits, or comes: it ends with `report`.
  bool end_order(Result<bridge::CacheReport> report) {
    if (!wait_order()) return false;
    const std::lock_guard lock(mutex_);
    world_.control.finish();
    order_->done(std::move(report));
    order_.reset();
    return true;
  }
  std::vector<flow::Request> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  struct Running {
    flow::Request request;
    std::shared_ptr<bridge::TokenStream> stream;
    std::size_t said = 0;
  };

  template <typename Change>
  void change(Change make) {
    {
      const std::lock_guard lock(mutex_);
      make();
    }
    world_.doorbell.ring();
  }

  template <typename Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), condition);
  }

  void run() {
    for (;;) {
      bool idle = true;
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) break;
        idle = !step();
        changed_.notify_all();
      }
      world_.status.beat(std::chrono::steady_clock::now(), idle);
      if (idle) world_.doorbell.wait_until(TimePoint::max());
    }
    const std::lock_guard lock(mutex_);
    running_.clear();
  }

  // Under the lock. False: nothing to do until somebody rings.
  bool step() {
    if (!order_) order_ = world_.control.take();
    while (!held_) {
      std::optional<bridge::Submission> submission = world_.queue.pop();
      if (!submission) break;
      submission->credit.give_back();
      seen_.push_back(submission->request);
      running_.push_back({submission->request, std::move(submission->stream)});
      for (auto& stream : submission->more_streams) running_.push_back({submission->request, std::move(stream)});
    }
    bool said = false;
    const bool may_speak = allowed_ != 0;
    for (std::size_t i = running_.size(); i > 0; --i) said = iterate(i - 1, may_speak) || said;
    if (said && allowed_ > 0) --allowed_;
    return said;
  }

  bool iterate(std::size_t i, bool may_speak) {
    bridge::TokenStream& stream = *running_[i].stream;
    flow::TokenEvent event;
    if (stream.cancelled()) {
      event.finish = flow::Finish::kCancelled;
      ++num_cancelled_;
    } else {
      if (!may_speak || !stream.can_take_token()) return false;
      event = script_(running_[i].request, running_[i].said++);
    }
    stream.push(event);
    stream.hub().flush();
    if (event.finish != flow::Finish::kNone) {
      ++num_ended_;
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return true;
  }

  World& world_;
  const Script script_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool held_ = false;
  bool stopping_ = false;
  std::int64_t allowed_ = -1;
  std::size_t num_cancelled_ = 0;
  std::size_t num_ended_ = 0;
  std::vector<Running> running_;
  std::optional<bridge::ControlOrder> order_;
  std::vector<flow::Request> seen_;
  std::thread thread_;
};

}  // namespace quire::api::test
