#include "core/speculate/heads/eagle_drafter.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace quire::speculate {
namespace {

EagleOptions sane(EagleOptions options) {
  options.width = std::clamp(options.width, 1u, sample::TokenTree::kMaxNodes);
  options.max_depth = std::clamp(options.max_depth, 1u, sample::TokenTree::kMaxNodes);
  return options;
}

std::uint32_t growing_rows(const EagleOptions& options, const EagleLimits& limits) {
  return std::min(limits.max_rows, limits.max_sequences * options.width);
}

// Blocks for at most P - 1 copied context rows and a row per level but the deepest, whose nodes do not run.
std::uint32_t scratch_blocks(const EagleOptions& options, const EagleLimits& limits) {
  return options.max_depth == 1 ? 0 : (limits.block_tokens - 1 + options.max_depth - 1 - 1) / limits.block_tokens + 1;
}

HeadLimits head_limits(const EagleOptions& options, const EagleLimits& limits) {
  HeadLimits head;
  head.max_rows = limits.max_rows;
  head.max_logits_rows = std::max(limits.max_sequences, growing_rows(options, limits));
  head.max_model_len = limits.max_model_len;
  head.block_tokens = limits.block_tokens;
  head.num_blocks = limits.num_blocks + EagleDrafter::num_scratch_blocks(options, limits);
  head.kv_dtype = options.kv_dtype;
  return head;
}

DraftHead make_head(backend::Ops& ops, const model::Decoder& target, const model::ModelFiles& files,
                    const EagleOptions& options, const EagleLimits& limits) {
  const HeadConfig config = load_head_config(files, target.config());
  HeadWeights weights = load_head_weights(ops, config, files, options.quantize);
  return {ops, target, config, std::move(weights), head_limits(options, limits)};
}

}  // namespace

EagleDrafter::EagleDrafter(backend::Ops& ops, const model::Decoder& target, const model::ModelFiles& files,
                           const EagleOptions& options, const EagleLimits& limits)
    : ops_(ops),
      options_(sane(options)),
      limits_(limits),
      max_growing_rows_(growing_rows(options_, limits)),
      scratch_per_row_(scratch_blocks(options_, limits)),
      head_(make_head(ops, target, files, options_, limits)),
      committed_(ops, head_, limits) {
  growers_.resize(limits.max_sequences);
  for (Grower& grower : growers_) {
    grower.tree.reserve({.width = options_.width, .max_depth = options_.max_depth});
    grower.grown.reserve(options_.width);
  }
}

std::uint32_t EagleDrafter::num_scratch_blocks(const EagleOptions& options, const EagleLimits& limits) {
  const EagleOptions used = sane(options);
  const std::uint32_t banks = used.width == 1 ? 1 : 2;
  return growing_rows(used, limits) * banks * scratch_blocks(used, limits);
}

Needs EagleDrafter::needs() const {
  return {.boundaries = head_.config().boundaries, .final_norm = head_.config().boundaries.empty()};
}

void EagleDrafter::observe(const ObservedStep& step) { committed_.observe(step); }

void EagleDrafter::release(SeqId seq, bool /*ended*/) { committed_.release(seq); }

void EagleDrafter::track(std::span<const flow::BlockOp> ops) { committed_.track(ops); }

}  // namespace quire::speculate
