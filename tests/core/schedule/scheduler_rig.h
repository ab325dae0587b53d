// A scheduler's sequences, and an engine that does what its plans say, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "core/schedule/scheduler.h"

namespace quire::schedule {

class SchedulerTest : public ::testing::Test {
 protected:
  Sequence& add(Scheduler& scheduler, kv::BlockPool& pool, std::uint32_t prompt, std::uint32_t max_tokens = 100,
                bool scores_prompt = false, flow::Pooling pooling = flow::Pooling::kNone) {
    flow::Request request;
    request.pooling = pooling;
    request.scores_prompt = scores_prompt;
    request.prompt.resize(prompt);
    std::iota(request.prompt.begin(), request.prompt.end(), 0);
    request.max_tokens = max_tokens;
    sequences_.push_back(std::make_unique<Sequence>(SeqId(sequences_.size() + 1), std::move(request), pool));
    scheduler.add(*sequences_.back());
    return *sequences_.back();
  }
  // What the engine does with a plan: rows are stored, whoever spoke gets a token.
  void commit(Scheduler& scheduler) {
    for (Sequence* sequence : scheduler.planned()) {
      const bool samples = sequence->samples(sequence->planned_rows);
      const std::uint32_t num_pooled = sequence->num_pooled(sequence->planned_rows);
      const std::uint32_t num_scores = sequence->num_logits_rows(sequence->planned_rows) - (samples ? 1 : 0);
      sequence->progress.commit(sequence->planned_rows);
      for (std::uint32_t i = 0; i < num_scores; ++i) sequence->progress.commit_scored(1);
      sequence->progress.commit_scored(num_pooled);
      if (!samples) continue;
      sequence->note_output();
      sequence->append(7);
    }
  }
  // Rows that `sequence` has in the plan.
  static std::uint32_t rows_of(const flow::StepPlan& plan, const Sequence& sequence) {
    for (const auto& entry : plan.sequences) {
      if (entry.seq == sequence.id()) return entry.num_rows;
    }
    return 0;
  }

  kv::BlockPool& make_pool(std::uint32_t num_blocks, std::uint32_t block_tokens) {
    pools_.push_back(std::make_unique<kv::BlockPool>(num_blocks, block_tokens));
    return *pools_.back();
  }

  kv::PrefixIndex& index_of(kv::BlockPool& pool) {
    indices_.push_back(std::make_unique<kv::PrefixIndex>(pool, kv::PrefixIndexOptions{}));
    return *indices_.back();
  }

  // So many sequences that decode, named 1 and on, and room for some more.
  class Crowd {
   public:
    Crowd(SchedulerTest& test, std::uint32_t num_sequences, std::uint32_t rows, std::uint32_t places = 0)
        : test_(test),
          pool_(test.make_pool(64, 16)),
          scheduler_({.max_num_seqs = num_sequences + places, .max_num_batched_tokens = rows}, pool_,
                     test.index_of(pool_)) {
      test.sequences_.clear();
      for (std::uint32_t i = 0; i < num_sequences; ++i) add(1);
      while (std::ranges::any_of(test.sequences_, [](const auto& one) { return one->num_generated() == 0; })) run();
      std::vector<std::uint64_t> last;  // until the next turn is the first one's again
      while (last.empty() || last.back() != num_sequences || last.front() + last.size() != num_sequences + 1)
        last = run();
    }
    Sequence& add(std::uint32_t prompt) { return test_.add(scheduler_, pool_, prompt); }
    Sequence& sequence(std::uint64_t name) { return *test_.sequences_.at(name - 1); }
    void remove(std::uint64_t name) { scheduler_.remove(sequence(name)); }
    const flow::StepPlan& plan() { return scheduler_.plan(); }
    std::size_t num_planned() const { return scheduler_.planned().size(); }
    void commit() { test_.commit(scheduler_); }
    // Who was in the step, in the order of the plan.
    std::vector<std::uint64_t> run() {
      std::vector<std::uint64_t> names;
      for (const auto& entry : plan().sequences) names.push_back(entry.seq.value);
      commit();
      return names;
    }

   private:
    SchedulerTest& test_;
    kv::BlockPool& pool_;
    Scheduler scheduler_;
  };

  RoleScope role_{engine_role};
  std::vector<std::unique_ptr<kv::BlockPool>> pools_;  // outlive the sequences
  std::vector<std::unique_ptr<kv::PrefixIndex>> indices_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

}  // namespace quire::schedule
