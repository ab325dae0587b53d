// Attention through the tensor cores on the simulated device: its own contract, f64, and that nothing of a batch can be
// seen in it.
#include "gpu/attention.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/gpu/attention_lab.h"

namespace quire::gpu::test::attention_test {
namespace {

using backend::Ops;

constexpr KvType kTileTypes[] = {KvType::kBF16, KvType::kFp8, KvType::kInt8, KvType::kInt4};

const std::vector<LabShape>& shapes() {
  static const std::vector<LabShape> all = {
      {4, 2, 16, 16, KvType::kBF16, 0},
      {3, 1, 18, 32, KvType::kBF16, 20},
      {7, 1, 32, 16, KvType::kBF16, 0},
      {2, 1, 16, 16, KvType::kFp8, 0},
      {9, 1, 16, 32, KvType::kFp8, 5},
      {4, 2, 16, 16, KvType::kInt8, 0},
      {3, 1, 18, 32, KvType::kInt8, 7},
      {4, 2, 16, 16, KvType::kInt4, 0},
      {3, 1, 18, 32, KvType::kInt4, 20},
      {.num_heads = 4, .head_dim = 16, .type = KvType::kBF16, .sinks = true},
      {.num_heads = 8, .head_dim = 18, .type = KvType::kInt8, .window = 20, .sinks = true},
  };
  return all;
}

using Rows = std::vector<std::vector<float>>;

// Chunks of all sequences together, or one sequence after the other. The device's memory begins as NaN.
Rows attended(const LabShape& shape, std::span<const std::uint32_t> lengths, std::uint32_t chunk, bool together = true,
              std::uint32_t layout = 1, std::uint64_t seed = 1) {
  const auto ops = simulated(seed);
  Lab lab(*ops, shape, lab_sequences(shape, lengths, 77), layout);
  lab.prefill(chunk, together);
  return lab.out();
}

void expect_same(const Rows& a, const Rows& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t s = 0; s < a.size(); ++s) EXPECT_TRUE(same_bits(a[s], b[s])) << "sequence " << s;
}

std::span<const float> row_of(const std::vector<float>& out, const LabShape& shape, std::uint32_t p) {
  return std::span(out).subspan(std::size_t{p} * shape.q_width(), shape.q_width());
}

TEST(GpuAttention, EqualsItsContractBitForBitWhateverTheOrderOfThreads) {
  const std::uint32_t lengths[] = {1, 21};
  for (const LabShape& shape : shapes()) {
    SCOPED_TRACE(shape.text());
    const auto sequences = lab_sequences(shape, lengths, 77);
    for (const std::uint64_t seed : {1u, 2u}) {
      const Rows out = attended(shape, lengths, 64, true, 1, seed);
      for (std::size_t s = 0; s < out.size(); ++s) {
        for (std::uint32_t p = 0; p < lengths[s]; ++p) {
          ASSERT_TRUE(as_contract(row_of(out[s], shape, p), tiles_contract(shape, sequences[s], p))) << s << ", " << p;
        }
      }
    }
  }
}

TEST(GpuAttention, MergesSpansAsItsContractSaysInPartsAndWhole) {
  const std::uint32_t lengths[] = {530};
  for (const KvType type : kTileTypes) {
    for (const std::uint32_t window : {0u, 257u}) {
      if (window != 0 && type != KvType::kInt4) continue;  // the simulator takes long over it
      const LabShape shape{2, 1, 16, 16, type, window};
      SCOPED_TRACE(shape.text());
      const auto ops = simulated();
      Lab lab(*ops, shape, lab_sequences(shape, lengths, 77), 1);
      const LabRows steps[] = {{0, 0, 500}, {0, 500, 1}, {0, 501, 22}, {0, 523, 7}};  // a wide step, then parts
      for (const LabRows& rows : steps) lab.step({&rows, 1});
      for (const std::uint32_t p : {254u, 255u, 256u, 257u, 499u, 500u, 501u, 511u, 512u, 522u, 523u, 529u}) {
        ASSERT_TRUE(as_contract(row_of(lab.out()[0], shape, p), tiles_contract(shape, lab.sequences()[0], p))) << p;
      }
    }
  }
}

TEST(GpuAttention, IsAsCloseToF64AsItsRoundingsAllow) {
  const std::uint32_t lengths[] = {3, 260};
  for (const KvType type : kTileTypes) {
    for (const LabShape& shape : {LabShape{2, 1, 32, 32, type, 0}, LabShape{1, 1, 48, 16, type, 100}}) {
      SCOPED_TRACE(shape.text());
      const Rows out = attended(shape, lengths, 260);
      const auto sequences = lab_sequences(shape, lengths, 77);
      for (std::size_t s = 0; s < out.size(); ++s) {
        for (std::uint32_t p = 0; p < lengths[s]; p += p < 3 ? 1 : 33) {
          double of_f32 = 0;
          const std::vector<double> dense = dense_f64(shape, sequences[s], p, &of_f32);
          const double tolerance = tiles_tolerance(shape, sequences[s], p, of_f32);
          for (std::size_t i = 0; i < dense.size(); ++i) {
            ASSERT_NEAR(row_of(out[s], shape, p)[i], dense[i], tolerance) << s << ", " << p;
          }
        }
      }
    }
  }
}

TEST(GpuAttention, TakesHeadsOfUpTo256DimensionsAndInt4sOfUpTo128) {
  const std::uint32_t lengths[] = {18};
  for (const KvType type : kTileTypes) {
    for (const std::uint32_t dims : {2u, 126u, 128u, 130u, 254u, 256u}) {
      const LabShape shape{1, 1, dims, 16, type, 0};
      SCOPED_TRACE(shape.text());
      const Rows out = attended(shape, lengths, 20);
      const auto sequences = lab_sequences(shape, lengths, 77);
      const bool plain = type == KvType::kInt4 && dims > 128;
      for (const std::uint32_t p : {0u, 16u, 17u}) {
        const auto expected = plain ? contract_f32(shape, sequences[0], p) : tiles_contract(shape, sequences[0], p);
        ASSERT_TRUE(plain ? same_bits(row_of(out[0], shape, p), expected)
                          : as_contract(row_of(out[0], shape, p), expected))
            << p;
      }
    }
  }
}

// As many as the CPU's bits are promised for: gpu/limits.h.
TEST(GpuAttention, TakesHeadsOfUpTo512DimensionsWithTheBitsOfTheCpu) {
  const std::uint32_t lengths[] = {18};
  for (const KvType type : backend::kAllKvTypes) {
    for (const std::uint32_t dims : {258u, 510u, 512u}) {
      const LabShape shape{1, 1, dims, 16, type, 0};
      SCOPED_TRACE(shape.text());
      const Rows out = attended(shape, lengths, 20);
      const auto sequences = lab_sequences(shape, lengths, 77);
      for (const std::uint32_t p : {0u, 17u}) {
        ASSERT_TRUE(same_bits(row_of(out[0], shape, p), contract_f32(shape, sequences[0], p))) << p;
      }
    }
  }
}

TEST(GpuAttention, TakesUpTo128QueryHeadsOfAKvHead) {
  const std::uint32_t lengths[] = {5};
  for (const std::uint32_t heads : {127u, 128u}) {
    const LabShape shape{heads, 1, 16, 16, KvType::kBF16, 0};
    const Rows out = attended(shape, lengths, 5);
    const auto sequences = lab_sequences(shape, lengths, 77);
    for (const std::uint32_t p : {0u, 4u}) {
      ASSERT_TRUE(as_contract(row_of(out[0], shape, p), tiles_contract(shape, sequences[0], p))) << heads << ", " << p;
    }
  }
}

TEST(GpuAttention, IsTheSameForAnyChunksCompanyAndPlaceOfBlocks) {
  const std::uint32_t lengths[] = {5, 34, 1};
  for (const LabShape& shape : shapes()) {
    SCOPED_TRACE(shape.text());
    const Rows whole = attended(shape, lengths, 64, /*together=*/false);
    expect_same(attended(shape, lengths, 33, true, 2), whole);
    expect_same(attended(shape, lengths, 7, true, 3), whole);
    expect_same(attended(shape, std::span(lengths).first(1), 1), {whole[0]});
  }
}

// One by one over a span's end, in chunks that are a draft's chain, and all at once: parts or none.
TEST(GpuAttention, IsTheSameInPartsOfOneSpanAndOverAllSpansAtOnce) {
  for (const KvType type : kTileTypes) {
    for (const std::uint32_t window : {0u, 40u}) {
      if (window != 0 && type != KvType::kBF16) continue;
      const LabShape shape{2, 1, 16, 32, type, window};
      SCOPED_TRACE(shape.text());
      const std::uint32_t lengths[] = {270};
      const auto stepped = [&](std::span<const std::uint32_t> counts) {
        const auto ops = simulated();
        Lab lab(*ops, shape, lab_sequences(shape, lengths, 77), 1);
        std::uint32_t first = 0;
        for (const std::uint32_t count : counts) {
          const LabRows rows{0, first, count};
          lab.step({&rows, 1});
          first += count;
        }
        return lab.out();
      };
      const std::uint32_t whole[] = {270};
      const std::uint32_t chains[] = {250, 5, 8, 7};
      const std::uint32_t one_by_one[] = {252, 1, 1, 1, 1, 1, 1, 1, 1, 10};
      const Rows expected = stepped(whole);
      expect_same(stepped(chains), expected);
      expect_same(stepped(one_by_one), expected);
    }
  }
}

TEST(GpuAttention, ReadsNothingThatNoRowOfTheSequenceStored) {
  const std::uint32_t lengths[] = {19, 7};
  for (const LabShape& shape : shapes()) {
    SCOPED_TRACE(shape.text());
    std::vector<Rows> results;
    for (const int byte : {0x00, 0x7f, 0xff}) {  // nothing, the largest or a NaN, a NaN
      const auto ops = simulated();
      Lab lab(*ops, shape, lab_sequences(shape, lengths, 5), 1);
      fill_cache(*ops, lab.cache(), static_cast<std::byte>(byte));
      lab.prefill(10, true);
      results.push_back(lab.out());
    }
    for (std::size_t i = 1; i < results.size(); ++i) expect_same(results[i], results[0]);
  }
}

TEST(GpuAttention, ALaterRowsFaultTouchesNoEarlierRowAndEveryLaterOneThatSeesIt) {
  const std::uint32_t lengths[] = {40};
  for (const float fault : {static_cast<float>(NAN), std::numeric_limits<float>::infinity()}) {
    for (const LabShape& shape : {shapes()[1], shapes()[4], shapes()[5], shapes()[8]}) {
      SCOPED_TRACE(shape.text());
      auto sequences = lab_sequences(shape, lengths, 6);
      const auto ops = simulated();
      Lab clean(*ops, shape, sequences, 1);
      clean.prefill(64, true);
      for (std::size_t i = 0; i < shape.width(); ++i) sequences[0].rows[21 * shape.width() + i] = fault;
      for (const std::uint32_t chunk : {64u, 10u}) {
        Lab faulty(*ops, shape, sequences, 1);
        faulty.prefill(chunk, true);
        for (std::uint32_t p = 0; p < 40; ++p) {
          const std::span<const float> row = row_of(faulty.out()[0], shape, p);
          // int4: a group shares its steps, so that a later row sees the fault wherever it sees one of the group.
          const std::uint32_t last = shape.type == KvType::kInt4 ? 31 : 21;
          const bool sees = p >= 21 && (shape.window == 0 || p < (p < 32 ? 21 : last) + shape.window);
          if (!sees) {
            EXPECT_TRUE(same_bits(row, row_of(clean.out()[0], shape, p))) << p;
            continue;
          }
          for (const float x : row) EXPECT_FALSE(std::isfinite(x)) << p;
        }
      }
    }
  }
}

TEST(GpuAttention, WithHolesEqualsItsContractOverWhatIsKeptHoweverItIsChunked) {
  const std::uint32_t lengths[] = {530, 40};
  for (const KvType type : {KvType::kBF16, KvType::kInt4}) {
    const LabShape shape{1, 1, 16, 32, type, 0};
    SCOPED_TRACE(shape.text());
    Rows first;
    for (const std::uint32_t chunk : {256u, 64u}) {
      const auto ops = simulated();
      auto sequences = lab_sequences(shape, lengths, 77);
      for (std::uint32_t s = 0; s < 2; ++s) punch_holes(sequences[s], s + 1);
      Lab lab(*ops, shape, sequences, 1);
      lab.prefill(chunk, true);
      EXPECT_GT(lab.num_dropped, 2u) << "blocks were meant to go";
      if (first.empty()) {
        first = lab.out();
        for (const std::uint32_t p : {0u, 255u, 256u, 300u, 511u, 512u, 529u}) {
          ASSERT_TRUE(as_contract(row_of(first[0], shape, p), tiles_contract(shape, lab.sequences()[0], p))) << p;
        }
      }
      expect_same(lab.out(), first);
    }
  }
}

TEST(GpuAttention, BlocksBelowEveryWindowNeedNotBeThere) {
  for (const KvType type : kTileTypes) {
    const LabShape shape{2, 1, 16, 16, type, 30};
    SCOPED_TRACE(shape.text());
    const std::uint32_t lengths[] = {100};
    const Rows expected = attended(shape, lengths, 100);
    const auto ops = simulated();
    Lab lab(*ops, shape, lab_sequences(shape, lengths, 77), 1);
    for (std::uint32_t p = 0; p < 100; p += 10) {
      std::vector<BlockId> table = lab.table(0);
      for (std::uint32_t b = 0; (b + 1) * 16 + 29 <= p; ++b) {
        if (table[b].value != ~0u) ops->poison_block(lab.cache(), table[b]);
        table[b] = BlockId(~0u);
      }
      lab.set_table(0, table);
      const LabRows rows[] = {{0, p, 10}};
      lab.step(rows);
    }
    expect_same(lab.out(), expected);
  }
}

TEST(GpuAttention, AForkInInt4GoesOnWithACopyOfTheResidualGroup) {
  const LabShape shape{2, 1, 16, 16, KvType::kInt4, 0};
  const std::uint32_t lengths[] = {60, 60};
  const Rows expected = attended(shape, std::span(lengths).first(1), 60);
  const auto ops = simulated();
  Lab lab(*ops, shape, lab_sequences(shape, lengths, 77), 1);
  lab.set_rows(1, lab.sequences()[0].rows);
  const LabRows begin[] = {{0, 0, 39}};
  lab.step(begin);
  ops->copy_residual_group(lab.cache(), 0, 1);
  std::vector<BlockId> table = lab.table(1);
  table[0] = lab.table(0)[0];
  table[1] = lab.table(0)[1];
  lab.set_table(1, table);
  const LabRows both[] = {{0, 39, 3}, {1, 39, 21}};
  lab.step(both);
  const LabRows rest[] = {{0, 42, 18}};
  lab.step(rest);
  expect_same({lab.out()[0]}, expected);
  const std::size_t forked = 39 * shape.q_width();
  EXPECT_TRUE(same_bits(std::span(lab.out()[1]).subspan(forked), std::span(expected[0]).subspan(forked)));
}

TEST(GpuAttention, CopiedAndWrittenBlocksAndRowsServeAsTheOriginals) {
  for (const KvType type : kTileTypes) {
    const LabShape shape{2, 1, 18, 16, type, 0};
    SCOPED_TRACE(shape.text());
    const std::uint32_t lengths[] = {33, 48};
    const auto ops = simulated();
    Lab lab(*ops, shape, lab_sequences(shape, lengths, 8), 1);
    lab.set_rows(1, [&] {
      std::vector<float> rows = lab.sequences()[0].rows;
      rows.resize(lab.sequences()[1].rows.size());
      return rows;
    }());
    const LabRows original[] = {{0, 0, 32}};
    lab.step(original);
    const auto& from = lab.table(0);
    const auto& to = lab.table(1);
    const backend::BlockCopy copy{from[0], to[0]};
    ops->copy_blocks(lab.cache(), {&copy, 1});
    if (type == KvType::kInt4) {
      std::vector<std::byte> bytes(lab.cache().block_bytes());
      ops->read_block(lab.cache(), from[1], bytes);
      ops->write_block(lab.cache(), to[1], bytes);
    } else {
      std::vector<backend::RowCopy> rows;
      for (std::uint32_t i = 0; i < 16; ++i) rows.push_back({from[1].value * 16 + i, to[1].value * 16 + i});
      ops->copy_rows(lab.cache(), rows);
    }
    const LabRows last[] = {{0, 32, 1}, {1, 32, 1}};
    lab.step(last);
    EXPECT_TRUE(same_bits(row_of(lab.out()[1], shape, 32), row_of(lab.out()[0], shape, 32)));
  }
}

}  // namespace
}  // namespace quire::gpu::test::attention_test
