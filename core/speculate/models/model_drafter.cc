#include "core/speculate/models/model_drafter.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "core/base/start_error.h"
#include "core/sample/math.h"

namespace quire::speculate {
namespace {

using sample::TokenTree;

// From this many rows on a step belongs to a prompt: its rows are computed at once in a step of their own.
constexpr std::size_t kPromptRows = 16;
// A sequence with at most this many rows to catch up on computes them in its first level, which reads the weights
// anyway.
constexpr std::uint32_t kJoiningRows = 32;
// Branches of a tree with a branch slot of their own, besides the path that stays in its parent's; leaves need none.
constexpr std::uint32_t kMostBranches = 7;

std::uint32_t branches(const ModelDraftOptions& options) {
  std::uint64_t paths = 1;
  for (const std::uint32_t width : options.widths) paths = std::min<std::uint64_t>(paths * width, TokenTree::kMaxNodes);
  return std::min(static_cast<std::uint32_t>(paths) - 1, kMostBranches);
}

BranchSlots branch_slots_of(const ModelDraftLimits& limits, const ModelDraftOptions& options) {
  return {limits.num_blocks, limits.max_sequences * (1 + branches(options)),
          BranchSlots::blocks_for(limits.max_depth, limits.block_tokens)};
}

std::uint32_t max_logits_rows(const ModelDraftLimits& limits, const ModelDraftOptions& options) {
  return std::min(limits.max_rows, branch_slots_of(limits, options).num_branch_slots);
}

backend::KvShape own_shape(const model::ModelSpec& config, const ModelDraftLimits& limits,
                           const ModelDraftOptions& options) {
  const std::uint32_t num_blocks = limits.num_blocks + branch_slots_of(limits, options).num_blocks();
  return config.kv_shape(limits.block_tokens, num_blocks, limits.kv_type);
}

const ModelDraftOptions& fitting(const model::ModelSpec& config, std::uint32_t target_vocab, bool own_cache,
                                 const ModelDraftOptions& options) {
  std::string problems;
  if (config.vocab != target_vocab) {
    problems += "; its vocabulary has " + std::to_string(config.vocab) + " tokens and the target's " +
                std::to_string(target_vocab) + ": they must be the same";
  }
  if (!options.parts.empty() && options.parts.size() != config.num_layers()) {
    problems += "; parts are given for " + std::to_string(options.parts.size()) + " layers of " +
                std::to_string(config.num_layers());
  }
  for (const std::uint32_t width : options.widths) {
    if (width == 0 || width > kMaxDraftWidth) {
      problems += "; a width of " + std::to_string(width) + " is outside [1, " + std::to_string(kMaxDraftWidth) + "]";
    }
  }
  if (own_cache && !options.context.sees_all()) problems += "; a context window needs the target's own cache";
  if (!problems.empty()) throw StartError(options.method + problems);
  return options;
}

DraftCache make_cache(backend::Ops& ops, const model::Decoder& decoder, backend::KvCache* target,
                      const ModelDraftLimits& limits, const ModelDraftOptions& options) {
  const BranchSlots branch_slots = branch_slots_of(limits, options);
  if (target != nullptr) return DraftCache(ops, *target, branch_slots);
  return DraftCache(ops, own_shape(decoder.config(), limits, options), branch_slots);
}

}  // namespace

ModelDrafter::ModelDrafter(backend::Ops& ops, const model::Decoder& decoder, std::uint32_t target_vocab,
                           backend::KvCache* target, const ModelDraftLimits& limits, const ModelDraftOptions& options)
    : ops_(ops),
      decoder_(decoder),
      limits_(limits),
      options_(fitting(decoder.config(), target_vocab, target == nullptr, options)),
      cache_(make_cache(ops, decoder, target, limits, options)),
      widest_window_(widest_window(decoder.config().windows())),
      workspace_(decoder.make_workspace(limits.max_rows, max_logits_rows(limits, options))) {
  CHECK_GT(limits.max_sequences, 0u);
  CHECK_GT(limits.max_depth, 0u);
  CHECK_GT(limits.max_rows, 0u);
  const std::size_t most = branch_slots_of(limits, options).num_branch_slots;
  sequences_.reserve(limits.max_sequences);
  behind_.reserve(limits.max_sequences);
  paths_.reserve(most);
  next_paths_.reserve(most);
  child_slots_.reserve(most);
  choices_.reserve(most);
}

ModelDrafter::ModelDrafter(backend::Ops& ops, const model::Decoder& decoder, std::uint32_t target_vocab,
                           const ModelDraftLimits& limits, const ModelDraftOptions& options)
    : ModelDrafter(ops, decoder, target_vocab, nullptr, limits, options) {}

ModelDrafter::ModelDrafter(backend::Ops& ops, const model::Decoder& target, backend::KvCache& cache,
                           const ModelDraftLimits& limits, const ModelDraftOptions& options)
    : ModelDrafter(ops, target, target.config().vocab, &cache, limits, options) {}

std::uint32_t ModelDrafter::num_scratch_blocks(const ModelDraftLimits& limits, const ModelDraftOptions& options) {
  return branch_slots_of(limits, options).num_blocks();
}

void ModelDrafter::observe(const ObservedStep& step) {
  if (!cache_.own() || !options_.track_prompts) return;
  behind_.clear();
  for (const Observed& seen : step.sequences) {
    if (seen.done || seen.rows.size() < kPromptRows) continue;
    const auto end = static_cast<std::uint32_t>(seen.first_position + seen.rows.size());
    if (end > decoder_.max_model_len()) continue;
    Known& known = sequences_[seen.seq];
    hash_tokens(known, seen.tokens);
    look_at(known, seen.table);
    const Behind behind{&known, seen.tokens, seen.table, end, 0};
    if (avoids_dropped_blocks(seen.table, missing(behind))) behind_.push_back(behind);
  }
  catch_up(behind_);
}

void ModelDrafter::propose(std::span<const Asked> asked, std::span<TokenTree> trees) {
  CHECK_EQ(asked.size(), trees.size());
  distributions_.resize(std::max(distributions_.size(), asked.size()));
  for (std::uint32_t i = 0; i < asked.size(); ++i) {
    distributions_[i].clear();
    trees[i].set_distributions(&distributions_[i]);
  }
  behind_.clear();
  for (std::uint32_t i = 0; i < asked.size(); ++i) {
    Known* known = begin(asked[i]);
    if (known == nullptr) continue;
    const auto end = static_cast<std::uint32_t>(asked[i].tokens.size()) - 1;
    const Behind behind{known, asked[i].tokens, asked[i].table, end, i};
    if (avoids_dropped_blocks(asked[i].table, missing(behind))) behind_.push_back(behind);
  }
  start_paths(asked);
  while (!paths_.empty()) {
    next_paths_.clear();
    for (std::size_t done = 0; done < paths_.size();) done = draft_level(asked, trees, done);
    paths_.swap(next_paths_);
  }
  for (const std::uint32_t branch_slot : child_slots_) cache_.give_back_branch_slot(branch_slot);
  child_slots_.clear();
}

void ModelDrafter::release(SeqId seq, bool /*ended*/) {
  const auto found = sequences_.find(seq);
  if (found == sequences_.end()) return;
  if (found->second.branch_slot >= 0)
    cache_.give_back_branch_slot(static_cast<std::uint32_t>(found->second.branch_slot));
  sequences_.erase(found);
}

void ModelDrafter::track(std::span<const flow::BlockOp> ops) { cache_.track(ops); }

// State of the sequence, with a branch slot; null: no draft for it.
ModelDrafter::Known* ModelDrafter::begin(const Asked& asked) {
  if (asked.tokens.empty() || asked.max_nodes == 0 || asked.max_depth == 0) return nullptr;
  if (asked.tokens.size() > decoder_.max_model_len()) return nullptr;
  CHECK_GE(asked.table.size() * limits_.block_tokens, asked.tokens.size() - 1);
  Known& known = sequences_[asked.seq];
  if (known.branch_slot < 0) known.branch_slot = cache_.take_branch_slot();
  if (known.branch_slot < 0) return nullptr;
  known.branches = 0;
  hash_tokens(known, asked.tokens);
  look_at(known, asked.table);
  return &known;
}

void ModelDrafter::hash_tokens(Known& known, std::span<const TokenId> tokens) const {
  if (!cache_.own()) return;
  if (known.hashes.size() > tokens.size()) {  // another text: nothing is known of it
    known.hashes.clear();
    known.computed = 0;
  }
  RowHash hash = known.hashes.empty() ? kChainRoot : known.hashes.back();
  for (std::size_t i = known.hashes.size(); i < tokens.size(); ++i) {
    hash = chained(hash, tokens[i]);
    known.hashes.push_back(hash);
  }
}

bool ModelDrafter::avoids_dropped_blocks(std::span<const BlockId> table, std::uint32_t first_position) const {
  return speculate::avoids_dropped_blocks(table, limits_.block_tokens, first_position, widest_window_,
                                          options_.context);
}

// A block may have been replaced by an equal one of the prefix index, whose rows this drafter need not have computed.
void ModelDrafter::look_at(Known& known, std::span<const BlockId> table) const {
  if (!cache_.own()) return;
  const auto [was, is] = std::ranges::mismatch(known.table, table);
  known.computed =
      std::min(known.computed, static_cast<std::uint32_t>(was - known.table.begin()) * limits_.block_tokens);
  known.table.assign(table.begin(), table.end());
}

// The first row that is not in its slot, at most behind.end.
std::uint32_t ModelDrafter::missing(const Behind& behind) {
  Known& known = *behind.known;
  known.computed = cache_.first_missing(behind.table, known.hashes, std::min(known.computed, behind.end), behind.end,
                                        known.branch_slot);
  return known.computed;
}

// True if the missing rows can be computed with the first level: few, and all in the branch slot, which no other
// sequence uses.
bool ModelDrafter::can_join(const Behind& behind) {
  const std::uint32_t first = missing(behind);
  return behind.end - first <= std::min(kJoiningRows, limits_.max_rows - 1) &&
         first >= cache_.block_of(behind.end) * limits_.block_tokens;
}

// Computes missing rows, in several steps if needed. A row counts as computed once it is in a batch: sequences that
// share the block need not compute it again, since a layer stores all rows of a step before any row attends to them.
void ModelDrafter::catch_up(std::span<const Behind> behind) {
  std::uint32_t left = options_.catch_up_rows;
  while (left > 0) {
    batch_.clear();
    for (const Behind& each : behind) {
      const std::uint32_t first = missing(each);
      const std::uint32_t end = std::min({each.end, first + left, first + limits_.max_rows - batch_.num_rows()});
      if (first == end || !has_room(end - first)) continue;
      batch_.begin_sequence(each.table.first(cache_.block_of(end - 1) + 1));
      for (std::uint32_t position = first; position < end; ++position) {
        const std::uint32_t slot = cache_.slot(each.table, position);
        batch_.add_row(each.tokens[position], position, slot);
        cache_.stored(slot, each.known->hashes[position]);
      }
      each.known->computed = end;
      left -= end - first;
    }
    if (batch_.empty()) return;
    run_batch();
  }
}

void ModelDrafter::start_paths(std::span<const Asked> asked) {
  auto late = behind_.begin();
  for (auto each = behind_.begin(); each != behind_.end(); ++each) {
    if (can_join(*each)) std::iter_swap(late++, each);
  }
  catch_up({late, behind_.end()});
  paths_.clear();
  for (const Behind& behind : behind_) {
    if (!can_join(behind)) continue;  // too many rows to catch up on in this call
    const RowHash hash = cache_.own() ? behind.known->hashes[behind.end] : kNoRow;
    paths_.push_back({behind.asked, behind.known, static_cast<std::uint32_t>(behind.known->branch_slot),
                      TokenTree::kRoot, behind.end, hash, 1.0f});
    cache_.stage(asked[behind.asked].table, behind.known->hashes, behind.end, behind.known->computed,
                 paths_.back().branch_slot);
  }
}

// Runs a step of paths from `from` on, as many as fit; returns the first one left.
std::size_t ModelDrafter::draft_level(std::span<const Asked> asked, std::span<TokenTree> trees, std::size_t from) {
  batch_.clear();
  std::size_t to = from;
  for (; to < paths_.size(); ++to) {
    const Path& path = paths_[to];
    if (!has_room(rows_of(path))) break;
    add_path(path, asked[path.asked], trees[path.asked]);
  }
  run_batch();
  for (std::size_t i = from; i < to; ++i) {
    const Path& path = paths_[i];
    if (path.node == TokenTree::kRoot) keep_rows(path, asked[path.asked]);
    extend(path, asked[path.asked], choices_[i - from], trees[path.asked]);
  }
  return to;
}

std::uint32_t ModelDrafter::rows_of(const Path& path) const {
  return path.node == TokenTree::kRoot ? path.position - path.known->computed + 1 : 1;
}

void ModelDrafter::add_path(const Path& path, const Asked& asked, const TokenTree& tree) {
  const auto root = static_cast<std::uint32_t>(asked.tokens.size()) - 1;
  const bool is_root = path.node == TokenTree::kRoot;
  const std::uint32_t first = path.position + 1 - rows_of(path);
  const std::uint32_t first_scratch = cache_.block_of(root);
  batch_.begin_sequence(asked.table.first(first_scratch));
  for (std::uint32_t i = first_scratch; i <= cache_.block_of(path.position); ++i) {
    batch_.add_block(cache_.scratch_block(path.branch_slot, i));
  }
  for (std::uint32_t span = 0; !options_.context.sees_all() && span < first / kSpanTokens; ++span) {
    batch_.add_kept(options_.context.word(span, first));
  }
  for (std::uint32_t position = first; position < path.position; ++position) {
    const std::uint32_t slot = cache_.scratch_slot(path.branch_slot, position);
    batch_.add_row(asked.tokens[position], position, slot);
    cache_.stored(slot, path.known->hashes[position]);
  }
  const std::uint32_t slot = cache_.scratch_slot(path.branch_slot, path.position);
  batch_.add_row(is_root ? asked.tokens[root] : tree.token(static_cast<std::uint32_t>(path.node)), path.position, slot);
  cache_.stored(slot, path.hash);
  batch_.add_logits_row(params_at(asked, path.position - root));
}

sample::Params ModelDrafter::params_at(const Asked& asked, std::uint32_t depth) const {
  if (proposes(asked)) return proposal_params();
  const sample::Params greedy{.temperature = 0.0f};
  const sample::Params& request = asked.sampling != nullptr ? *asked.sampling : greedy;
  return draft_params(request, width_at(depth), options_.shared_noise);
}

bool ModelDrafter::proposes(const Asked& asked) const {
  return options_.proposes && asked.sampling != nullptr && sample::accepts_by_rejection(*asked.sampling);
}

// Copies committed rows that the first level computed in scratch to their own slots, for sequences that share those.
void ModelDrafter::keep_rows(const Path& path, const Asked& asked) {
  Known& known = *path.known;
  for (; known.computed < path.position; ++known.computed) {
    cache_.keep(cache_.scratch_slot(path.branch_slot, known.computed), cache_.slot(asked.table, known.computed));
  }
}

// Adds the path's children; those with children of their own become paths of the next level.
void ModelDrafter::extend(const Path& path, const Asked& asked, const backend::Choice& choice, TokenTree& tree) {
  const auto root = static_cast<std::uint32_t>(asked.tokens.size()) - 1;
  const std::uint32_t depth = path.position - root;
  const std::uint32_t max_depth = std::min({asked.max_depth, limits_.max_depth, decoder_.max_model_len() - root});
  const std::uint32_t room = std::min(asked.max_nodes, TokenTree::kMaxNodes) - tree.size();
  const std::uint32_t width = std::min({width_at(depth), room, decoder_.config().vocab});
  const bool is_proposal = proposes(asked);  // a drawn token stays, however unlikely
  const ChildRequest wanted{
      .num = width, .position = path.position + 1, .depth = depth + 1, .drafter = options_.member};
  const std::span<const Child> children =
      is_proposal ? propose_children(choice, *asked.sampling, wanted, children_, distributions_[path.asked])
                  : draft_children(choice, params_at(asked, depth), path.position + 1, width_at(depth), children_);
  bool first = true;
  for (const Child& child : children) {
    const float likely = path.likely * sample::exp_f32(child.log_likely);
    if ((likely < options_.min_likely && !is_proposal) || tree.size() >= asked.max_nodes) break;
    const int node = tree.add(child.token, path.node, likely);
    if (node < 0) break;
    if (depth + 1 < max_depth && tree.size() < asked.max_nodes) {
      const int branch_slot = branch_slot_for_child(path, asked, first);
      if (branch_slot >= 0) {
        next_paths_.push_back({path.asked, path.known, static_cast<std::uint32_t>(branch_slot), node, path.position + 1,
                               chained(path.hash, child.token), likely});
      }
    }
    first = false;
  }
}

// The first child keeps its parent's branch slot; the others get copies of it. Their number depends on this sequence
// alone, as all of its draft does.
int ModelDrafter::branch_slot_for_child(const Path& path, const Asked& asked, bool first) {
  if (first) return static_cast<int>(path.branch_slot);
  if (path.known->branches == branches(options_)) return -1;
  ++path.known->branches;
  const int branch_slot = cache_.take_branch_slot();
  if (branch_slot < 0) return -1;
  child_slots_.push_back(static_cast<std::uint32_t>(branch_slot));
  const auto root = static_cast<std::uint32_t>(asked.tokens.size()) - 1;
  cache_.fork(path.branch_slot, child_slots_.back(), cache_.block_of(root), cache_.block_of(path.position));
  return branch_slot;
}

bool ModelDrafter::has_room(std::uint32_t num_rows) const {
  return batch_.num_rows() + num_rows <= limits_.max_rows &&
         batch_.num_sequences() < max_logits_rows(limits_, options_);
}

void ModelDrafter::run_batch() {
  const backend::Batch batch = batch_.batch();
  rows_run_ += batch.num_rows();
  if (options_.parts.empty()) {
    decoder_.forward(batch, cache_.kv(), workspace_);
  } else {
    decoder_.forward_parts(batch, cache_.kv(), workspace_, options_.parts);
  }
  choices_.resize(batch_.num_logits_rows());
  ops_.collect(choices_);
}

}  // namespace quire::speculate
