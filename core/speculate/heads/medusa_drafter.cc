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
      vocab_(target.config().vocab),
      mover_(ops, max_rows),
      last_(ops, mover_, std::min(max_rows, max_sequences), target.config().hidden),
      blocks_(ops, mover_, std::min(max_rows, max_sequences), target.config().hidden) {
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
    trees[grower.asked].set_laws(&grower.laws);
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
    grower.width = std::max(1u, std::min(options_.width, asked[i].max_nodes));
    grower.lists.resize(heads_.size());
    grower.laws.clear();
  }
  std::ranges::sort(std::span(growers_).first(num_growers_), {}, &Grower::row);
}

// Of all of them: who needs it no more is one row of many.
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
    const std::uint32_t num = draws_guesses(params, growers[i].width)
                                  ? kProposalGuesses
                                  : Children::num_guesses(growers[i].width, with_noise(params));
    rows_.speak(std::min(num, vocab_));
  }
  const MedusaHead& head = heads_[index];
  ops_.begin(rows_.batch());
  for (const std::unique_ptr<backend::Weight>& block : head.blocks) {
    blocks_.add(*x_, *block, rows_.num_rows(), *x_);
  }
  ops_.project_choose(*x_, head.output ? *head.output : target_output_, vocab_, *logits_);
  choices_.resize(num_growers_);
  ops_.collect(choices_);
  for (std::uint32_t i = 0; i < num_growers_; ++i) {
    const Asked& one = asked[growers[i].asked];
    children_.clear();
    if (choices_[i].finite) {
      for (const sample::Candidate& guess : choices_[i].top) children_.add(guess.token, guess.logprob);
    }
    const auto position = static_cast<std::uint32_t>(one.tokens.size()) + index;
    const std::uint32_t width = growers[i].width;
    const sample::Params& params = *one.sampling;
    const std::span<const Child> list = draws_guesses(params, width)
                                            ? children_.proposed(params, position, index + 1, growers[i].laws)
                                        : with_noise(params) ? children_.drawn(width, params, position)
                                                             : children_.likeliest(width);
    growers[i].lists[index].assign(list.begin(), list.end());
  }
}

void MedusaDrafter::grow(Grower& grower, const Asked& asked, sample::TokenTree& tree) {
  tree_.begin({.width = grower.width, .max_depth = grower.max_depth, .max_nodes = asked.max_nodes});
  if (grower.max_depth == 0) return;
  for (const Child& child : grower.lists[0]) tree_.add(GrowingTree::kRoot, child.token, child.log_likely);
  for (std::uint32_t depth = 1;; ++depth) {
    const std::span<const int> frontier = tree_.next_frontier();
    if (frontier.empty()) break;
    for (const int node : frontier) {
      for (const Child& child : grower.lists[depth]) tree_.add(node, child.token, child.log_likely);
    }
  }
  tree_.write(tree);
}

void MedusaDrafter::release(SeqId seq, bool /*ended*/) { last_.release(seq); }

bool MedusaDrafter::with_noise(const sample::Params& params) const {
  return options_.shared_noise && params.accept == sample::Accept::kMatch &&
         params.temperature >= sample::kGreedyTemperature;
}

}  // namespace quire::speculate
