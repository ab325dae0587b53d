// attend() over the paged cache: what it must equal, and what must not be visible in it.
#include "tests/core/cpu/attention_lab.h"

namespace quire::cpu::test::attention_test {
namespace {

const std::vector<LabShape>& shapes() {
  static const std::vector<LabShape> all = {
      {4, 4, 8, 16, KvType::kF32, 0},
      {4, 2, 64, 16, KvType::kBF16, 0},
      {3, 1, 80, 32, KvType::kF32, 0},
      {8, 2, 128, 16, KvType::kBF16, 0},
      {14, 2, 64, 32, KvType::kBF16, 0},
      {4, 2, 64, 16, KvType::kF32, 5},
      {4, 1, 8, 32, KvType::kBF16, 100},
      {2, 2, 128, 16, KvType::kBF16, 300},
      {50, 1, 18, 16, KvType::kF32, 0},
      {4, 2, 64, 16, KvType::kFp8, 0},
      {3, 1, 18, 32, KvType::kFp8, 100},
      {4, 2, 64, 16, KvType::kInt8, 0},
      {3, 1, 18, 32, KvType::kInt8, 100},
      {4, 2, 64, 16, KvType::kInt4, 0},
      {2, 2, 18, 32, KvType::kInt4, 100},
      {50, 1, 8, 16, KvType::kInt4, 0},
      {.num_heads = 8, .type = KvType::kBF16, .sinks = true},
      {.head_dim = 18, .type = KvType::kF32, .window = 100, .sinks = true},
      {.head_dim = 18, .type = KvType::kInt4, .sinks = true},
      {.num_heads = 6, .num_kv_heads = 1, .head_dim = 44, .type = KvType::kF32, .latent = 34},
      {.num_heads = 17, .num_kv_heads = 1, .head_dim = 72, .block_tokens = 32, .type = KvType::kBF16, .latent = 64},
      {.num_heads = 3, .num_kv_heads = 1, .head_dim = 20, .type = KvType::kFp8, .window = 100, .latent = 12},
      {.num_heads = 4, .num_kv_heads = 1, .head_dim = 44, .type = KvType::kInt8, .latent = 32},
  };
  return all;
}

// Random holes: rows of a span have lost about half of the groups of the spans before, some spans all of them; what is
// lost stays lost, and the first group never is.
void punch_holes(LabSequence& sequence, std::uint32_t seed) {
  Random random(seed);
  sequence.kept.assign((sequence.length + 255) / 256, {});
  for (std::size_t span = 1; span < sequence.kept.size(); ++span) {
    sequence.kept[span] = sequence.kept[span - 1];
    sequence.kept[span].push_back(0xffff);
    for (std::size_t s = 0; s < span; ++s) {
      const std::uint32_t mask = random.below(4) == 0 ? 0 : random.below(1u << 16) | random.below(1u << 16);
      sequence.kept[span][s] = static_cast<std::uint16_t>(sequence.kept[span][s] & mask);
    }
    sequence.kept[span][0] |= 1;
  }
}

std::vector<LabSequence> with_holes(const LabShape& shape, std::span<const std::uint32_t> lengths) {
  std::vector<LabSequence> sequences = lab_sequences(shape, lengths, 77);
  for (std::size_t s = 0; s < sequences.size(); ++s) punch_holes(sequences[s], static_cast<std::uint32_t>(s + 1));
  return sequences;
}

const std::vector<LabShape>& holed_shapes() {
  static const std::vector<LabShape> all = {{4, 2, 16, 16, KvType::kF32, 0},
                                            {3, 1, 18, 16, KvType::kBF16, 0},
                                            {4, 1, 8, 32, KvType::kBF16, 0},
                                            {2, 2, 8, 16, KvType::kF32, 300},
                                            {4, 2, 18, 16, KvType::kInt8, 0},
                                            {4, 2, 16, 32, KvType::kFp8, 0},
                                            {4, 2, 18, 32, KvType::kInt4, 0},
                                            {.head_dim = 18, .type = KvType::kF32, .sinks = true},
                                            {.num_kv_heads = 1, .head_dim = 44, .type = KvType::kBF16, .latent = 34}};
  return all;
}

std::vector<std::vector<float>> prefilled(const std::string& isa, std::uint32_t threads, const LabShape& shape,
                                          std::span<const std::uint32_t> lengths, std::uint32_t chunk,
                                          bool together = true, std::uint32_t layout = 1) {
  const auto ops = make_ops(isa, threads, 1200);
  Lab lab(*ops, shape, lab_sequences(shape, lengths, 77), layout);
  lab.poison(NAN);
  lab.prefill(chunk, together);
  return lab.out();
}

void expect_same(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t s = 0; s < a.size(); ++s) EXPECT_TRUE(same_bits(a[s], b[s])) << "sequence " << s;
}

TEST(Attend, EqualsDenseAttentionInF64) {
  const std::uint32_t lengths[] = {1, 17, 35, 300, 530};
  for (const LabShape& shape : shapes()) {
    SCOPED_TRACE(shape.text());
    const auto out = prefilled("auto", 2, shape, lengths, 512);
    const auto sequences = lab_sequences(shape, lengths, 77);
    for (std::size_t s = 0; s < out.size(); ++s) {
      for (std::uint32_t p = 0; p < lengths[s]; p += p < 40 ? 1 : 37) {
        double tolerance = 0;
        const std::vector<double> dense = dense_f64(shape, sequences[s], p, &tolerance);
        for (std::size_t i = 0; i < dense.size(); ++i) {
          ASSERT_NEAR(out[s][p * dense.size() + i], dense[i], tolerance) << "sequence " << s << " position " << p;
        }
      }
    }
  }
}

TEST(Attend, EqualsTheContractBitForBitOnEveryInstructionSet) {
  const std::uint32_t lengths[] = {3, 35, 261};
  for (const std::string& isa : supported_isas()) {
    for (const LabShape& shape : shapes()) {
      SCOPED_TRACE(isa + " " + shape.text());
      const auto out = prefilled(isa, 2, shape, lengths, 512);
      const auto sequences = lab_sequences(shape, lengths, 77);
      for (std::size_t s = 0; s < out.size(); ++s) {
        for (std::uint32_t p = 0; p < lengths[s]; p += p < 20 || p > 250 ? 1 : 23) {
          const std::vector<float> row = contract_f32(shape, sequences[s], p);
          ASSERT_TRUE(same_bits(std::span(out[s]).subspan(p * row.size(), row.size()), row)) << "position " << p;
        }
      }
    }
  }
}

TEST(Attend, MergesManySpansAsTheContractSays) {
  const std::uint32_t lengths[] = {1100};
  for (const std::string& isa : vector_isas()) {
    for (const std::uint32_t window : {0u, 256u, 257u, 600u}) {
      LabShape shape{4, 2, 16, 16, KvType::kBF16, window};
      SCOPED_TRACE(isa + " " + shape.text());
      const auto out = prefilled(isa, 1, shape, lengths, 600);
      const auto sequences = lab_sequences(shape, lengths, 77);
      for (const std::uint32_t p : {255u, 256u, 257u, 511u, 512u, 513u, 767u, 768u, 900u, 1023u, 1024u, 1099u}) {
        const std::vector<float> row = contract_f32(shape, sequences[0], p);
        ASSERT_TRUE(same_bits(std::span(out[0]).subspan(p * row.size(), row.size()), row)) << "position " << p;
      }
    }
  }
}

TEST(Attend, IsTheSameHoweverThePromptIsChunked) {
  const std::uint32_t lengths[] = {281, 60};
  for (const LabShape& shape : shapes()) {
    SCOPED_TRACE(shape.text());
    const auto whole = prefilled("auto", 1, shape, lengths, 512);
    for (const std::uint32_t chunk : {1u, 7u, 16u, 100u})
      expect_same(prefilled("auto", 1, shape, lengths, chunk), whole);
  }
}

TEST(Attend, IsTheSameAloneAndInABatchForAnyNumberOfThreads) {
  const std::uint32_t lengths[] = {5, 270, 33, 1, 90};
  for (const LabShape& shape : shapes()) {
    SCOPED_TRACE(shape.text());
    const auto together = prefilled("auto", 1, shape, lengths, 40, true);
    for (const std::uint32_t threads : {1u, 2u, 3u}) {
      expect_same(prefilled("auto", threads, shape, lengths, 40, true), together);
      expect_same(prefilled("auto", threads, shape, lengths, 40, false), together);
    }
  }
}

TEST(Attend, DoesNotShowWhereBlocksLie) {
  const std::uint32_t lengths[] = {35, 130};
  for (const LabShape& shape : shapes()) {
    SCOPED_TRACE(shape.text());
    expect_same(prefilled("auto", 1, shape, lengths, 64, true, 1), prefilled("auto", 1, shape, lengths, 64, true, 2));
  }
}

TEST(Attend, ReadsNothingThatNoRowOfTheSequenceStored) {
  const std::uint32_t lengths[] = {35, 7};
  for (const std::string& isa : supported_isas()) {
    for (const LabShape& shape : shapes()) {
      SCOPED_TRACE(isa + " " + shape.text());
      std::vector<std::vector<std::vector<float>>> results;
      for (const float poison : {0.0f, NAN, 1e30f, -std::numeric_limits<float>::infinity()}) {
        const auto ops = make_ops(isa, 1);
        Lab lab(*ops, shape, lab_sequences(shape, lengths, 5), 1);
        lab.poison(poison);
        lab.prefill(9, true);
        results.push_back(lab.out());
      }
      for (std::size_t i = 1; i < results.size(); ++i) expect_same(results[i], results[0]);
    }
  }
}

TEST(Attend, ALaterRowsNanTouchesNoEarlierRow) {
  const std::uint32_t lengths[] = {40};
  for (const std::string& isa : supported_isas()) {
    for (const LabShape& shape : shapes()) {
      SCOPED_TRACE(isa + " " + shape.text());
      auto sequences = lab_sequences(shape, lengths, 6);
      const auto ops = make_ops(isa, 1);
      Lab clean(*ops, shape, sequences, 1);
      clean.prefill(64, true);
      for (std::size_t i = 21 * shape.width(); i < 22 * shape.width(); ++i) sequences[0].rows[i] = NAN;
      Lab poisoned(*ops, shape, sequences, 1);
      poisoned.prefill(64, true);
      const std::size_t before = 21 * shape.out_width();
      EXPECT_TRUE(same_bits(std::span(poisoned.out()[0]).first(before), std::span(clean.out()[0]).first(before)));
      for (std::size_t i = before; i < before + shape.out_width(); ++i) EXPECT_TRUE(std::isnan(poisoned.out()[0][i]));
      if (shape.window == 5) {  // out of the window again
        EXPECT_TRUE(same_bits(std::span(poisoned.out()[0]).subspan(26 * shape.out_width()),
                              std::span(clean.out()[0]).subspan(26 * shape.out_width())));
      }
    }
  }
}

TEST(AttendInt4, AForkGoesOnWithACopyOfTheResidualGroup) {
  const LabShape shape{4, 2, 64, 16, KvType::kInt4, 0};
  const std::uint32_t lengths[] = {60, 60};
  const auto expected = prefilled("auto", 1, shape, std::span(lengths).first(1), 512);
  const auto ops = make_ops("auto", 1);
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
  const std::size_t forked = 39 * shape.out_width();
  EXPECT_TRUE(same_bits(std::span(lab.out()[1]).subspan(forked), std::span(expected[0]).subspan(forked)));
}

TEST(AttendWithHoles, EqualsTheContractOverWhatIsKeptBitForBitOnEveryInstructionSet) {
  const std::uint32_t lengths[] = {40, 1100};
  for (const std::string& isa : supported_isas()) {
    for (const LabShape& shape : holed_shapes()) {
      SCOPED_TRACE(isa + " " + shape.text());
      const auto ops = make_ops(isa, 2);
      Lab lab(*ops, shape, with_holes(shape, lengths), 1);
      lab.poison(NAN);
      lab.prefill(128, true);
      EXPECT_GT(lab.num_dropped, 10u) << "blocks were meant to go";
      for (std::size_t s = 0; s < 2; ++s) {
        for (std::uint32_t p = 0; p < lengths[s]; p += p % 256 < 2 ? 1 : 31) {
          const std::vector<float> row = contract_f32(shape, lab.sequences()[s], p);
          ASSERT_TRUE(same_bits(std::span(lab.out()[s]).subspan(p * row.size(), row.size()), row)) << "position " << p;
        }
      }
    }
  }
}

TEST(AttendWithHoles, EqualsDenseAttentionOverWhatIsKeptInF64) {
  const std::uint32_t lengths[] = {1100};
  for (const LabShape& shape : holed_shapes()) {
    SCOPED_TRACE(shape.text());
    const auto ops = make_ops("auto", 1);
    Lab lab(*ops, shape, with_holes(shape, lengths), 1);
    lab.prefill(256, true);
    for (std::uint32_t p = 0; p < lengths[0]; p += 37) {
      double tolerance = 0;
      const std::vector<double> dense = dense_f64(shape, lab.sequences()[0], p, &tolerance);
      for (std::size_t i = 0; i < dense.size(); ++i) {
        ASSERT_NEAR(lab.out()[0][p * dense.size() + i], dense[i], tolerance) << "position " << p;
      }
    }
  }
}

TEST(AttendWithHoles, IsTheSameForAnyChunksThreadsAndCompany) {
  const std::uint32_t lengths[] = {700, 40, 600};
  for (const LabShape& shape : holed_shapes()) {
    SCOPED_TRACE(shape.text());
    const auto run = [&](std::uint32_t threads, std::uint32_t chunk, bool together) {
      const auto ops = make_ops("auto", threads, 800);
      Lab lab(*ops, shape, with_holes(shape, lengths), 1);
      lab.poison(NAN);
      lab.prefill(chunk, together);
      return lab.out();
    };
    const auto expected = run(1, 256, false);
    expect_same(run(1, 1, true), expected);
    expect_same(run(2, 16, true), expected);
    expect_same(run(3, 128, true), expected);
  }
}

TEST(AttendWithHoles, WithoutAnyHoleIsAttention) {
  const std::uint32_t lengths[] = {600};
  for (const LabShape& shape : holed_shapes()) {
    SCOPED_TRACE(shape.text());
    auto sequences = lab_sequences(shape, lengths, 77);
    sequences[0].kept = {{}, {0xffff}, {0xffff, 0xffff}};
    const auto ops = make_ops("auto", 1);
    Lab lab(*ops, shape, sequences, 1);
    lab.prefill(64, true);
    expect_same(lab.out(), prefilled("auto", 1, shape, lengths, 512));
  }
}

TEST(Attend, BlocksBelowEveryWindowNeedNotBeThere) {
  const LabShape shape{4, 2, 16, 16, KvType::kF32, 100};
  const std::uint32_t lengths[] = {400};
  const auto expected = prefilled("auto", 1, shape, lengths, 512);
  const auto ops = make_ops("auto", 1);
  Lab lab(*ops, shape, lab_sequences(shape, lengths, 77), 1);
  for (std::uint32_t p = 0; p < 400; p += 10) {
    std::vector<BlockId> table = lab.table(0);
    for (std::uint32_t b = 0; (b + 1) * 16 + 99 <= p; ++b) {
      if (table[b].value != ~0u) ops->poison_block(lab.cache(), table[b]);
      table[b] = BlockId(~0u);
    }
    lab.set_table(0, table);
    const LabRows rows[] = {{0, p, 10}};
    lab.step(rows);
  }
  EXPECT_EQ(std::count(lab.table(0).begin(), lab.table(0).end(), BlockId(~0u)), 18);
  expect_same(lab.out(), expected);
}

TEST(AttendDeathTest, ABlockThatARowSeesMustBeThere) {
  const LabShape shape{4, 2, 16, 16, KvType::kF32, 100};
  const std::uint32_t lengths[] = {400};
  const auto ops = make_ops("auto", 1);
  Lab lab(*ops, shape, lab_sequences(shape, lengths, 77), 1);
  lab.prefill(200, true);
  std::vector<BlockId> table = lab.table(0);
  table[1] = BlockId(~0u);
  lab.set_table(0, table);
  const LabRows passed[] = {{0, 131, 1}};  // sees 32..
  lab.step(passed);
  const LabRows seen[] = {{0, 130, 1}};  // sees 31..
  EXPECT_DEATH(lab.step(seen), "CHECK failed");
}

const std::vector<LabShape>& voting_shapes() {
  static const std::vector<LabShape> all = {{4, 2, 16, 16, KvType::kF32, 0},
                                            {3, 1, 18, 32, KvType::kBF16, 100},
                                            {4, 2, 18, 16, KvType::kInt8, 0},
                                            {4, 2, 18, 16, KvType::kInt4, 0},
                                            {.num_kv_heads = 1, .head_dim = 44, .type = KvType::kInt8, .latent = 34}};
  return all;
}

struct Voted {
  std::vector<std::vector<float>> out;
  std::vector<std::vector<std::uint64_t>> accumulated_scores;
};

Voted voted(const std::string& isa, std::uint32_t threads, const LabShape& shape, std::uint32_t chunk, bool together,
            bool holes) {
  const std::uint32_t lengths[] = {560, 33, 300};
  const auto ops = make_ops(isa, threads, 1200);
  auto sequences = holes ? with_holes(shape, lengths) : lab_sequences(shape, lengths, 77);
  sequences[0].accumulated_scores = sequences[2].accumulated_scores = true;
  Lab lab(*ops, shape, sequences, 1);
  lab.poison(NAN);
  lab.prefill(chunk, together);
  return {lab.out(), lab.accumulated_scores()};
}

TEST(AttendAccumulatedScores, AreTheProbabilitiesOfEachGroupOverRowsAndHeads) {
  for (const bool holes : {false, true}) {
    for (const LabShape& shape : voting_shapes()) {
      SCOPED_TRACE(shape.text());
      const std::uint32_t lengths[] = {560, 33, 300};
      const auto sequences = holes ? with_holes(shape, lengths) : lab_sequences(shape, lengths, 77);
      const Voted got = voted("auto", 2, shape, 128, true, holes);
      EXPECT_TRUE(got.accumulated_scores[1].empty()) << "did not ask";
      for (const std::size_t s : {0, 2}) {
        std::vector<double> expected((lengths[s] + 15) / 16);
        double tolerance = 0;
        for (std::uint32_t p = 0; p < lengths[s]; ++p) {
          double of_output = 0;
          dense_f64(shape, sequences[s], p, &of_output, &expected);
          tolerance += of_output * shape.num_heads;  // values are up to 2: what it allows an output covers a weight
        }
        ASSERT_EQ(got.accumulated_scores[s].size(), expected.size());
        for (std::size_t group = 0; group < expected.size(); ++group) {
          EXPECT_NEAR(static_cast<double>(got.accumulated_scores[s][group]) * 0x1p-32, expected[group], tolerance)
              << group;
        }
      }
    }
  }
}

TEST(AttendAccumulatedScores, DoNotDependOnChunksThreadsCompanyOrInstructionSetAndChangeNoOutput) {
  const std::uint32_t lengths[] = {560, 33, 300};
  for (const LabShape& shape : voting_shapes()) {
    SCOPED_TRACE(shape.text());
    const Voted expected = voted("auto", 1, shape, 256, false, false);
    expect_same(expected.out, prefilled("auto", 1, shape, lengths, 256));
    for (const std::uint32_t chunk : {1u, 7u, 560u}) {
      const Voted got = voted("auto", 1 + chunk % 3, shape, chunk, true, false);
      EXPECT_EQ(got.accumulated_scores, expected.accumulated_scores) << chunk;
      expect_same(got.out, expected.out);
    }
    for (const std::string& isa : supported_isas()) {
      EXPECT_EQ(voted(isa, 2, shape, 200, true, false).accumulated_scores, expected.accumulated_scores) << isa;
    }
    const Voted holed = voted("auto", 1, shape, 256, false, true);
    EXPECT_NE(holed.accumulated_scores, expected.accumulated_scores);
    EXPECT_EQ(voted("auto", 3, shape, 16, true, true).accumulated_scores, holed.accumulated_scores);
  }
}

TEST(Attend, QueryHeadsReadTheKvHeadOfTheirGroup) {
  // v of kv head g is g everywhere: whatever the weights, head h must answer h / (H / G).
  for (const LabShape shape : {LabShape{6, 3, 8, 16, KvType::kF32, 0}, LabShape{14, 2, 64, 16, KvType::kBF16, 0}}) {
    const std::uint32_t lengths[] = {20};
    auto sequences = lab_sequences(shape, lengths, 7);
    for (std::size_t p = 0; p < 20; ++p) {
      float* v = sequences[0].rows.data() + p * shape.width() + shape.out_width() + shape.kv_width();
      for (std::size_t i = 0; i < shape.kv_width(); ++i) v[i] = static_cast<float>(i / shape.head_dim);
    }
    const auto ops = make_ops("auto", 1);
    Lab lab(*ops, shape, sequences, 1);
    lab.prefill(6, true);
    for (std::size_t i = 0; i < lab.out()[0].size(); ++i) {
      const std::size_t head = i % shape.out_width() / shape.head_dim;
      ASSERT_NEAR(lab.out()[0][i], static_cast<float>(head / (shape.num_heads / shape.num_kv_heads)), 20 * 0x1p-23);
    }
  }
}

TEST(Attend, RaggedDecodeMixedWithPrefillEqualsEachAlone) {
  const LabShape shape{4, 2, 64, 16, KvType::kBF16, 0};
  const std::uint32_t lengths[] = {33, 259, 16, 48};
  const auto alone = prefilled("auto", 1, shape, lengths, 512, false);
  const auto ops = make_ops("auto", 2);
  Lab lab(*ops, shape, lab_sequences(shape, lengths, 77), 3);
  const LabRows first[] = {{0, 0, 30}, {1, 0, 256}};
  const LabRows second[] = {{0, 30, 1}, {1, 256, 1}, {2, 0, 15}, {3, 0, 20}};
  const LabRows third[] = {{3, 20, 28}, {2, 15, 1}, {1, 257, 2}, {0, 31, 2}};
  lab.step(first);
  lab.step(second);
  lab.step(third);
  expect_same(lab.out(), alone);
}

TEST(Attend, CopiedBlocksServeAsTheOriginals) {
  const LabShape shape{4, 2, 64, 16, KvType::kBF16, 0};
  const std::uint32_t lengths[] = {40, 48};
  const auto ops = make_ops("auto", 1);
  const auto sequences = lab_sequences(shape, lengths, 8);
  Lab lab(*ops, shape, sequences, 1);
  lab.prefill(64, true);
  const std::vector<float> before = lab.out()[0];

  // Sequence 0 moves into the blocks of sequence 1, and its last row is fed again.
  std::vector<backend::BlockCopy> copies;
  for (std::size_t i = 0; i < 3; ++i) copies.push_back({lab.table(0)[i], lab.table(1)[i]});
  ops->copy_blocks(lab.cache(), copies);
  lab.set_table(0, lab.table(1));
  const LabRows last[] = {{0, 39, 1}};
  lab.step(last);
  EXPECT_TRUE(same_bits(lab.out()[0], before));
}

}  // namespace
}  // namespace quire::cpu::test::attention_test
