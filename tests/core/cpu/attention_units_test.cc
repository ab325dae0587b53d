// How a step's attention is cut: everything once, and what several sequences begin with read once for all of them.
#include "core/cpu/attention_units.h"

#include <set>
#include <tuple>

#include "tests/core/cpu/rig.h"

namespace quire::cpu::test::attention_units_test {
namespace {

struct StepShape {
  std::uint32_t block_tokens = 16;
  std::uint32_t num_heads = 4;
  std::uint32_t num_kv_heads = 1;
  std::uint32_t window = 0;
  std::uint32_t workers = 1;
};

// Sequences whose blocks are named by hand: `shared` positions of sequence `of`'s blocks, then blocks of its own.
class Tables {
 public:
  explicit Tables(std::uint32_t block_tokens) : block_tokens_(block_tokens) {}

  void add(std::uint32_t first_position, std::uint32_t num_rows, std::uint32_t shared = 0, std::uint32_t of = 0) {
    std::vector<BlockId> table;
    for (std::uint32_t b = 0; b * block_tokens_ < first_position + num_rows; ++b) {
      table.push_back(b < shared / block_tokens_ ? tables_[of][b] : BlockId{next_ = next_ * 7 % 65521});
    }
    tables_.push_back(table);
    batch_.add(first_position, num_rows, table, block_tokens_);
  }
  OwnedBatch& batch() { return batch_; }

 private:
  std::uint32_t block_tokens_;
  std::uint32_t next_ = 17;  // 17 * 7^n modulo a prime: no two alike, and in no order
  std::vector<std::vector<BlockId>> tables_;
  OwnedBatch batch_;
};

std::vector<AttentionUnit> units_of(OwnedBatch& batch, const StepShape& shape) {
  backend::AttentionSpec spec;
  spec.num_heads = shape.num_heads;
  spec.num_kv_heads = shape.num_kv_heads;
  spec.head_dim = 8;
  spec.window = shape.window;
  AttentionUnits units(1024);
  const backend::Batch view = batch.view();
  units.begin(view);
  units.cut(spec, shape.block_tokens, 12, shape.workers);
  std::vector<AttentionUnit> out;
  for (std::uint32_t i = 0; i < units.count(); ++i) out.push_back(units.unit(i));
  return out;
}

// How often K and V of a span and kv head are gone through, over all units.
std::uint32_t num_spans_read(const std::vector<AttentionUnit>& units) {
  std::uint32_t count = 0;
  for (const AttentionUnit& unit : units) {
    for (std::uint32_t span = 0; span < 64; ++span) {
      for (std::uint32_t u = 0; u < unit.num_rows; u = unit.end_of_group(u, span)) {
        count += unit.rows[unit.end_of_group(u, span) - 1].position >= span * kSpan;
      }
    }
  }
  return count;
}

std::uint32_t num_spans_read(Tables& tables, const StepShape& shape) {
  return num_spans_read(units_of(tables.batch(), shape));
}

void expect_everything_once(OwnedBatch& batch, const StepShape& shape) {
  std::set<std::tuple<std::uint32_t, std::uint32_t>> seen;  // row, head
  for (const AttentionUnit& unit : units_of(batch, shape)) {
    ASSERT_GT(unit.num_rows, 0u);
    ASSERT_LE(unit.num_rows, kUnitRows);
    for (std::uint32_t u = 0; u < unit.num_rows; ++u) {
      const QueryRow& row = unit.rows[u];
      ASSERT_EQ(row.head / (shape.num_heads / shape.num_kv_heads), unit.kv_head);
      ASSERT_EQ(batch.positions[row.row], row.position);
      ASSERT_GE(row.row, row.sequence->first_row);
      ASSERT_LT(row.row, row.sequence->first_row + row.sequence->num_rows);
      ASSERT_TRUE(seen.emplace(row.row, row.head).second);
    }
  }
  EXPECT_EQ(seen.size(), batch.positions.size() * shape.num_heads);
}

TEST(AttentionUnits, ReadEverySpanForEachSequenceThatSharesNone) {
  Tables tables(16);
  for (const std::uint32_t position : {0u, 255u, 256u, 1023u}) tables.add(position, 1);
  EXPECT_EQ(num_spans_read(tables, {}), 1u + 1 + 2 + 4);
}

TEST(AttentionUnits, ReadSharedSpansOnceForAllWhoShareThem) {
  for (const std::uint32_t block_tokens : {16u, 64u, 256u}) {
    Tables tables(block_tokens);  // 5 spans each
    tables.add(1100, 1);
    tables.add(1100, 1, 256, 0);   // shares 1
    tables.add(1100, 1);           // shares none
    tables.add(1100, 1, 768, 0);   // shares 3
    tables.add(1100, 1, 1024, 1);  // shares 1 with the first, 4 with the second
    EXPECT_EQ(num_spans_read(tables, {block_tokens}), 5u + 5 + (5 - 3) + (5 - 1) + (5 - 4)) << block_tokens;
    EXPECT_EQ(num_spans_read(tables, {block_tokens, 9, 3}), 3 * (5u + 5 + 2 + 4 + 1)) << block_tokens;
  }
}

TEST(AttentionUnits, ShareWholeSpansOnly) {
  for (const auto& [block_tokens, shared, expected] : {std::tuple{16u, 240u, 0u},
                                                       {16u, 256u, 1u},
                                                       {16u, 272u, 1u},
                                                       {16u, 496u, 1u},
                                                       {16u, 512u, 2u},
                                                       {48u, 240u, 0u},
                                                       {48u, 288u, 1u},
                                                       {512u, 0u, 0u},
                                                       {512u, 512u, 2u}}) {
    Tables tables(block_tokens);
    tables.add(1100, 1);
    tables.add(1100, 1, shared, 0);
    EXPECT_EQ(num_spans_read(tables, {block_tokens}), 10 - expected) << block_tokens << " " << shared;
  }
}

TEST(AttentionUnits, ShareNoSpanThatARowOfEitherLiesIn) {
  for (const auto& [position, expected] : {std::pair{511u, 1u}, {512u, 2u}, {513u, 2u}}) {
    Tables tables(16);
    tables.add(1100, 1);
    tables.add(position, 3, 1104, 0);
    EXPECT_EQ(num_spans_read(tables, {}), 5 + (position + 2) / kSpan + 1 - expected) << position;
  }
}

TEST(AttentionUnits, ShareNothingInALayerWithAWindow) {
  Tables tables(16);
  tables.add(1100, 1);
  tables.add(1100, 1, 1024, 0);
  EXPECT_EQ(num_spans_read(tables, {16, 4, 1, 4096}), 10u);
}

TEST(AttentionUnits, ShareNothingWithSequencesThatLostGroupsOrWantAccumulatedScores) {
  for (const bool accumulated_scores : {false, true}) {
    Tables tables(16);
    tables.add(1100, 1);
    tables.add(1100, 1, 1024, 0);
    tables.add(1100, 1, 1024, 0);
    (accumulated_scores ? tables.batch().sequences[1].num_accumulated_scores : tables.batch().sequences[1].num_kept) =
        4;
    EXPECT_EQ(num_spans_read(tables, {}), 5u + 5 + 1);
  }
}

TEST(AttentionUnits, HoldEveryRowAndHeadOnce) {
  for (const std::uint32_t seed : {1u, 2u, 3u, 4u, 5u}) {
    Random random(seed);
    for (const std::uint32_t block_tokens : {16u, 64u, 256u}) {
      Tables tables(block_tokens);
      std::vector<std::uint32_t> lengths;
      for (std::uint32_t s = 0; s < 60; ++s) {
        const std::uint32_t position = random.below(1500);
        const std::uint32_t of = s == 0 ? 0 : random.below(s);
        const std::uint32_t most = s == 0 ? 0 : std::min(position, lengths[of]);
        tables.add(position, 1 + random.below(random.below(4) == 0 ? 60 : 2), random.below(most + 1), of);
        lengths.push_back(position);
      }
      for (const StepShape& shape : {StepShape{block_tokens, 4, 4},
                                     {block_tokens, 9, 3, 0, 2},
                                     {block_tokens, 50, 1, 0, 7},
                                     {block_tokens, 8, 2, 100, 3}}) {
        SCOPED_TRACE(seed);
        expect_everything_once(tables.batch(), shape);
      }
    }
  }
}

using Sizes = std::vector<std::uint32_t>;

Sizes sizes_of_units(std::uint32_t num_rows, const StepShape& shape) {
  Tables tables(shape.block_tokens);
  tables.add(0, num_rows);
  Sizes out;
  for (const AttentionUnit& unit : units_of(tables.batch(), shape)) out.push_back(unit.num_rows);
  return out;
}

TEST(AttentionUnits, AreManyEnoughForTheWorkersAndNoSmallerThanATile) {
  const auto sizes = [](std::uint32_t workers) { return sizes_of_units(64, {16, 6, 2, 0, workers}); };
  EXPECT_EQ(sizes(1), (Sizes{48, 48, 48, 48, 48, 48, 48, 48}));
  EXPECT_EQ(sizes(4), (Sizes(16, 24)));
  EXPECT_EQ(sizes(64), (Sizes(32, 12)));
}

TEST(AttentionUnits, OfOneKvHeadAndFewQueriesAreOneForEachWorker) {
  const auto sizes = [](std::uint32_t num_heads, std::uint32_t workers) {
    return sizes_of_units(1, {16, num_heads, 1, 0, workers});
  };
  EXPECT_EQ(sizes(16, 2), (Sizes{8, 8}));
  EXPECT_EQ(sizes(23, 2), (Sizes{12, 11}));
  EXPECT_EQ(sizes(24, 2), (Sizes{12, 12}));
  EXPECT_EQ(sizes(25, 2), (Sizes{12, 12, 1}));  // more than a tile for each
  EXPECT_EQ(sizes(128, 64), Sizes(64, 2));
  EXPECT_EQ(sizes(3, 8), (Sizes{1, 1, 1}));
}

}  // namespace
}  // namespace quire::cpu::test::attention_units_test
