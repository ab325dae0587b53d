// Host sampler of a step's logits rows: samples each alone, or together with the verification of its draft
// (Batch::logits_rows). Used by devices without sampling kernels, and for rows that sampling kernels leave to the host.
// Shape   A verification is a logits row that is no draft node, with the nodes after it. Verifications are
//         independent.
// Owner   a device. Results and their lists stay valid until the next begin().
// Thread  begin(): engine. run(): any; different verifications may run in parallel, each with its own scratch.
// Source  core/sample: sampler.h; rejection sampling of drafts: acceptance.h.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/sample/acceptance.h"
#include "core/sample/sampler.h"
#include "core/sample/scratch.h"

namespace quire::backend {

struct LogitRow {
  std::span<const float> logits;
  sample::Highest highest;
};

class HostSampler {
 public:
  // Steps of up to max_rows rows allocate nothing later, except lists of candidates, which grow to the longest list.
  explicit HostSampler(std::uint32_t max_rows) {
    each_.reserve(max_rows);
    verifications_.reserve(max_rows);
    lists_.reserve(std::size_t{max_rows} * sample::kMaxTop);  // address space; no memory until lists are requested
  }

  void forget() { each_.clear(); }
  void begin(const Batch& batch);
  std::uint32_t num_verifications() const { return static_cast<std::uint32_t>(verifications_.size()); }
  // Index of its first logits row.
  std::uint32_t first_of(std::uint32_t verification) const { return verifications_[verification]; }
  std::span<const Choice> each() const { return each_; }

  // row_of(r) returns the LogitRow of logits row r.
  template <typename RowOf>
  void run(std::uint32_t verification, const RowOf& row_of, sample::Scratch& scratch) {
    const std::uint32_t root = verifications_[verification];
    const LogitsRow& logits_row = logits_rows_[root];
    const auto verified = [&](std::uint32_t r) { return verified_row(r, row_of(r)); };
    if (logits_row.params.accept == sample::Accept::kBlock && sample::accepts_by_rejection(logits_row.params) &&
        logits_row.num_nodes != 0 && logits_row.draft->is_chain()) {
      verify_chain(root, verified, scratch);
    } else {
      verify_tree(root, verified, scratch);
    }
    choose_lookahead_nodes(root, row_of, scratch);
  }

 private:
  // Draft tokens of a node's children, with their common depth. Empty unless the request accepts by rejection sampling.
  struct DraftTokens {
    std::array<sample::DraftToken, sample::TokenTree::kMaxNodes> each;
    std::size_t count = 0;
    std::uint32_t depth = 1;
  };
  static DraftTokens draft_tokens_below(const LogitsRow& root, int at);
  static Choice choice_of(const LogitsRow& logits_row, const sample::VerifiedRow& row, const DraftTokens& draft_tokens,
                          sample::Scratch& scratch);
  static Choice choice_of_drawn(const sample::SampledToken& drawn);
  sample::VerifiedRow verified_row(std::uint32_t r, const LogitRow& row);

  // Samples from a logits row down its draft: goes on to the child with the sampled token while there is one.
  template <typename Judged>
  void verify_tree(std::uint32_t root, const Judged& verified, sample::Scratch& scratch) {
    const LogitsRow& logits_row = logits_rows_[root];
    std::fill_n(each_.begin() + root + 1, logits_row.num_nodes, Choice{});
    int at = sample::TokenTree::kRoot;
    for (std::uint32_t r = root;; r = root + 1 + static_cast<std::uint32_t>(at)) {
      each_[r] = choice_of(logits_rows_[r], verified(r), draft_tokens_below(logits_row, at), scratch);
      const TokenId said = each_[r].token;
      if (logits_row.num_nodes == 0 || said < 0) return;
      at = logits_row.draft->child(at, said);
      if (at < 0 || at >= static_cast<int>(logits_row.num_nodes)) return;
    }
  }

  // Verifies a chain of draft tokens as a whole (block verification).
  template <typename Judged>
  void verify_chain(std::uint32_t root, const Judged& verified, sample::Scratch& scratch) {
    constexpr std::size_t kMost = sample::TokenTree::kMaxNodes;
    const LogitsRow& logits_row = logits_rows_[root];
    std::array<sample::VerifiedRow, kMost + 1> rows;
    std::array<sample::DraftToken, kMost> chain;
    std::array<sample::SampledToken, kMost + 1> drawn;
    const std::uint32_t num = logits_row.num_nodes;
    for (std::uint32_t i = 0; i <= num; ++i) rows[i] = verified(root + i);
    for (std::uint32_t i = 0; i < num; ++i) chain[i] = {logits_row.draft->token(i), logits_row.draft->distribution(i)};
    sample::verify_chain(std::span(rows).first(num + 1), std::span(chain).first(num), logits_row.params, scratch,
                         std::span(drawn).first(num + 1));
    for (std::uint32_t i = 0; i <= num; ++i) each_[root + i] = choice_of_drawn(drawn[i]);
  }

  // Gives lookahead nodes below a logits row that were not verified the token of their highest logit.
  template <typename RowOf>
  void choose_lookahead_nodes(std::uint32_t root, const RowOf& row_of, sample::Scratch& scratch) {
    const LogitsRow& logits_row = logits_rows_[root];
    if (logits_row.num_nodes == 0) return;
    for (std::uint64_t left = logits_row.draft->lookahead_nodes(logits_row.num_nodes); left != 0; left &= left - 1) {
      const std::uint32_t r = root + 1 + static_cast<std::uint32_t>(std::countr_zero(left));
      if (each_[r].token >= 0 || !each_[r].finite) continue;
      const LogitRow row = row_of(r);
      each_[r].token = sample::draw(row.logits, row.highest, {.temperature = 0}, 0, scratch).token;
    }
  }

  std::span<const LogitsRow> logits_rows_;
  std::vector<Choice> each_;
  std::vector<std::uint32_t> verifications_;  // indices of logits rows that are no draft nodes
  std::vector<sample::Candidate> lists_;      // [R, longest num_top of the step]: the memory of each_[r].top
  std::size_t longest_list_ = 0;
};

}  // namespace quire::backend
