// A runner that keeps the logits of everything that was said, by sequence: what exactness is measured by.
#pragma once

#include <map>
#include <vector>

#include "core/model/run/decoder_runner.h"

namespace quire::testing {

class RecordingRunner final : public model::Runner {
 public:
  RecordingRunner(model::DecoderRunner& inner, std::uint32_t vocab) : inner_(inner), vocab_(vocab) {}

  void submit(const flow::StepPlan& plan) override REQUIRES(engine_role) {
    ++steps;
    inner_.submit(plan);
  }
  std::span<const flow::StepChoice> collect() override REQUIRES(engine_role) {
    const auto choices = inner_.collect();
    std::vector<float> rows(choices.size() * vocab_);
    inner_.read_logits(rows);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const auto first = rows.begin() + static_cast<std::ptrdiff_t>(i * vocab_);
      logits[choices[i].seq].emplace_back(first, first + vocab_);
    }
    return choices;
  }
  std::span<const std::uint64_t> accumulated_scores(std::size_t planned) const override {
    return inner_.accumulated_scores(planned);
  }
  std::span<const float> pooled(std::size_t planned) const override { return inner_.pooled(planned); }
  std::uint32_t hidden_width() const override { return inner_.hidden_width(); }
  bool idle() const override { return inner_.idle(); }
  bool full() const override { return inner_.full(); }
  void copy_rows(std::span<const backend::RowCopy> copies) override REQUIRES(engine_role) { inner_.copy_rows(copies); }
  std::size_t block_bytes() const override { return inner_.block_bytes(); }
  void read_block(BlockId block, std::span<std::byte> out) override REQUIRES(engine_role) {
    inner_.read_block(block, out);
  }
  void write_block(BlockId block, std::span<const std::byte> bytes) override REQUIRES(engine_role) {
    inner_.write_block(block, bytes);
  }

  std::map<SeqId, std::vector<std::vector<float>>> logits;  // one row for every token, in order
  std::uint64_t steps = 0;

 private:
  model::DecoderRunner& inner_;
  const std::uint32_t vocab_;
};

}  // namespace quire::testing
