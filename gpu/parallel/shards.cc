#include "gpu/parallel/shards.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::gpu {

bool is_cut(std::span<const std::uint32_t> outputs, std::uint32_t num_ranks) {
  return !outputs.empty() && outputs.size() <= Columns::kMost &&
         std::ranges::all_of(outputs, [&](std::uint32_t n) { return divides_evenly(n, num_ranks); });
}

Columns columns_of(std::span<const std::uint32_t> outputs, std::uint32_t num_ranks) {
  CHECK(is_cut(outputs, num_ranks));
  Columns columns;
  for (std::size_t i = 0; i < outputs.size(); ++i) columns.of[i] = outputs[i] / num_ranks;
  return columns;
}

std::uint32_t outputs_of_rank(std::uint32_t outputs, std::uint32_t num_ranks) {
  return divides_evenly(outputs, num_ranks) ? outputs / num_ranks : outputs;
}

backend::KvShape shard_of(const backend::KvShape& whole, std::uint32_t num_ranks) {
  backend::KvShape shard = whole;
  for (backend::KvLayer& layer : shard.layers) {
    CHECK_EQ(layer.num_kv_heads % num_ranks, 0u);
    layer.num_kv_heads /= num_ranks;
  }
  return shard;
}

backend::AttentionSpec shard_of(const backend::AttentionSpec& whole, std::uint32_t num_ranks) {
  CHECK_EQ(whole.num_kv_heads % num_ranks, 0u);
  CHECK_EQ(whole.num_heads % num_ranks, 0u);
  backend::AttentionSpec shard = whole;
  shard.num_heads = whole.num_heads / num_ranks;
  shard.num_kv_heads = whole.num_kv_heads / num_ranks;
  return shard;
}

std::vector<std::string> problems_of_ranks(std::uint32_t num_kv_heads, std::uint32_t num_ranks) {
  std::vector<std::string> problems;
  const std::string asked = "tensor-parallel-size " + std::to_string(num_ranks);
  if (num_ranks == 0 || num_ranks > kMostRanks) {
    problems.push_back(asked + " is outside [1, " + std::to_string(kMostRanks) + "]");
  } else if (!divides_evenly(num_kv_heads, num_ranks)) {
    std::string possible;
    for (std::uint32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
      if (divides_evenly(num_kv_heads, ranks)) possible += (possible.empty() ? "" : ", ") + std::to_string(ranks);
    }
    problems.push_back(asked + " does not divide num_key_value_heads, " + std::to_string(num_kv_heads) +
                       " in this model: choose one of " + possible);
  }
  return problems;
}

}  // namespace quire::gpu
