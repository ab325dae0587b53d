// A drafter as it would be if its files were read wrongly: the same, but for the states that it asks for.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/speculate/drafter.h"

namespace quire::test {

class MisreadDrafter final : public speculate::Drafter {
 public:
  MisreadDrafter(std::unique_ptr<speculate::Drafter> drafter, std::vector<std::uint32_t> boundaries)
      : drafter_(std::move(drafter)), boundaries_(std::move(boundaries)) {}
  std::string method() const override { return drafter_->method(); }
  speculate::Needs needs() const override { return {.boundaries = boundaries_, .final_norm = false}; }
  void admit(const speculate::Admitted& sequence) override REQUIRES(engine_role) { drafter_->admit(sequence); }
  void observe(const speculate::ObservedStep& step) override REQUIRES(engine_role) { drafter_->observe(step); }
  void propose(std::span<const speculate::Asked> asked, std::span<sample::TokenTree> trees) override
      REQUIRES(engine_role) {
    drafter_->propose(asked, trees);
  }
  void release(SeqId seq, bool ended) override REQUIRES(engine_role) { drafter_->release(seq, ended); }

 private:
  std::unique_ptr<speculate::Drafter> drafter_;
  std::vector<std::uint32_t> boundaries_;
};

}  // namespace quire::test
