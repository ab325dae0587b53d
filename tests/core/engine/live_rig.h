// Sequences with streams for unit tests of the engine's parts, without an engine.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/stream_hub.h"
#include "core/engine/drafting.h"
#include "core/engine/live_sequences.h"
#include "core/kv/prefix_index.h"
#include "core/observe/metrics.h"
#include "core/schedule/scheduler.h"

namespace quire::engine {

// A runner that runs nothing and records what is copied.
class IdleRunner final : public model::Runner {
 public:
  void submit(const flow::StepPlan& /*plan*/) override { is_idle = false; }
  std::span<const flow::StepChoice> collect() override { return {}; }
  bool idle() const override { return is_idle; }
  bool full() const override { return !is_idle; }
  void copy_rows(std::span<const backend::RowCopy> rows) override {
    for (const backend::RowCopy& row : rows) copies.emplace_back(row.from, row.to);
  }

  bool is_idle = true;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> copies;
};

struct LiveRig {
  static constexpr std::uint32_t kVocab = 100;
  static constexpr std::uint32_t kBlockTokens = 16;

  explicit LiveRig(speculate::Drafter* drafter = nullptr, std::uint32_t max_draft_nodes = 8)
      : drafting({max_draft_nodes, kVocab, 8, 64}, drafter, nullptr, runner, metrics, clock) {}

  // A sequence that has its prompt computed and one token of its answer, whose row is still to run.
  Live& decoding(std::vector<TokenId> prompt, std::uint32_t max_tokens, TokenId first) REQUIRES(engine_role) {
    Live& live = add(std::move(prompt), max_tokens);
    schedule::Sequence& sequence = live.sequence;
    const std::uint32_t rows = sequence.num_tokens();
    CHECK(sequence.reserve_memory());
    CHECK(sequence.table.grow_to(rows + 1 + 64).ok());
    sequence.progress.commit(rows);
    CHECK(sequence.append(first) == flow::Finish::kNone);
    return live;
  }
  Live& add(std::vector<TokenId> prompt, std::uint32_t max_tokens) REQUIRES(engine_role) {
    bridge::Submission submission;
    submission.request.prompt = std::move(prompt);
    submission.request.max_tokens = max_tokens;
    submission.request.arrival = clock.now();
    submission.stream = hub->open([] {});
    Live* const live = live_sequences.add(submission);
    CHECK(live != nullptr);
    live->timeline->begin(clock.now(), live->sequence.num_tokens());
    return *live;
  }

  FakeClock clock;
  bridge::Doorbell doorbell;
  observe::Metrics metrics{observe::MetricsInfo{}};
  kv::BlockPool pool{64, kBlockTokens};
  kv::PrefixIndex index{pool, {}};
  schedule::Scheduler scheduler{{.max_num_seqs = 8, .max_num_batched_tokens = 64}, pool, index};
  std::shared_ptr<bridge::StreamHub> hub = std::make_shared<bridge::StreamHub>(
      16, [] {}, doorbell);
  IdleRunner runner;
  Drafting drafting;
  LiveSequences live_sequences{pool, scheduler, drafting, /*log_blocks=*/false};
};

}  // namespace quire::engine
