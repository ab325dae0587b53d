// The host sampler of a step's logits rows: each is sampled alone, or with the verification of its draft
// (Batch::logits_rows). For devices without sampling kernels, and for what these leave to the host.
// Shape   a walk is a logits row that hangs below no other, with the nodes behind it; walks are independent of each
//         other.
// Owner   a device. What it shows lasts until the next begin().
// Thread  begin(): engine. run(): any, different walks at a time, a scratch each.
// Source  core/sample: sampler.h, and where a draft is judged by law acceptance.h.
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

class Choices {
 public:
  // For steps of so many rows nothing is allocated later, but for lists of candidates, which grow with the longest.
  explicit Choices(std::uint32_t max_rows) {
    each_.reserve(max_rows);
    walks_.reserve(max_rows);
    lists_.reserve(std::size_t{max_rows} * sample::kMaxTop);  // address space; memory once lists are asked for
  }

  void forget() { each_.clear(); }
  void begin(const Batch& batch);
  std::uint32_t num_walks() const { return static_cast<std::uint32_t>(walks_.size()); }
  std::uint32_t first_of(std::uint32_t walk) const { return walks_[walk]; }  // its first logits row
  std::span<const Choice> each() const { return each_; }

  // row_of(r): a LogitRow, of logits row r.
  template <typename RowOf>
  void run(std::uint32_t walk, const RowOf& row_of, sample::Scratch& scratch) {
    const std::uint32_t root = walks_[walk];
    const LogitsRow& logits_row = logits_rows_[root];
    const auto judged = [&](std::uint32_t r) { return judged_row(r, row_of(r)); };
    if (logits_row.params.accept == sample::Accept::kBlock && sample::accepts_by_law(logits_row.params) &&
        logits_row.num_nodes != 0 && logits_row.draft->is_chain()) {
      judge_chain(root, judged, scratch);
    } else {
      walk_down(root, judged, scratch);
    }
    hear_lookahead_nodes(root, row_of, scratch);
  }

 private:
  // The root's guesses at what is said behind a node.
  struct Guesses {
    std::array<sample::Guess, sample::TokenTree::kMaxNodes> each;
    std::size_t count = 0;
    std::uint32_t depth = 1;
  };
  static Guesses guesses_below(const LogitsRow& root, int at);
  static Choice choice_of(const LogitsRow& logits_row, const sample::JudgedRow& row, const Guesses& guesses,
                          sample::Scratch& scratch);
  static Choice told(const sample::Drawn& drawn);
  sample::JudgedRow judged_row(std::uint32_t r, const LogitRow& row);

  // From a logits row down its draft, as far as what is said there is in it.
  template <typename Judged>
  void walk_down(std::uint32_t root, const Judged& judged, sample::Scratch& scratch) {
    const LogitsRow& logits_row = logits_rows_[root];
    std::fill_n(each_.begin() + root + 1, logits_row.num_nodes, Choice{});
    int at = sample::TokenTree::kRoot;
    for (std::uint32_t r = root;; r = root + 1 + static_cast<std::uint32_t>(at)) {
      each_[r] = choice_of(logits_rows_[r], judged(r), guesses_below(logits_row, at), scratch);
      const TokenId said = each_[r].token;
      if (logits_row.num_nodes == 0 || said < 0) return;
      at = logits_row.draft->child(at, said);
      if (at < 0 || at >= static_cast<int>(logits_row.num_nodes)) return;
    }
  }

  // A chain that is judged as a whole.
  template <typename Judged>
  void judge_chain(std::uint32_t root, const Judged& judged, sample::Scratch& scratch) {
    constexpr std::size_t kMost = sample::TokenTree::kMaxNodes;
    const LogitsRow& logits_row = logits_rows_[root];
    std::array<sample::JudgedRow, kMost + 1> rows;
    std::array<sample::Guess, kMost> chain;
    std::array<sample::Drawn, kMost + 1> drawn;
    const std::uint32_t num = logits_row.num_nodes;
    for (std::uint32_t i = 0; i <= num; ++i) rows[i] = judged(root + i);
    for (std::uint32_t i = 0; i < num; ++i) chain[i] = {logits_row.draft->token(i), logits_row.draft->law(i)};
    sample::judge_chain(std::span(rows).first(num + 1), std::span(chain).first(num), logits_row.params, scratch,
                        std::span(drawn).first(num + 1));
    for (std::uint32_t i = 0; i <= num; ++i) each_[root + i] = told(drawn[i]);
  }

  // Below a logits row, where no walk came.
  template <typename RowOf>
  void hear_lookahead_nodes(std::uint32_t root, const RowOf& row_of, sample::Scratch& scratch) {
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
  std::vector<std::uint32_t> walks_;      // logits rows that hang below no other
  std::vector<sample::Candidate> lists_;  // [R, longest num_top of the step], what each_[r].top shows
  std::size_t longest_list_ = 0;
};

}  // namespace quire::backend
