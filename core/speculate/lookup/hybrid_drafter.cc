#include "core/speculate/lookup/hybrid_drafter.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/start_error.h"
#include "core/speculate/lookup/continuations.h"

namespace quire::speculate {
namespace {

Needs needs_of(const Drafter& first, const Drafter& second) {
  const Needs one = first.needs();
  const Needs other = second.needs();
  if (one.any() && other.any() && (one.boundaries != other.boundaries || one.final_norm != other.final_norm)) {
    throw StartError(
        fmt::format("hybrid: {} and {} read different states of the target, and a step returns only one kind: use "
                    "suffix, ngram or rest as one of them",
                    first.method(), second.method()));
  }
  return one.any() ? one : other;
}

}  // namespace

HybridDrafter::HybridDrafter(std::unique_ptr<Drafter> first, std::unique_ptr<Drafter> second,
                             const HybridOptions& options)
    : first_(std::move(first)),
      second_(std::move(second)),
      min_expected_(options.min_expected),
      needs_(needs_of(*first_, *second_)) {
  if (!(min_expected_ >= 0.0f && min_expected_ <= 64.0f)) {
    throw StartError(fmt::format("min_expected {}: expected 0..64", min_expected_));
  }
}

void HybridDrafter::admit(const Admitted& sequence) {
  first_->admit(sequence);
  second_->admit(sequence);
}

void HybridDrafter::observe(const ObservedStep& step) {
  first_->observe(step);
  second_->observe(step);
}

void HybridDrafter::propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) {
  first_->propose(asked, trees);
  left_.clear();
  left_asked_.clear();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (expected_taken(trees[i]) > min_expected_) continue;
    left_.push_back(i);
    left_asked_.push_back(asked[i]);
  }
  if (left_.empty()) return;
  if (left_trees_.size() < left_.size()) left_trees_.resize(left_.size());
  const std::span<sample::TokenTree> drafts = std::span(left_trees_).first(left_.size());
  for (sample::TokenTree& draft : drafts) draft.clear();
  second_->propose(left_asked_, drafts);
  for (std::size_t i = 0; i < left_.size(); ++i) {
    if (!drafts[i].empty()) trees[left_[i]] = drafts[i];
  }
}

void HybridDrafter::release(SeqId seq, bool ended) {
  first_->release(seq, ended);
  second_->release(seq, ended);
}

void HybridDrafter::track(std::span<const flow::BlockOp> ops) {
  first_->track(ops);
  second_->track(ops);
}

}  // namespace quire::speculate
