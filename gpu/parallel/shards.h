// Shards of a tensor-parallel model, as functions of sizes: every weight is cut by its outputs, matrix by matrix; K and
// V are cut by kv heads; what does not divide evenly is whole on every rank.
//   A rank's q, k and v are those of its kv heads; its gates and their factors are those of its shard of F. The
//   embedding is cut by tokens, whether or not the head is tied to it.
// Shape   a rank's shard is contiguous; ranks are in ascending order.
// Thread  any; pure.
// Fails   problems_of_ranks() returns all problems; the other functions are for models without any: CHECK.
// Source  attention by heads: Megatron-LM (Shoeybi et al. 2019). Cutting no matrix by its inputs is ours: sums are then
//         finished on one rank, in the order of one GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/backend/attention_spec.h"
#include "gpu/kernels/collective.h"

namespace quire::gpu {

struct Shard {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

constexpr bool divides_evenly(std::uint32_t whole, std::uint32_t num_ranks) {
  return whole != 0 && whole % num_ranks == 0;
}
// Shard of `whole` things that divide evenly.
constexpr Shard shard_of(std::uint32_t whole, std::uint32_t rank, std::uint32_t num_ranks) {
  return {whole / num_ranks * rank, whole / num_ranks};
}

// True if a weight is cut whose matrices have these outputs.
bool is_cut(std::span<const std::uint32_t> outputs, std::uint32_t num_ranks);
// A rank's outputs, by matrix, if is_cut().
Columns columns_of(std::span<const std::uint32_t> outputs, std::uint32_t num_ranks);
// Outputs that a rank has of a weight, as weight_bytes() counts them.
std::uint32_t outputs_of_rank(std::uint32_t outputs, std::uint32_t num_ranks);

backend::KvShape shard_of(const backend::KvShape& whole, std::uint32_t num_ranks);
// Vectors and rope table are still the whole model's.
backend::AttentionSpec shard_of(const backend::AttentionSpec& whole, std::uint32_t num_ranks);

// Reasons why that many ranks cannot run a model; empty: they can.
std::vector<std::string> problems_of_ranks(std::uint32_t num_kv_heads, std::uint32_t num_ranks);

}  // namespace quire::gpu
