// A device that is behind: ToyRunner's steps, up to `depth` of them in flight, each run when it is collected, or on
// another thread after a delay drawn from a seed. What a step borrows is read then and not before; a row without a
// token takes what the step before said; a block that a step stores into must be its sequence's alone when the step is
// submitted, and still be held when it is collected. So a token fed wrongly, a block freed too early, a list changed
// while it is lent or a lost step shows.
// Owner   the test. Borrows the ToyRunner, which nobody else may look at while steps run on the thread.
// Thread  submit(), collect(): one; the steps run on that one, or on a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <random>
#include <thread>

#include "tests/support/toy_runner.h"

namespace quire::testing {

class LateRunner final : public model::Runner {
 public:
  enum class Runs { kWhenCollected, kOnAThread };

  LateRunner(ToyRunner& toy, Runs runs, std::size_t depth = 2, std::uint64_t seed = 1)
      : toy_(toy), depth_(depth), random_(seed) {
    if (runs == Runs::kOnAThread) thread_ = std::thread([this] { work(); });
  }
  ~LateRunner() override {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void submit(const flow::StepPlan& plan) override {
    CHECK(!full());
    for (const flow::BlockOp& op : plan.block_ops) {
      const bool fills = op.kind == flow::BlockOp::Kind::kCopy || op.kind == flow::BlockOp::Kind::kSwapIn;
      if (holders && fills) CHECK_EQ(holders(BlockId(op.to)), 1u);
      if (num_relied_tokens && fills) CHECK_EQ(num_relied_tokens(BlockId(op.to)), 0u);
    }
    for (const std::uint32_t slot : plan.slots) {
      if (holders) CHECK_EQ(holders(block_of(slot)), 1u);
      if (num_relied_tokens) CHECK_GE(slot % block_tokens(), num_relied_tokens(block_of(slot)));
    }
    for (const flow::PlannedSequence& planned : plan.sequences) {
      if (planned.fed_by == flow::PlannedSequence::kNoChoice) continue;
      CHECK(!idle());  // nothing is said that could feed it
      CHECK_EQ(planned.num_rows, 1u);
      CHECK_EQ(plan.tokens.at(planned.first_row), -1);
      ++num_fed;
    }
    num_ahead += idle() ? 0 : 1;
    {
      const std::lock_guard lock(mutex_);
      steps_.emplace_back().plan = plan;
    }
    changed_.notify_all();
    ++num_submitted;
  }

  std::span<const flow::StepChoice> collect() override {
    CHECK(!idle());
    if (thread_.joinable()) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return steps_.front().done; });
    } else {
      run(steps_.front());
    }
    {
      const std::lock_guard lock(mutex_);
      collected_ = std::move(steps_.front());
      steps_.pop_front();
    }
    ++num_collected;
    if (collected_.failure) std::rethrow_exception(collected_.failure);
    for (const std::uint32_t slot : collected_.plan.slots) {
      if (holders) CHECK_GE(holders(block_of(slot)), 1u);
    }
    return collected_.choices;
  }
  std::span<const std::uint64_t> accumulated_scores(std::size_t planned) const override {
    CHECK(idle());
    return collected_.accumulated_scores.at(planned);
  }
  std::span<const float> pooled(std::size_t planned) const override {
    CHECK(idle());
    return collected_.pooled.at(planned);
  }
  std::uint32_t hidden_width() const override { return kToyHidden; }
  bool idle() const override { return num_in_flight() == 0; }
  bool full() const override { return num_in_flight() == depth_; }

  void copy_rows(std::span<const backend::RowCopy> copies) override {
    CHECK(idle());
    toy_.copy_rows(copies);
  }
  std::size_t block_bytes() const override { return toy_.block_bytes(); }
  void read_block(BlockId block, std::span<std::byte> out) override {
    CHECK(idle());
    toy_.read_block(block, out);
  }
  void write_block(BlockId block, std::span<const std::byte> bytes) override {
    CHECK(idle());
    toy_.write_block(block, bytes);
  }

  ToyRunner& toy() { return toy_; }
  // A step in flight is to fill the block with something else.
  bool is_to_be_filled(BlockId block) const {
    const std::lock_guard lock(mutex_);
    for (const Step& step : steps_) {
      for (const flow::BlockOp& op : step.plan.block_ops) {
        if (op.kind != flow::BlockOp::Kind::kSwapOut && op.to == block.value) return true;
      }
    }
    return false;
  }

  std::uint64_t num_submitted = 0;
  std::uint64_t num_collected = 0;
  std::uint64_t num_ahead = 0;  // steps that were submitted while another was in flight
  std::uint64_t num_fed = 0;    // rows whose tokens another step said
  // As ToyRunner's. EngineRig sets them.
  std::function<std::uint32_t(BlockId)> holders;
  std::function<std::uint32_t(BlockId)> num_relied_tokens;

 private:
  struct Step {
    flow::StepPlan plan;
    std::vector<flow::StepChoice> choices;
    std::vector<std::vector<sample::Candidate>> tops;  // by choice
    std::vector<std::vector<std::uint64_t>> accumulated_scores;
    std::vector<std::vector<float>> pooled;
    std::exception_ptr failure;
    bool done = false;
  };

  std::uint32_t block_tokens() const {
    return static_cast<std::uint32_t>(toy_.block_bytes() / sizeof(ToyRunner::Slot));
  }
  BlockId block_of(std::uint32_t slot) const { return BlockId(slot / block_tokens()); }
  std::size_t num_in_flight() const {
    const std::lock_guard lock(mutex_);
    return steps_.size();
  }

  void run(Step& step) {
    for (const flow::PlannedSequence& planned : step.plan.sequences) {
      if (planned.fed_by == flow::PlannedSequence::kNoChoice) continue;
      const flow::StepChoice& said = said_.at(planned.fed_by);
      CHECK_EQ(said.seq, planned.seq);
      step.plan.tokens[planned.first_row] = said.finite ? said.token : 0;
    }
    try {
      toy_.submit(step.plan);
      const auto choices = toy_.collect();
      step.choices.assign(choices.begin(), choices.end());
      for (flow::StepChoice& choice : step.choices) {
        choice.top = step.tops.emplace_back(choice.top.begin(), choice.top.end());
      }
      for (std::size_t i = 0; i < step.plan.sequences.size(); ++i) {
        const auto accumulated_scores = toy_.accumulated_scores(i);
        const auto pooled = toy_.pooled(i);
        step.accumulated_scores.emplace_back(accumulated_scores.begin(), accumulated_scores.end());
        step.pooled.emplace_back(pooled.begin(), pooled.end());
      }
    } catch (const std::runtime_error&) {
      step.failure = std::current_exception();
    }
    said_ = step.choices;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto next = std::ranges::find(steps_, false, &Step::done);
      if (next == steps_.end()) {
        if (stops_) return;
        changed_.wait(lock);
        continue;
      }
      Step& step = *next;  // nobody but collect() takes steps away, and that one waits for it
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 4 == 0 ? random_() % 100 : 0));
      run(step);
      lock.lock();
      step.done = true;
      changed_.notify_all();
    }
  }

  ToyRunner& toy_;
  const std::size_t depth_;
  std::mt19937_64 random_;              // the thread's
  std::vector<flow::StepChoice> said_;  // by the step that ran last
  Step collected_;
  mutable std::mutex
      mutex_;               // guards the two below, and Step::done; of a step that is not done all else is the thread's
  std::deque<Step> steps_;  // in flight, the oldest first
  bool stops_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace quire::testing
