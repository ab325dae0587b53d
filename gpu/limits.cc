#include "gpu/limits.h"

#include <fmt/format.h>

#include "core/base/kv_constants.h"
#include "gpu/attention.h"
#include "gpu/kernels/attention.h"
#include "gpu/kernels/linear_grid.h"
#include "gpu/kernels/routes.h"

namespace quire::gpu {
namespace {

constexpr std::uint64_t kMostBlocksHigh = 65535;  // CUDA's limit of gridDim.y, which counts groups of outputs
constexpr std::uint64_t kMostOutputs = kMostBlocksHigh * kPairTiles * kTileOutputs;

}  // namespace

std::vector<std::string> beyond_limits(const ModelShape& shape) {
  std::vector<std::string> beyond;
  if (shape.head_dim > Attend::kMostDims) {
    beyond.push_back(fmt::format("head_dim (given, or hidden_size / num_attention_heads) is {}; the maximum is {}",
                                 shape.head_dim, Attend::kMostDims));
  }
  const KvLayout layout{shape.num_kv_heads, shape.head_dim, kGroupTokens, shape.kv};
  if (Attention::in_tiles(layout) &&
      shape.num_heads > std::uint64_t{shape.num_kv_heads} * Attention::kMostHeadsOfGroup) {
    beyond.push_back(fmt::format("num_attention_heads is {}; the maximum is {} for each of num_key_value_heads = {}",
                                 shape.num_heads, Attention::kMostHeadsOfGroup, shape.num_kv_heads));
  }
  const auto expect_outputs = [&](std::uint64_t outputs, const char* what) {
    if (outputs <= kMostOutputs) return;
    beyond.push_back(fmt::format("{} makes a matrix of {} outputs; the maximum is {}", what, outputs, kMostOutputs));
  };
  expect_outputs(shape.hidden, "hidden_size");
  expect_outputs(2 * std::uint64_t{shape.ffn}, "intermediate_size");
  expect_outputs((shape.num_heads + 2 * std::uint64_t{shape.num_kv_heads}) * shape.head_dim, "num_attention_heads");
  const auto expect_at_most = [&](std::uint32_t count, std::uint32_t most, const char* what) {
    if (count > most) beyond.push_back(fmt::format("layers have {} {}; the maximum is {}", count, what, most));
  };
  expect_at_most(shape.num_experts, kMostExperts, "experts");
  expect_at_most(shape.top_experts, kMostChosen, "experts for a row");
  expect_at_most(shape.num_expert_groups, kMostExpertGroups, "groups of experts");
  if (shape.has_latent) {
    beyond.push_back("layers have latent attention (kv_lora_rank), which runs on the CPU alone (--device cpu)");
  }
  if (shape.weights == backend::Format::kF16) {
    beyond.push_back(
        "the checkpoint's weights are float16 (--quantize w16a16 --kv-cache-dtype bf16 rounds them and their inputs to "
        "bfloat16)");
  }
  return beyond;
}

}  // namespace quire::gpu
