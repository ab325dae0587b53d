#include "core/speculate/heads/medusa_drafter.h"

#include <algorithm>
#include <optional>

#include "core/base/check.h"

namespace quire::speculate {

MedusaDrafter::MedusaDrafter(backend::Ops& ops, const model::Decoder& target, const model::ModelFiles& files,
                             const MedusaOptions& options, std::uint32_t max_rows, std::uint32_t max_sequences)
    : ops_(ops),
      options_(options),
      heads_(load_medusa_heads(ops, target.config(), files, options.quantize)),
      target_output_(target.output()),
      vocab_(heads_.token_of.empty() ? target.config().vocab : static_cast<std::uint32_t>(heads_.token_of.size())),
      mover_(ops, max_rows),
      last_(ops, mover_, std::min(max_rows, max_sequences), target.config().hidden),
      blocks_(ops, std::min(max_rows, max_sequences), target.config().hidden) {
  const std::uint32_t rows = std::min(max_rows, max_sequences);
  x_ = ops.make_buffer(rows, target.config().hidden);
  logits_ = ops.make_buffer(rows, vocab_);
  growers_.resize(rows);
}

void MedusaDrafter::observe(const ObservedStep& step) { last_.observe(step); }

void MedusaDrafter::propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) {
  CHECK_EQ(asked.size(), trees.size());
  choose_growers(asked);
  if (num_growers_ == 0) return;
  std::uint32_t deepest = 0;
  for (const Grower& grower : std::span(growers_).first(num_growers_)) deepest = std::max(deepest, grower.max_depth);
  for (std::uint32_t depth = 0; depth < deepest; ++depth) run_head(asked, depth);
  for (Grower& grower : std::span(growers_).first(num_growers_)) {
    grow(grower, asked[grower.asked], trees[grower.asked]);
    trees[grower.asked].set_distributions(&grower.distributions);
  }
}

void MedusaDrafter::choose_growers(std::span<const Asked> asked) {
  num_growers_ = 0;
  for (std::size_t i = 0; i < asked.size() && num_growers_ < growers_.size(); ++i) {
    const std::optional<std::uint32_t> row = last_.row_of(asked[i]);
    if (!row || asked[i].max_nodes == 0) continue;
    Grower& grower = growers_[num_growers_++];
    grower.asked = i;
    grower.row = *row;
    grower.max_depth = std::min({options_.max_depth, asked[i].max_depth, num_heads()});
    grower.width = std::max(1u, std::min({options_.width, asked[i].max_nodes, vocab_}));
    grower.lists.resize(heads_.heads.size());
    grower.list_distributions.clear();
    grower.distributions.clear();
  }
  std::ranges::sort(std::span(growers_).first(num_growers_), {}, &Grower::row);
}

// Runs a head for all sequences; a sequence that needs less depth costs only a row.
void MedusaDrafter::run_head(std::span<const Asked> asked, std::uint32_t index) {
  const std::span growers = std::span(growers_).first(num_growers_);
  picks_.clear();
  for (const Grower& grower : growers) picks_.push_back(grower.row);
  mover_.pick(last_.states(), picks_, *x_);
  rows_.clear();
  for (std::uint32_t i = 0; i < num_growers_; ++i) {
    const sample::Params& params = *asked[growers[i].asked].sampling;
    rows_.begin_sequence({});
    rows_.add_row(0, 0, i);
    const std::uint32_t num = Children::num_candidates_to_request(growers[i].width, params, options_.shared_noise);
    rows_.add_logits_row(std::min(num, vocab_));
  }
  const MedusaHead& head = heads_.heads[index];
  ops_.begin(rows_.batch());
  for (const std::unique_ptr<backend::Weight>& block : head.blocks) {
    blocks_.add(*x_, *block, rows_.num_rows(), *x_);
  }
  ops_.linear(*x_, head.output ? *head.output : target_output_, rows_.num_rows(), *logits_, {},
              backend::ThenChoose{vocab_});
  choices_.resize(num_growers_);
  ops_.collect(choices_);
  for (std::uint32_t i = 0; i < num_growers_; ++i) {
    const Asked& one = asked[growers[i].asked];
    const ChildRequest wanted{.num = growers[i].width,
                              .position = static_cast<std::uint32_t>(one.tokens.size()) + index,
                              .depth = index + 1,
                              .shared_noise = options_.shared_noise};
    children_.list(choices_[i], wanted.num, *one.sampling, [this](TokenId draft) {
      return heads_.token_of.empty() ? draft : heads_.token_of[static_cast<std::size_t>(draft)];
    });
    const std::span<const Child> list = children_.chosen(wanted, *one.sampling, growers[i].list_distributions);
    growers[i].lists[index].assign(list.begin(), list.end());
  }
}

void MedusaDrafter::grow(Grower& grower, const Asked& asked, sample::TokenTree& tree) {
  const TreeLimits limits{.width = grower.width, .max_depth = grower.max_depth, .max_nodes = asked.max_nodes};
  const bool by_rejection = sample::accepts_by_rejection(*asked.sampling);
  tree_.begin(limits, by_rejection);
  if (grower.max_depth == 0) return;
  const auto add_children = [&](int parent, std::uint32_t depth) {
    const std::vector<Child>& list = grower.lists[depth];
    const auto num = std::min<std::uint32_t>(tree_.num_children(parent), static_cast<std::uint32_t>(list.size()));
    for (std::uint32_t i = 0; i < num; ++i) {
      tree_.add(parent, list[i].token, list[i].log_likely);
      if (by_rejection) add_distribution(grower.list_distributions.of(depth * grower.width + i), grower.distributions);
    }
  };
  add_children(GrowingTree::kRoot, 0);
  for (std::uint32_t depth = 1;; ++depth) {
    const std::span<const int> frontier = tree_.next_frontier();
    if (frontier.empty()) break;
    for (const int node : frontier) add_children(node, depth);
  }
  tree_.write(tree);
}

void MedusaDrafter::release(SeqId seq, bool /*ended*/) { last_.release(seq); }

}  // namespace quire::speculate
