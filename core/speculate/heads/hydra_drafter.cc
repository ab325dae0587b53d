#include "core/speculate/heads/hydra_drafter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/check.h"

namespace quire::speculate {
namespace {

HydraOptions sane(HydraOptions options) {
  options.width = std::clamp(options.width, 1u, sample::TokenTree::kMaxNodes);
  return options;
}

HeadLimits prefix_limits(const HydraOptions& options, const RunnerLimits& limits) {
  HeadLimits head;
  head.max_rows = limits.max_rows;
  head.max_logits_rows = limits.max_sequences;
  head.max_model_len = limits.max_model_len;
  head.block_tokens = limits.block_tokens;
  head.num_blocks = limits.num_blocks;
  head.kv_dtype = options.kv_dtype;
  return head;
}

}  // namespace

HydraDrafter::HydraDrafter(backend::Ops& ops, const model::Decoder& target, const model::ModelFiles& files,
                           const HydraOptions& options, const RunnerLimits& limits)
    : HydraDrafter(ops, target, load_hydra_heads(ops, target.config(), files, options.quantize), sane(options),
                   limits) {}

HydraDrafter::HydraDrafter(backend::Ops& ops, const model::Decoder& target, HydraHeads loaded,
                           const HydraOptions& options, const RunnerLimits& limits)
    : ops_(ops),
      options_(options),
      boundary_(loaded.boundary),
      heads_(std::move(loaded.heads)),
      embed_(target.embedding()),
      hidden_(target.config().hidden),
      vocab_(target.config().vocab),
      max_growing_rows_(std::min(limits.max_rows, limits.max_sequences * options.width)),
      mover_(ops, limits.max_rows),
      last_(ops, mover_, std::min(limits.max_rows, limits.max_sequences), hidden_),
      blocks_(ops, max_growing_rows_, hidden_) {
  if (loaded.prefix) {
    prefix_ = std::make_unique<Prefix>(ops, target, *loaded.prefix, std::move(loaded.prefix_weights),
                                       prefix_limits(options, limits), limits);
  }
  for (auto* buffer : {&roots_, &embedded_, &x_}) *buffer = ops.make_buffer(max_growing_rows_, hidden_);
  logits_ = ops.make_buffer(max_growing_rows_, vocab_);
  const std::uint32_t deepest = std::min(options.max_depth, num_heads());
  for (std::uint32_t i = 0; i < deepest; ++i) {
    inputs_.push_back(ops.make_buffer(max_growing_rows_, (i + 2) * hidden_));
    if (i + 1 < deepest) parents_.push_back(ops.make_buffer(max_growing_rows_, (i + 2) * hidden_));
  }
  growers_.resize(std::min(limits.max_sequences, max_growing_rows_));
}

Needs HydraDrafter::needs() const {
  if (boundary_) return {.boundaries = {*boundary_}, .final_norm = false};
  return {.boundaries = {}, .final_norm = true};
}

void HydraDrafter::observe(const ObservedStep& step) {
  if (prefix_) return prefix_->rows.observe(step);
  last_.observe(step);
}

void HydraDrafter::release(SeqId seq, bool /*ended*/) {
  if (prefix_) return prefix_->rows.release(seq);
  last_.release(seq);
}

void HydraDrafter::track(std::span<const flow::BlockOp> ops) {
  if (prefix_) prefix_->rows.track(ops);
}

void HydraDrafter::propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) {
  CHECK_EQ(asked.size(), trees.size());
  choose_growers(asked);
  if (num_growers_ == 0) return;
  const backend::Buffer& roots = run_roots(asked);
  for (std::uint32_t depth = 0; add_level(asked, depth); ++depth) {
    if (depth > 0) mover_.pick(*inputs_[depth - 1], picks_, *parents_[depth - 1]);
    run_head(depth == 0 ? roots : *parents_[depth - 1], depth);
    add_children(asked, depth);
  }
  for (Grower& grower : std::span(growers_).first(num_growers_)) {
    grower.tree.write(trees[grower.asked]);
    trees[grower.asked].set_distributions(&grower.distributions);
  }
}

// Selects the sequences that the last step ran, in the order of their rows there.
void HydraDrafter::choose_growers(std::span<const Asked> asked) {
  num_growers_ = 0;
  for (std::size_t i = 0; i < asked.size() && num_growers_ < growers_.size(); ++i) {
    if (asked[i].max_nodes == 0 || asked[i].max_depth == 0 || inputs_.empty()) continue;
    const std::optional<std::uint32_t> source = source_of(asked[i]);
    if (!source) continue;
    growers_[num_growers_].asked = i;
    growers_[num_growers_++].source = *source;
  }
  if (num_growers_ == 0) return;
  const std::span growers = std::span(growers_).first(num_growers_);
  std::ranges::sort(growers, {}, &Grower::source);
  const std::uint32_t width = std::min(options_.width, static_cast<std::uint32_t>(max_growing_rows_ / num_growers_));
  for (Grower& grower : growers) {
    const Asked& one = asked[grower.asked];
    const TreeLimits limits{.width = std::min({width, one.max_nodes, vocab_}),
                            .max_depth = std::min(one.max_depth, static_cast<std::uint32_t>(inputs_.size())),
                            .max_nodes = one.max_nodes};
    grower.distributions.clear();
    grower.tree.begin(limits, sample::accepts_by_rejection(*one.sampling));
  }
}

std::optional<std::uint32_t> HydraDrafter::source_of(const Asked& asked) const {
  if (!prefix_) return last_.row_of(asked);
  const HeadRows::Last* last = prefix_->rows.last_of(asked);
  return last == nullptr ? std::nullopt : std::optional(last->feature);
}

// The state, or the prefix layer's output, that the first head reads; one row per grower.
const backend::Buffer& HydraDrafter::run_roots(std::span<const Asked> asked) {
  picks_.clear();
  for (const Grower& grower : std::span(growers_).first(num_growers_)) picks_.push_back(grower.source);
  if (!prefix_) {
    mover_.pick(last_.states(), picks_, *roots_);
    return *roots_;
  }
  // Runs the last rows again, now for their output; their K and V are stored once more, unchanged.
  rows_.clear();
  for (const Grower& grower : std::span(growers_).first(num_growers_)) {
    const Asked& one = asked[grower.asked];
    const std::uint32_t position = static_cast<std::uint32_t>(one.tokens.size()) - 2;
    rows_.begin_sequence(one.table);
    rows_.add_row(one.tokens[position], position, prefix_->rows.slot_of(one.table, position));
    rows_.add_logits_row(0);
  }
  prefix_->head.begin_with_features(picks_);
  prefix_->head.run_prefix(rows_.batch());
  return prefix_->head.said();
}

// Adds rows for the growing nodes of this depth, of all trees; false if there are none.
bool HydraDrafter::add_level(std::span<const Asked> asked, std::uint32_t depth) {
  rows_.clear();
  picks_.clear();
  for (Grower& grower : std::span(growers_).first(num_growers_)) {
    const Asked& one = asked[grower.asked];
    static constexpr int kOnlyRoot[] = {GrowingTree::kRoot};
    const std::span<const int> frontier = depth == 0 ? std::span<const int>(kOnlyRoot) : grower.tree.next_frontier();
    const std::uint32_t first_row = rows_.num_rows();
    for (const int node : frontier) {
      const bool root = node == GrowingTree::kRoot;
      if (!root) {
        const auto parent = std::ranges::find(grower.grown, grower.tree.parent(node)) - grower.grown.begin();
        picks_.push_back(grower.first_row + static_cast<std::uint32_t>(parent));
      }
      rows_.begin_sequence({});
      rows_.add_row(root ? one.tokens.back() : grower.tree.token(node), 0, rows_.num_rows());
      const std::uint32_t num = grower.tree.num_children(node);
      rows_.add_logits_row(
          std::min(Children::num_candidates_to_request(num, *one.sampling, options_.shared_noise), vocab_));
    }
    grower.grown.assign(frontier.begin(), frontier.end());
    grower.first_row = first_row;
  }
  return !rows_.empty();
}

void HydraDrafter::run_head(const backend::Buffer& before, std::uint32_t index) {
  const HydraHead& head = heads_[index];
  backend::Buffer& input = *inputs_[index];
  const std::uint32_t num_rows = rows_.num_rows();
  ops_.begin(rows_.batch());
  ops_.embed(embed_, 1.0f, *embedded_);
  ops_.place(before, num_rows, 0, input);
  ops_.place(*embedded_, num_rows, (index + 1) * hidden_, input);
  ops_.linear(input, *head.residual, num_rows, *x_);
  blocks_.add(input, *head.linear, num_rows, *x_);
  for (const std::uint32_t turn : head.turns) blocks_.add(*x_, *head.blocks[turn], num_rows, *x_);
  ops_.linear(*x_, *head.output, num_rows, *logits_, {}, backend::ThenChoose{vocab_});
  choices_.resize(num_rows);
  ops_.collect(choices_);
}

void HydraDrafter::add_children(std::span<const Asked> asked, std::uint32_t depth) {
  for (Grower& grower : std::span(growers_).first(num_growers_)) {
    const Asked& one = asked[grower.asked];
    for (std::size_t i = 0; i < grower.grown.size(); ++i) {
      const ChildRequest wanted{.num = grower.tree.num_children(grower.grown[i]),
                                .position = static_cast<std::uint32_t>(one.tokens.size()) + depth,
                                .depth = depth + 1,
                                .shared_noise = options_.shared_noise};
      children_.list(choices_[grower.first_row + i], wanted.num, *one.sampling);
      for (const Child& child : children_.chosen(wanted, *one.sampling, grower.distributions)) {
        grower.tree.add(grower.grown[i], child.token, child.log_likely);
      }
    }
  }
}

}  // namespace quire::speculate
