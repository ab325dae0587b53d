#include "core/speculate/models/triforce_drafter.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "core/base/start_error.h"
#include "core/sample/math.h"

namespace quire::speculate {
namespace {

using sample::TokenTree;

BranchSlots branch_slots_of(const ModelDraftLimits& limits) {
  return {limits.num_blocks, limits.max_sequences, BranchSlots::blocks_for(limits.max_depth, limits.block_tokens)};
}

// Keeps the tree's first path only.
void keep_chain(TokenTree& tree, std::uint32_t most) {
  TokenTree chain;
  int node = TokenTree::kRoot;
  for (std::uint32_t i = 0; i < tree.size() && chain.size() < most; ++i) {
    if (tree.parent(i) != node) continue;
    node = static_cast<int>(i);
    chain.add(tree.token(i), static_cast<int>(chain.size()) - 1, tree.likely(i));
  }
  tree = chain;
}

const SparseContext& checked(const SparseContext& context) {
  if (context.sees_all()) throw StartError("triforce: window is 0; it must be at least 1");
  return context;
}

}  // namespace

TriforceDrafter::TriforceDrafter(backend::Ops& ops, const model::Decoder& target, backend::KvCache& cache,
                                 std::unique_ptr<Drafter> first, const ModelDraftLimits& limits,
                                 const SparseContext& context, bool shared_noise)
    : ops_(ops),
      target_(target),
      first_(std::move(first)),
      limits_(limits),
      context_(checked(context)),
      shared_noise_(shared_noise),
      cache_(ops, cache, branch_slots_of(limits)),
      widest_window_(widest_window(target.config().windows())),
      workspace_(target.make_workspace(limits.max_rows, limits.max_rows)) {
  CHECK_GT(limits.max_sequences, 0u);
  CHECK_GT(limits.max_depth, 0u);
}

std::uint32_t TriforceDrafter::num_scratch_blocks(const ModelDraftLimits& limits) {
  return branch_slots_of(limits).num_blocks();
}

void TriforceDrafter::propose(std::span<const Asked> asked, std::span<TokenTree> trees) {
  CHECK_EQ(asked.size(), trees.size());
  draft(asked);
  for (std::size_t done = 0; done < asked.size();) done = look_through(asked, trees, done);
}

// The draft's last node is the target's own token, so the other drafter's chain is one shorter.
void TriforceDrafter::draft(std::span<const Asked> asked) {
  drafts_.resize(asked.size());
  for (TokenTree& tree : drafts_) tree.clear();
  shallow_.assign(asked.begin(), asked.end());
  first_->propose(shallow_, drafts_);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::uint32_t depth = std::min({asked[i].max_nodes, asked[i].max_depth, limits_.max_depth});
    const auto left = static_cast<std::uint32_t>(target_.max_model_len() - asked[i].tokens.size());
    keep_chain(drafts_[i], std::min({depth - 1, left, limits_.max_rows - 1}));
  }
}

// Runs a step of sequences from `from` on, as many as fit; returns the first one left.
std::size_t TriforceDrafter::look_through(std::span<const Asked> asked, std::span<TokenTree> trees, std::size_t from) {
  batch_.clear();
  runs_.clear();
  std::size_t to = from;
  for (; to < asked.size(); ++to) {
    const auto root = static_cast<std::uint32_t>(asked[to].tokens.size()) - 1;
    if (!avoids_dropped_blocks(asked[to].table, limits_.block_tokens, root, widest_window_, context_)) continue;
    if (batch_.num_rows() + drafts_[to].size() + 1 > limits_.max_rows) break;
    const int branch_slot = cache_.take_branch_slot();
    if (branch_slot < 0) break;
    runs_.push_back({static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(branch_slot), drafts_[to].size(),
                     batch_.num_logits_rows()});
    add_run(asked[to], drafts_[to], runs_.back());
  }
  if (!batch_.empty()) {
    const backend::Batch batch = batch_.batch();
    target_.forward(batch, cache_.kv(), workspace_);
    choices_.resize(batch_.num_logits_rows());
    ops_.collect(choices_);
  }
  for (const Run& run : runs_) {
    accept(run, asked[run.asked], trees[run.asked]);
    cache_.give_back_branch_slot(run.branch_slot);
  }
  return to;
}

// Consecutive rows with different views of the context are separate sequences of the batch.
void TriforceDrafter::add_run(const Asked& asked, const TokenTree& chain, Run& run) {
  const auto root = static_cast<std::uint32_t>(asked.tokens.size()) - 1;
  const std::uint32_t last = root + run.num_draft_tokens;
  cache_.stage(asked.table, {}, root, root, run.branch_slot);
  for (std::uint32_t position = root; position <= last; ++position) {
    if (position == root || !context_.same_view(position - 1, position)) {
      batch_.begin_sequence(asked.table.first(cache_.block_of(root)));
      for (std::uint32_t i = cache_.block_of(root); i <= cache_.block_of(last); ++i) {
        batch_.add_block(cache_.scratch_block(run.branch_slot, i));
      }
      for (std::uint32_t span = 0; span < position / kSpanTokens; ++span) {
        batch_.add_kept(context_.word(span, position));
      }
    }
    const TokenId token = position == root ? asked.tokens[root] : chain.token(position - root - 1);
    batch_.add_row(token, position, cache_.scratch_slot(run.branch_slot, position));
    batch_.add_logits_row(params_of(asked));
  }
}

void TriforceDrafter::accept(const Run& run, const Asked& asked, TokenTree& tree) {
  const TokenTree& drafted = drafts_[run.asked];
  float likely = 1.0f;
  for (std::uint32_t i = 0; i <= run.num_draft_tokens; ++i) {
    const auto position = static_cast<std::uint32_t>(asked.tokens.size()) + i;
    const auto next = draft_children(choices_[run.first_choice + i], params_of(asked), position, 1, children_);
    if (next.empty()) return;
    likely *= sample::exp_f32(next[0].log_likely);
    tree.add(next[0].token, static_cast<int>(i) - 1, likely);
    if (i == run.num_draft_tokens || drafted.token(i) != next[0].token) return;
  }
}

sample::Params TriforceDrafter::params_of(const Asked& asked) const {
  const sample::Params greedy{.temperature = 0.0f};
  return draft_params(asked.sampling != nullptr ? *asked.sampling : greedy, 1, shared_noise_);
}

}  // namespace quire::speculate
