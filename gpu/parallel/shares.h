// Which rank of a tensor-parallel model has what, as functions of sizes: every weight is cut by its outputs, matrix by matrix, K and V by
// kv heads; what does not divide evenly is whole on every rank.
//   q, k and v of a rank are those of its kv heads, gates and their other factors those of its share of F. The embedding is cut by tokens,
//   whether or not the head is tied to it.
// Shape   a rank's things are neighbours, ranks in ascending order.
// Thread  any; pure.
// Fails   problems_of_ranks() says all of them; the others are for what has none: CHECK.
// Source  attention by heads: Megatron-LM (Shoeybi et al. 2019). That no matrix is cut by its inputs is ours: sums are then finished
//         on one rank, in the order of one GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/backend/layer_spec.h"
#include "gpu/kernels/exchange.h"

namespace quire::gpu {

struct Share {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

constexpr bool divides_evenly(std::uint32_t whole, std::uint32_t num_ranks) {
  return whole != 0 && whole % num_ranks == 0;
}
// Of `whole` things that divide evenly.
constexpr Share share_of(std::uint32_t whole, std::uint32_t rank, std::uint32_t num_ranks) {
  return {whole / num_ranks * rank, whole / num_ranks};
}

// Whether a weight of matrices with so many outputs is cut.
bool is_cut(std::span<const std::uint32_t> outputs, std::uint32_t num_ranks);
// Of the outputs of a rank, where is_cut().
Columns columns_of(std::span<const std::uint32_t> outputs, std::uint32_t num_ranks);
// What a rank has of a weight with so many outputs, as weight_bytes() counts them.
std::uint32_t outputs_of_rank(std::uint32_t outputs, std::uint32_t num_ranks);

// Byte tails are the first rank's.
backend::KvShape share_of(const backend::KvShape& whole, std::uint32_t rank, std::uint32_t num_ranks);
// Its vectors and rope table are still the whole model's.
backend::AttentionSpec share_of(const backend::AttentionSpec& whole, std::uint32_t num_ranks);

// Why a model cannot be run by so many ranks; empty: it can.
std::vector<std::string> problems_of_ranks(std::uint32_t num_kv_heads, std::uint32_t num_ranks);

}  // namespace quire::gpu
