// A draft's tree: each node has the bits of the last row of a chain that is its path, wherever spans and blocks end.
#include <gtest/gtest.h>

#include <bit>

#include "tests/gpu/attention_lab.h"

namespace quire::gpu::test::attention_tree_test {
namespace {

using backend::Ops;

std::vector<float> waits(std::uint32_t positions, std::uint32_t half, bool cosine) {
  std::vector<float> out;
  for (std::uint32_t p = 0; p < positions; ++p) {
    for (std::uint32_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(p) * std::exp2(-static_cast<float>(i));
      out.push_back(cosine ? std::cos(angle) : std::sin(angle));
    }
  }
  return out;
}

// One sequence in a cache of its own.
class Paged {
 public:
  static constexpr std::uint32_t kMostPositions = 320;

  Paged(Ops& ops, const LabShape& shape) : ops_(ops), shape_(shape) {
    const std::uint32_t num_blocks = kMostPositions / shape.block_tokens;
    for (std::uint32_t b = 0; b < num_blocks; ++b) table_.push_back(BlockId{num_blocks - 1 - b});
    cache_ = ops.make_kv(
        {backend::kv_layers(1, shape.num_kv_heads, shape.head_dim), shape.block_tokens, num_blocks, shape.type});
    rope_ = ops.upload_rope(waits(kMostPositions, shape.head_dim / 2, true),
                            waits(kMostPositions, shape.head_dim / 2, false), shape.head_dim / 2);
  }

  // Rows [n, width] from `first` on, the last of them nodes below the one before.
  std::vector<float> step(std::uint32_t first, const std::vector<float>& rows,
                          const std::vector<std::uint64_t>& ancestors = {}) {
    const auto count = static_cast<std::uint32_t>(rows.size() / shape_.width());
    const auto num_nodes = static_cast<std::uint32_t>(ancestors.size());
    OwnedBatch batch;
    batch.add(first, count, table_, shape_.block_tokens);
    batch.sequences.front().num_nodes = num_nodes;
    for (std::uint32_t i = 0; i < num_nodes; ++i) {
      batch.positions[count - num_nodes + i] = first + count - num_nodes - 1 + std::popcount(ancestors[i]);
    }
    backend::Batch view = batch.view();
    view.ancestors = ancestors;
    const auto in = ops_.make_buffer(count, shape_.width());
    const auto out = ops_.make_buffer(count, shape_.q_width());
    backend::AttentionSpec spec;
    spec.num_heads = shape_.num_heads;
    spec.num_kv_heads = shape_.num_kv_heads;
    spec.head_dim = shape_.head_dim;
    spec.scale = shape_.scale();
    spec.window = shape_.window;
    spec.rope = rope_.get();
    ops_.begin(view);
    fill(ops_, *in, rows);
    ops_.rope_store(spec, *in, *cache_);
    ops_.attend(spec, *in, *cache_, *out);
    return read(ops_, *out, count);
  }

 private:
  Ops& ops_;
  LabShape shape_;
  std::vector<BlockId> table_;
  std::unique_ptr<backend::KvCache> cache_;
  std::unique_ptr<backend::RopeTable> rope_;
};

// A root with the nodes 0, 1 below it, 2 and 3 below 0, 4 below 1, 5 below 3.
const std::vector<std::uint64_t> kTree = {0b000001, 0b000010, 0b000101, 0b001001, 0b010010, 0b101001};

void expect_nodes_to_be_chains(Ops& ops, const LabShape& shape, std::uint32_t prefix, float of_node_1) {
  Random random(prefix);
  Paged paged(ops, shape);
  paged.step(0, random.floats(std::size_t{prefix} * shape.width()));
  std::vector<float> rows = random.floats(7 * shape.width());  // the root and its nodes
  for (std::uint32_t i = 0; i < shape.width(); ++i) rows[2 * shape.width() + i] *= of_node_1;
  const std::vector<float> tree = paged.step(prefix, rows, kTree);
  const auto row = [&](std::size_t i) {
    return std::vector<float>(rows.begin() + i * shape.width(), rows.begin() + (i + 1) * shape.width());
  };
  for (std::size_t node = 0; node < kTree.size(); ++node) {
    if ((kTree[node] >> 1 & 1u) != 0 && !std::isfinite(of_node_1)) continue;
    std::vector<float> chain = row(0);
    for (std::size_t i = 0; i <= node; ++i) {
      if ((kTree[node] >> i & 1u) == 0) continue;
      const std::vector<float> of_path = row(1 + i);
      chain.insert(chain.end(), of_path.begin(), of_path.end());
    }
    const std::vector<float> out = paged.step(prefix, chain);
    EXPECT_TRUE(same_bits(std::span(tree).subspan((1 + node) * shape.q_width(), shape.q_width()),
                          std::span(out).last(shape.q_width())))
        << "node " << node << " behind " << prefix;
  }
}

TEST(GpuAttentionTree, ANodeHasTheBitsOfTheChainThatIsItsPath) {
  for (const KvType type : {KvType::kBF16, KvType::kFp8, KvType::kInt8, KvType::kF32}) {
    const LabShape shape{2, 1, 16, 16, type, 0};
    SCOPED_TRACE(shape.text());
    for (const std::uint32_t prefix : {10u, 253u, 255u, 262u}) {
      if (type == KvType::kF32 && prefix > 10) continue;  // the simulator takes long over the plain kernel
      const auto ops = simulated(prefix);
      expect_nodes_to_be_chains(*ops, shape, prefix, 1.0f);
    }
  }
}

TEST(GpuAttentionTree, ANodeSeesItsPathThroughAWindow) {
  for (const std::uint32_t window : {2u, 3u, 20u}) {
    const LabShape shape{4, 2, 16, 32, KvType::kBF16, window};
    SCOPED_TRACE(shape.text());
    const auto ops = simulated(window);
    expect_nodes_to_be_chains(*ops, shape, 254, 1.0f);
  }
}

TEST(GpuAttentionTree, AFaultOnOneBranchTouchesNoOther) {
  for (const KvType type : {KvType::kBF16, KvType::kFp8, KvType::kInt8}) {
    const LabShape shape{2, 1, 16, 16, type, 0};
    SCOPED_TRACE(shape.text());
    const auto ops = simulated();
    expect_nodes_to_be_chains(*ops, shape, 253, NAN);
  }
}

}  // namespace
}  // namespace quire::gpu::test::attention_tree_test
