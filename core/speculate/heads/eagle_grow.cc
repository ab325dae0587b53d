// EagleDrafter::propose(): roots, then level by level.
#include <algorithm>

#include "core/base/check.h"
#include "core/speculate/heads/eagle_drafter.h"

namespace quire::speculate {

void EagleDrafter::propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) {
  CHECK_EQ(asked.size(), trees.size());
  choose_growers(asked);
  if (num_growers_ == 0) return;
  run_roots(asked);
  for (std::uint32_t depth = 1; run_level(asked, depth); ++depth) {
  }
  for (Grower& grower : std::span(growers_).first(num_growers_)) {
    grower.tree.write(trees[grower.asked]);
    trees[grower.asked].set_distributions(&grower.distributions);
  }
}

// Selects the sequences that the last step ran, in the order of their rows there.
void EagleDrafter::choose_growers(std::span<const Asked> asked) {
  num_growers_ = 0;
  for (std::size_t i = 0; i < asked.size() && num_growers_ < growers_.size(); ++i) {
    if (asked[i].max_nodes == 0 || asked[i].max_depth == 0) continue;
    const HeadRows::Last* last = committed_.last_of(asked[i]);
    if (last == nullptr) continue;
    growers_[num_growers_].asked = i;
    growers_[num_growers_++].last = last;
  }
  const std::span growers = std::span(growers_).first(num_growers_);
  std::ranges::sort(growers, {}, [](const Grower& grower) { return grower.last->feature; });
  if (num_growers_ > max_growing_rows_) num_growers_ = max_growing_rows_;
  if (num_growers_ == 0) return;
  width_ = std::min(options_.width, static_cast<std::uint32_t>(max_growing_rows_ / num_growers_));
  for (std::uint32_t i = 0; i < num_growers_; ++i) {
    const Asked& one = asked[growers[i].asked];
    const std::uint32_t newest = static_cast<std::uint32_t>(one.tokens.size()) - 1;
    // The deepest node that runs is one above the deepest node of the tree.
    const std::uint32_t room = limits_.max_model_len > newest ? limits_.max_model_len - newest : 1;
    growers[i].index = i;
    growers[i].distributions.clear();
    const TreeLimits limits{.width = std::min({width_, one.max_nodes, head_.config().draft_vocab}),
                            .max_depth = std::min({options_.max_depth, one.max_depth, room}),
                            .max_nodes = one.max_nodes};
    growers[i].tree.begin(limits, sample::accepts_by_rejection(*one.sampling));
  }
}

// Runs the last rows again, now for their output; their K and V are stored once more, unchanged.
void EagleDrafter::run_roots(std::span<const Asked> asked) {
  rows_.clear();
  picks_.clear();
  const std::span growers = std::span(growers_).first(num_growers_);
  for (Grower& grower : growers) {
    const Asked& one = asked[grower.asked];
    const std::uint32_t position = grower.last->position;
    rows_.begin_sequence(one.table);
    grower.first_row = rows_.num_rows();
    rows_.add_row(one.tokens.back(), position, committed_.slot_of(one.table, position));
    rows_.add_logits_row(num_candidates_to_request(*one.sampling, grower.tree.num_children(GrowingTree::kRoot)));
    picks_.push_back(grower.last->feature);
  }
  head_.begin_with_features(picks_);
  choices_.resize(rows_.num_logits_rows());
  head_.run(rows_.batch(), choices_);
  for (Grower& grower : growers) {
    grower.grown.assign(1, GrowingTree::kRoot);
    add_children(asked[grower.asked], grower, GrowingTree::kRoot, 1, choices_[grower.first_row]);
  }
}

// Runs the growing nodes of that depth, of all trees; false if there are none.
bool EagleDrafter::run_level(std::span<const Asked> asked, std::uint32_t depth) {
  rows_.clear();
  picks_.clear();
  copies_.clear();
  const std::span growers = std::span(growers_).first(num_growers_);
  for (Grower& grower : growers) {
    const std::span<const int> frontier = grower.tree.next_frontier();
    add_rows(asked[grower.asked], grower, frontier, depth);
  }
  if (rows_.num_rows() == 0) return false;
  ops_.copy_blocks(head_.cache(), copies_);
  head_.begin_with_outputs(picks_);
  choices_.resize(rows_.num_logits_rows());
  head_.run(rows_.batch(), choices_);
  for (Grower& grower : growers) {
    for (std::size_t i = 0; i < grower.grown.size(); ++i) {
      add_children(asked[grower.asked], grower, grower.grown[i], depth + 1, choices_[grower.first_row + i]);
    }
  }
  return true;
}

// A node attends to the context and to its ancestors' rows, which are in scratch blocks of its own.
void EagleDrafter::add_rows(const Asked& asked, Grower& grower, std::span<const int> frontier, std::uint32_t depth) {
  const std::uint32_t block_tokens = limits_.block_tokens;
  const std::uint32_t first = static_cast<std::uint32_t>(asked.tokens.size()) - 1;  // of the first scratch row
  const std::uint32_t position = first + depth - 1;
  const std::uint32_t whole = first / block_tokens;
  const std::uint32_t first_row = rows_.num_rows();
  // Rows already in the scratch blocks: of the context, then of ancestors.
  const std::uint32_t num_before = first % block_tokens + depth - 1;
  const std::uint32_t num_copied = (num_before + block_tokens - 1) / block_tokens;
  for (std::size_t i = 0; i < frontier.size(); ++i) {
    const auto parent = std::ranges::find(grower.grown, grower.tree.parent(frontier[i])) - grower.grown.begin();
    picks_.push_back(grower.first_row + static_cast<std::uint32_t>(parent));
    for (std::uint32_t block = 0; block < num_copied; ++block) {
      const BlockId to = scratch_block(grower, i, depth, block);
      const BlockId from =
          depth == 1 ? asked.table[whole] : scratch_block(grower, static_cast<std::size_t>(parent), depth - 1, block);
      if (from != to) copies_.push_back({from, to});
    }
    rows_.begin_sequence(asked.table.first(whole));
    for (std::uint32_t block = 0; block <= num_before / block_tokens; ++block) {
      rows_.add_block(scratch_block(grower, i, depth, block));
    }
    const BlockId own = scratch_block(grower, i, depth, num_before / block_tokens);
    rows_.add_row(grower.tree.token(frontier[i]), position, own.value * block_tokens + position % block_tokens);
    rows_.add_logits_row(num_candidates_to_request(*asked.sampling, grower.tree.num_children(frontier[i])));
  }
  grower.grown.assign(frontier.begin(), frontier.end());
  grower.first_row = first_row;
}

void EagleDrafter::add_children(const Asked& asked, Grower& grower, int parent, std::uint32_t depth,
                                const backend::Choice& choice) {
  const ChildRequest wanted{.num = grower.tree.num_children(parent),
                            .position = static_cast<std::uint32_t>(asked.tokens.size()) + depth - 1,
                            .depth = depth,
                            .shared_noise = options_.shared_noise};
  children_.list(choice, wanted.num, *asked.sampling, [this](TokenId draft) { return head_.token_of(draft); });
  for (const Child& child : children_.chosen(wanted, *asked.sampling, grower.distributions)) {
    grower.tree.add(parent, child.token, child.log_likely);
  }
}

std::uint32_t EagleDrafter::num_candidates_to_request(const sample::Params& params, std::uint32_t num_children) const {
  return std::min(Children::num_candidates_to_request(num_children, params, options_.shared_noise),
                  head_.config().draft_vocab);
}

BlockId EagleDrafter::scratch_block(const Grower& grower, std::size_t row, std::uint32_t depth,
                                    std::uint32_t block) const {
  const std::uint32_t banks = options_.width == 1 ? 1 : 2;
  const auto place = static_cast<std::uint32_t>(grower.index * width_ + row);
  return BlockId(limits_.num_blocks + (place * banks + depth % banks) * scratch_per_row_ + block);
}

}  // namespace quire::speculate
