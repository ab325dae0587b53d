// rope_store and attend of every kind: norms of heads, partial rotation, NoPE, scaled q, soft caps, shared K and V.
#include "tests/core/cpu/op_kinds.h"
#include "tests/support/cases.h"

namespace quire::cpu::test::attention_kinds_test {
namespace {

TEST(RopeStoreKinds, EqualTheirEquationsBitForBitOnEveryInstructionSet) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 2);
    for (const AttentionCase& c : attention_cases(KvType::kF32)) {
      SCOPED_TRACE(isa + ", " + c.text());
      EXPECT_TRUE(same_bits(attended(*ops, c).qkv, rows_by_equation(c, random_qkv(c))));
    }
  }
}

// The sequence as the lab knows it, after rope_store.
LabSequence stored_sequence(const AttentionCase& c) {
  LabSequence sequence;
  sequence.length = c.rows;
  sequence.rows = rows_by_equation(c, random_qkv(c));
  sequence.stored = sequence.rows;
  for (std::size_t at = 0; at < sequence.stored.size(); at += c.shape.head_dim) {
    if (at % c.shape.width() < c.shape.q_width()) continue;
    std::ranges::copy(as_stored(c.shape.type, std::span(sequence.rows).subspan(at, c.shape.head_dim)),
                      sequence.stored.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return sequence;
}

TEST(RopeStoreKinds, StoreWhatAttentionOverItsEquationsSees) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 2);
    for (const KvType type : {KvType::kF32, KvType::kBF16, KvType::kFp8, KvType::kInt8}) {
      for (const AttentionCase& c : attention_cases(type)) {
        SCOPED_TRACE(isa + ", " + c.text());
        const LabSequence sequence = stored_sequence(c);
        const std::vector<float> out = attended(*ops, c).out;
        for (std::uint32_t p = 0; p < c.rows; ++p) {
          const std::vector<float> row = contract_f32(c.shape, sequence, p);
          ASSERT_TRUE(same_bits(std::span(out).subspan(p * row.size(), row.size()), row)) << "position " << p;
        }
      }
    }
  }
}

TEST(SharedKeysAndValues, AreReadByALayerThatStoresNoneAndStayAsTheyWere) {
  const auto ops = make_ops("auto", 2);
  for (const KvType type : {KvType::kF32, KvType::kBF16, KvType::kFp8, KvType::kInt8}) {
    for (const AttentionCase& c : attention_cases(type)) {
      SCOPED_TRACE(c.text());
      const Attended result = attended(*ops, c);
      EXPECT_TRUE(same_bits(result.shared_out, result.out));
      for (std::size_t t = 0; t < c.rows; ++t) {
        EXPECT_TRUE(same_bits(std::span(result.q).subspan(t * c.shape.q_width(), c.shape.q_width()),
                              std::span(result.qkv).subspan(t * c.shape.width(), c.shape.q_width())));
      }
      EXPECT_TRUE(result.same_cache);
    }
  }
}

// int4 keeps the rows of a group until its last one: whole groups, and a group that is not.
TEST(RopeStoreKinds, InInt4EqualTheirEquationsAndAttentionOverThem) {
  const auto ops = make_ops("auto", 2);
  for (AttentionCase c : attention_cases(KvType::kInt4)) {
    SCOPED_TRACE(c.text());
    c.shares = false;
    const Attended result = attended(*ops, c);
    EXPECT_TRUE(same_bits(result.qkv, rows_by_equation(c, random_qkv(c))));
    const LabSequence sequence = stored_sequence(c);
    for (std::uint32_t p = 0; p < 16; ++p) {  // rows that read their own group alone
      const std::vector<float> row = contract_f32(c.shape, sequence, p);
      ASSERT_TRUE(same_bits(std::span(result.out).subspan(p * row.size(), row.size()), row)) << "position " << p;
    }
  }
}

const std::vector<LabShape>& finished_shapes() {
  static const std::vector<LabShape> all = {
      {4, 2, 16, 16, KvType::kF32, 0, 1.0f},
      {4, 2, 64, 16, KvType::kBF16, 0, 50.0f},
      {3, 1, 18, 32, KvType::kFp8, 100, 0.5f},
      {4, 1, 18, 16, KvType::kInt8, 0, 2.0f},
      {4, 2, 16, 32, KvType::kInt4, 0, 1.0f},
      {2, 2, 18, 32, KvType::kInt4, 100, 30.0f},
      {14, 2, 64, 32, KvType::kF32, 300, 0.3f},
      {4, 4, 16, 16, KvType::kF32, 0, 0.0f, LabBias::kDistance},
      {3, 1, 18, 16, KvType::kBF16, 100, 2.0f, LabBias::kDistance},
      {4, 2, 16, 32, KvType::kInt4, 0, 0.0f, LabBias::kDistance},
      {4, 4, 64, 16, KvType::kBF16, 0, 0.0f, LabBias::kInBf16},
      {3, 1, 18, 16, KvType::kInt8, 0, 1.0f, LabBias::kInBf16},
  };
  return all;
}

std::vector<LabSequence> sequences_of(const LabShape& shape, bool with_holes) {
  const std::uint32_t lengths[] = {3, 300, 530};
  std::vector<LabSequence> sequences = lab_sequences(shape, lengths, 77);
  for (LabSequence& sequence : sequences) {
    if (!with_holes) continue;
    sequence.kept.assign((sequence.length + 255) / 256, {});
    for (std::size_t span = 1; span < sequence.kept.size(); ++span) sequence.kept[span].assign(span, 0x2125);
  }
  return sequences;
}

std::vector<std::vector<float>> run_lab(const std::string& isa, const LabShape& shape, std::uint32_t chunk,
                                        bool with_holes = false) {
  const auto ops = make_ops(isa, 2, 1200);
  Lab lab(*ops, shape, sequences_of(shape, with_holes), 1);
  lab.poison(NAN);
  lab.prefill(chunk, /*together=*/true);
  return lab.out();
}

TEST(CapsAndBiases, OfScoresEqualTheContractBitForBitOnEveryInstructionSet) {
  constexpr std::uint32_t kStride = quire::testing::kSanitized ? 290 : 29;
  for (const std::string& isa : supported_isas()) {
    for (const LabShape& shape : finished_shapes()) {
      for (const bool with_holes : {false, true}) {
        SCOPED_TRACE(isa + " " + shape.text() + (with_holes ? " with holes" : ""));
        const auto out = run_lab(isa, shape, 256, with_holes);
        const auto sequences = sequences_of(shape, with_holes);
        for (std::size_t s = 0; s < out.size(); ++s) {
          for (std::uint32_t p = 0; p < sequences[s].length; p += p < 3 ? 1 : kStride) {
            const std::vector<float> row = contract_f32(shape, sequences[s], p);
            ASSERT_TRUE(same_bits(std::span(out[s]).subspan(p * row.size(), row.size()), row)) << s << ", " << p;
          }
        }
      }
    }
  }
}

TEST(CapsAndBiases, OfScoresAreCloseToF64AndDoNotDependOnChunks) {
  for (const LabShape& shape : finished_shapes()) {
    SCOPED_TRACE(shape.text());
    const auto out = run_lab("auto", shape, 256);
    const auto sequences = sequences_of(shape, false);
    for (std::size_t s = 0; s < out.size(); ++s) {
      for (std::uint32_t p = 0; p < sequences[s].length; p += p < 3 ? 1 : 37) {
        double tolerance = 0;
        const std::vector<double> dense = dense_f64(shape, sequences[s], p, &tolerance);
        for (std::size_t i = 0; i < dense.size(); ++i) {
          ASSERT_NEAR(out[s][p * dense.size() + i], dense[i], tolerance) << s << ", " << p;
        }
      }
    }
    const auto chunked = run_lab("auto", shape, 19);
    for (std::size_t s = 0; s < out.size(); ++s) EXPECT_TRUE(same_bits(chunked[s], out[s]));
  }
}

TEST(CapsAndBiases, AreInTheAccumulatedScores) {
  for (const KvType type : backend::kAllKvTypes) {
    const LabShape shape{2, 1, 16, 16, type, 0, 0.8f, LabBias::kDistance};
    SCOPED_TRACE(shape.text());
    const std::uint32_t lengths[] = {300};
    auto sequences = lab_sequences(shape, lengths, 77);
    sequences[0].accumulated_scores = true;
    const auto ops = make_ops("auto", 2);
    Lab lab(*ops, shape, sequences, 1);
    lab.prefill(100, /*together=*/true);
    std::vector<double> expected(19);
    double tolerance = 0;
    for (std::uint32_t p = 0; p < 300; ++p) {
      double of_row = 0;
      dense_f64(shape, sequences[0], p, &of_row, &expected);
      tolerance += of_row;
    }
    ASSERT_EQ(lab.accumulated_scores()[0].size(), expected.size());
    for (std::size_t group = 0; group < expected.size(); ++group) {
      EXPECT_NEAR(static_cast<double>(lab.accumulated_scores()[0][group]) * 0x1p-32, expected[group], tolerance);
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::attention_kinds_test
