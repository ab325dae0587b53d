// Many sequences that decode at the same time, with nothing of a model: what a turn costs besides its arithmetic.
// Everything that a turn of the engine does is in step(); a client's reading, which is another thread's work, is not.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/control_queue.h"
#include "core/bridge/stream_hub.h"
#include "core/bridge/token_stream.h"
#include "core/engine/engine.h"

namespace quire::testing {

inline constexpr std::uint32_t kCrowdVocab = 32768;

// Says a token at once; allocates nothing.
class InstantRunner final : public model::Runner {
 public:
  explicit InstantRunner(std::uint32_t max_sequences, std::size_t depth = 1) : choices_(depth) {
    for (auto& choices : choices_) choices.reserve(max_sequences);
  }
  void submit(const flow::StepPlan& plan) override {
    auto& choices = choices_[num_submitted_++ % choices_.size()];
    choices.clear();
    for (const flow::PlannedSequence& planned : plan.sequences) {
      if (planned.samples) choices.push_back({{.token = token_behind(planned)}, planned.seq});
    }
  }
  std::span<const flow::StepChoice> collect() override { return choices_[num_collected_++ % choices_.size()]; }
  bool idle() const override { return num_submitted_ == num_collected_; }
  bool full() const override { return num_submitted_ == num_collected_ + choices_.size(); }

 private:
  static TokenId token_behind(const flow::PlannedSequence& planned) {
    const auto& allowed = planned.edits.allowed;
    if (const auto word = std::ranges::find_if(allowed, std::identity()); word != allowed.end()) {  // the first allowed
      return static_cast<TokenId>((word - allowed.begin()) * 32 + std::countr_zero(*word));
    }
    return static_cast<TokenId>((planned.seq.value * 7919 + planned.first_position * std::uint64_t{104729}) %
                                kCrowdVocab);
  }
  std::vector<std::vector<flow::StepChoice>> choices_;  // [depth]
  std::size_t num_submitted_ = 0;
  std::size_t num_collected_ = 0;
};

struct CrowdOptions {
  std::uint32_t num_sequences = 1;
  std::uint32_t prompt_tokens = 128;
  std::uint32_t max_tokens = 512;
  std::uint32_t block_tokens = 16;
  bool prefix_caching = true;
  std::size_t depth = 1;          // steps in flight
  std::uint32_t num_waiting = 0;  // behind them, for whom there is no place
  schedule::Policy policy = schedule::Policy::kFcfs;
  std::shared_ptr<const sample::Rules> rules{};
  std::shared_ptr<const grammar::Grammar> grammar{};

  std::uint32_t length() const { return prompt_tokens + max_tokens; }
  std::uint32_t num_blocks() const { return num_sequences * (length() / block_tokens + 1); }
  schedule::SchedulerOptions scheduler() const {
    return {.max_num_seqs = num_sequences, .max_num_batched_tokens = num_sequences * prompt_tokens, .policy = policy};
  }
  // No two alike.
  flow::Request request(std::uint32_t number) const {
    flow::Request out;
    out.prompt.resize(prompt_tokens);
    for (std::uint32_t i = 0; i < prompt_tokens; ++i) {
      out.prompt[i] = static_cast<TokenId>((number * 31u + i * 7u) % kCrowdVocab);
    }
    out.prompt.front() = static_cast<TokenId>(number % kCrowdVocab);
    out.max_tokens = max_tokens;
    out.tenant = number % 8;
    out.priority = static_cast<std::int32_t>(number % 3);
    out.first_token_by = TimePoint{} + std::chrono::seconds(number % 100);
    out.sampling.temperature = 0;
    out.rules = rules;
    out.grammar = grammar;
    if (prefix_caching) out.cache_namespace = CacheNamespace{1, 1};
    return out;
  }
};

// The scheduler, the pool and the prefix index alone: plan, then what the engine's commit does to sequences.
class ScheduledCrowd {
 public:
  explicit ScheduledCrowd(const CrowdOptions& options) REQUIRES(engine_role)
      : pool_(options.num_blocks(), options.block_tokens),
        index_(pool_, {.hash_key = 1}),
        scheduler_(options.scheduler(), pool_, index_) {
    for (std::uint32_t i = 0; i < options.num_sequences + options.num_waiting; ++i) {
      sequences_.push_back(std::make_unique<schedule::Sequence>(SeqId(i + 1), options.request(i), pool_));
      scheduler_.add(*sequences_.back());
    }
  }

  void step() REQUIRES(engine_role) {
    scheduler_.plan();
    for (schedule::Sequence* sequence : scheduler_.planned()) {
      const bool samples = sequence->planned_rows == sequence->remaining();
      sequence->progress.commit(sequence->planned_rows);
      if (!samples) continue;
      const auto seq = static_cast<std::uint32_t>(sequence->id().value);
      const bool first = !sequence->queue.has_output;
      sequence->note_output();
      sequence->prefix.publish(index_, /*partial=*/first);
      sequence->append(static_cast<TokenId>((seq * 7919u + sequence->num_tokens() * 104729u) % kCrowdVocab));
    }
  }
  std::size_t num_planned() const { return scheduler_.planned().size(); }

 private:
  kv::BlockPool pool_;
  kv::PrefixIndex index_;
  schedule::Scheduler scheduler_;
  std::vector<std::unique_ptr<schedule::Sequence>> sequences_;
};

// A whole engine, its queue and its streams.
class EngineCrowd {
 public:
  explicit EngineCrowd(const CrowdOptions& options)
      : runner_(options.num_sequences, options.depth),
        pool_(options.num_blocks(), options.block_tokens),
        admission_({.max_sequences = options.num_sequences, .max_tokens = 1u << 24}, doorbell_),
        hub_(std::make_shared<bridge::StreamHub>(
            options.num_sequences, [] {}, doorbell_)),
        engine_(engine_options(options), {runner_, pool_, admission_, control_, doorbell_, status_, metrics_, clock_}) {
    for (std::uint32_t i = 0; i < options.num_sequences; ++i) {
      std::vector<bridge::Submission> submissions(1);
      submissions.front().request = options.request(i);
      submissions.front().stream = hub_->open([] {});
      streams_.push_back(submissions.front().stream);
      CHECK(admission_.admit(submissions).ok());
    }
  }

  static engine::EngineOptions engine_options(const CrowdOptions& options) {
    engine::EngineOptions out;
    out.scheduler = options.scheduler();
    out.vocab = kCrowdVocab;
    out.max_model_len = options.length();
    out.prefix_caching = options.prefix_caching;
    out.prefix_index.hash_key = 1;
    out.max_step_time = out.max_prompt_step_time = Duration::zero();
    return out;
  }

  void step() REQUIRES(engine_role) { engine_.step(); }
  // At least every bridge::TokenStream::kCapacity - 2 steps, or the sequences are parked.
  void read_all() {
    hub_->drain();
    for (const auto& stream : streams_) {
      while (stream->pop()) {
      }
    }
  }
  double num_running() const { return metrics_.requests_running.value(); }

 private:
  SteadyClock clock_;
  InstantRunner runner_;
  kv::BlockPool pool_;
  bridge::Doorbell doorbell_;
  bridge::ControlQueue control_{doorbell_};
  bridge::EngineStatus status_;
  observe::Metrics metrics_{observe::MetricsInfo{}};
  bridge::AdmissionQueue admission_;
  std::shared_ptr<bridge::StreamHub> hub_;
  std::vector<std::shared_ptr<bridge::TokenStream>> streams_;
  engine::Engine engine_;
};

}  // namespace quire::testing
