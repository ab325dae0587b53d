// Every query sees every span of its own exactly once, whatever the batch, and nobody writes where another does.
#include "gpu/attention_plan.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "core/backend/tensors.h"
#include "gpu/costs.h"
#include "gpu/kernels/batch_rows.h"
#include "tests/core/cpu/rig.h"

namespace quire::gpu::attention_plan_test {
namespace {

using cpu::test::OwnedBatch;
using cpu::test::Random;

using Seen = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, int>;  // row, head, span: how often

struct Case {
  OwnedBatch batch;
  std::vector<std::uint64_t> ancestors;
  backend::Batch view() const {
    backend::Batch out = batch.view();
    out.ancestors = ancestors;
    return out;
  }
  // Of the row's sequence; behind its last row where it has no nodes.
  std::uint32_t first_node_row(std::uint32_t row) const {
    for (const backend::SequenceRows& one : batch.sequences) {
      if (row >= one.first_row && row < one.first_row + one.num_rows) return one.first_row + one.num_plain();
    }
    return 0;
  }
  void add(std::uint32_t first, std::uint32_t rows, std::uint32_t num_nodes = 0) {
    const std::vector<BlockId> table((first + rows) / 16 + 1, BlockId{0});
    batch.add(first, rows, table, 16);
    backend::SequenceRows& added = batch.sequences.back();
    added.num_nodes = num_nodes;
    added.first_node = static_cast<std::uint32_t>(ancestors.size());
    for (std::uint32_t i = 0; i < num_nodes; ++i) {  // each below the one two before it
      ancestors.push_back(std::uint64_t{1} << i | (i < 2 ? 0 : ancestors[added.first_node + i - 2]));
      batch.positions[batch.positions.size() - num_nodes + i] = added.root_position() + std::popcount(ancestors.back());
    }
  }
};

// What the units of a plan see, as the kernel reads them.
Seen seen_by(const AttentionPlan& plan, const Case& batch, const AttentionShape& shape) {
  Seen seen;
  const auto count = [&](const AttentionUnit& unit, std::uint32_t most) {
    EXPECT_GT(unit.num_queries, 0u);
    EXPECT_LE(unit.num_queries, most);
    for (std::uint32_t c = 0; c < unit.num_queries; ++c) {
      const std::uint32_t query = unit.first_head + c;
      const std::uint32_t row = unit.first_row + query / shape.heads_of_group;
      const std::uint32_t position = batch.batch.positions[row];
      const std::uint32_t lowest = lowest_seen(position, shape.window);
      EXPECT_TRUE(unit.min_position <= position && position <= unit.max_position);
      EXPECT_TRUE(unit.min_lowest <= lowest && lowest <= unit.max_lowest);
      const RowParts& parts = plan.row_parts[row];
      for (std::uint32_t span = unit.first_span; span <= unit.last_span; ++span) {
        const bool own = span >= lowest / 256 && span <= position / 256;
        if (parts.num_spans != 0) {
          EXPECT_EQ(unit.first_span, unit.last_span) << "parts are single spans";
          EXPECT_EQ(parts.has(span), own);
        }
        if (own) ++seen[{row, query % shape.heads_of_group, span}];
      }
    }
  };
  for (const AttentionUnit& unit : plan.narrow) count(unit, kNarrowQueries);
  for (const AttentionUnit& unit : plan.wide) count(unit, kWideQueries);
  return seen;
}

void expect_whole(const Case& batch, const AttentionShape& shape) {
  const AttentionPlan plan = plan_attention(batch.view(), shape);
  const Seen seen = seen_by(plan, batch, shape);
  std::size_t expected = 0;
  for (std::uint32_t row = 0; row < batch.batch.positions.size(); ++row) {
    const std::uint32_t position = batch.batch.positions[row];
    for (std::uint32_t span = lowest_seen(position, shape.window) / 256; span <= position / 256; ++span) {
      for (std::uint32_t head = 0; head < shape.heads_of_group; ++head) {
        ++expected;
        const auto found = seen.find({row, head, span});
        ASSERT_TRUE(found != seen.end()) << row << ", " << head << ", " << span;
        EXPECT_EQ(found->second, 1) << row << ", " << head << ", " << span;
      }
    }
  }
  EXPECT_EQ(seen.size(), expected);
  std::set<std::size_t> parts;
  std::size_t num_parts = 0;
  for (const std::uint32_t row : plan.rows_in_parts) {
    for (std::uint32_t i = 0; i < plan.row_parts[row].num_spans; ++i, ++num_parts) {
      parts.insert(plan.row_parts[row].part(plan.row_parts[row].first_span + i, 0, 1));
    }
  }
  EXPECT_EQ(parts.size(), num_parts) << "each part has a place of its own";
  EXPECT_TRUE(parts.empty() || *parts.rbegin() < shape.most_parts);
  EXPECT_TRUE(shape.has_wide || plan.wide.empty());
}

TEST(AttentionPlan, SeesEverySpanOfEveryQueryOnceInRandomBatches) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Case batch;
    for (std::uint32_t s = 0; s <= random.below(4); ++s) {
      const std::uint32_t rows = 1 + random.below(random.below(2) == 0 ? 8 : 100);
      batch.add(random.below(900), rows, random.below(2) == 0 ? 0 : random.below(std::min(rows, 40u)));
    }
    const std::uint32_t windows[] = {0, 1, 5, 255, 256, 257, 600};
    expect_whole(batch, {.heads_of_group = 1 + random.below(12),
                         .window = windows[random.below(7)],
                         .has_wide = random.below(3) != 0,
                         .most_parts = random.below(40)});
  }
}

TEST(AttentionPlan, GivesPartsToWhoeverFindsRoomForAllOfThem) {
  Case batch;
  batch.add(599, 1);  // three spans
  for (const std::uint32_t room : {2u, 3u, 4u}) {
    const AttentionShape shape{.heads_of_group = 4, .most_parts = room};
    const AttentionPlan plan = plan_attention(batch.view(), shape);
    EXPECT_EQ(plan.rows_in_parts.size(), room < 3 ? 0u : 1u);
    EXPECT_EQ(plan.narrow.size(), room < 3 ? 1u : 3u);
    expect_whole(batch, shape);
  }
}

TEST(AttentionPlan, CutsFewRowsIntoPartsAndManyIntoTiles) {
  for (const std::uint32_t rows : {kMostRowsInParts - 1, kMostRowsInParts, kMostRowsInParts + 1}) {
    Case batch;
    batch.add(300, rows);
    const AttentionShape shape{.heads_of_group = 4, .most_parts = 1000};
    EXPECT_EQ(plan_attention(batch.view(), shape).rows_in_parts.empty(), rows > kMostRowsInParts);
  }
}

TEST(AttentionPlan, ATreesRowsShareTheSpansBeforeTheRoots) {
  Case batch;
  batch.add(700, 9, 8);
  const AttentionPlan plan = plan_attention(batch.view(), {.heads_of_group = 2, .most_parts = 1000});
  EXPECT_EQ(plan.wide.size(), 2u) << "two spans, of all nine rows each";
  EXPECT_EQ(plan.narrow.size(), 9u) << "the third: the root, and each node for itself";
}

constexpr std::uint32_t kHeads = 32;
constexpr KvLayout layout_of(backend::KvType type) { return {8, 128, 16, type}; }

Cost cost_of(const Case& batch, std::uint32_t window = 0, backend::KvType type = backend::KvType::kBF16) {
  return attention_cost(batch.view(), layout_of(type), kHeads, window);
}
double units_of(const Case& batch) {
  const AttentionPlan plan = plan_attention(batch.view(), {.heads_of_group = 4, .most_parts = 1000});
  return unit_bytes(batch.view(), plan, layout_of(backend::KvType::kBF16), kHeads);
}

TEST(AttentionCost, OfOneRowIsWhatItSeesReadOnceAndSoAreItsUnits) {
  for (const std::uint32_t position : {4095u, 4096u}) {
    Case batch;
    batch.add(position, 1);
    const Cost cost = cost_of(batch);
    const double kv = (position / 16 + 1) * 16.0 * 2 * 8 * 128 * 2;  // whole groups
    const double rows = 2.0 * 32 * 128 * 4;
    const double parts = (position / 256 + 1) * 2.0 * 32 * 130 * 4;
    EXPECT_EQ(cost.bytes, kv + rows);
    EXPECT_EQ(units_of(batch), kv + parts);
    EXPECT_EQ(cost.flops, (position + 1) * 4.0 * 32 * 128);
  }
}

TEST(AttentionCost, OfManyRowsReadsKAndVOnceAndComputesForEach) {
  Case alone;
  alone.add(1000, 1);
  Case chain;
  chain.add(1000, 8);
  EXPECT_LT(cost_of(chain).bytes, 1.1 * cost_of(alone).bytes);
  EXPECT_LT(units_of(chain), 1.3 * units_of(alone));
  EXPECT_GT(cost_of(chain).flops, 7.9 * cost_of(alone).flops);
}

TEST(AttentionCost, LeavesOutWhatAWindowOrNarrowerNumbersSpare) {
  Case batch;
  batch.add(4000, 1);
  EXPECT_LT(cost_of(batch, 256).bytes, 0.1 * cost_of(batch).bytes);
  EXPECT_EQ(cost_of(batch, 256).flops, 256 * 4.0 * 32 * 128);
  EXPECT_LT(cost_of(batch, 0, backend::KvType::kFp8).bytes, 0.51 * cost_of(batch).bytes);
}

}  // namespace
}  // namespace quire::gpu::attention_plan_test
