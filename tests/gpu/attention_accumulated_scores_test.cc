// Accumulated scores: the CPU's from the plain kernel, and from the tensor cores what their weights come to, however
// rows are dealt.
#include <gtest/gtest.h>

#include "tests/gpu/attention_lab.h"

namespace quire::gpu::test::attention_accumulated_scores_test {
namespace {

struct Voted {
  std::vector<std::vector<float>> out;
  std::vector<std::vector<std::uint64_t>> accumulated_scores;
};

constexpr std::uint32_t kLengths[] = {262, 9, 20};

Voted voted(backend::Ops& ops, const LabShape& shape, std::span<const std::uint32_t> lengths, std::uint32_t chunk,
            bool together, bool accumulated_scores = true) {
  auto sequences = lab_sequences(shape, lengths, 77);
  sequences.front().accumulated_scores = sequences.back().accumulated_scores = accumulated_scores;
  Lab lab(ops, shape, std::move(sequences), 1);
  lab.prefill(chunk, together);
  return {lab.out(), lab.accumulated_scores()};
}

TEST(GpuAccumulatedScores, OfThePlainKernelAreTheCpus) {
  const LabShape shape{2, 1, 8, 16, KvType::kF32, 0};
  const std::uint32_t lengths[] = {30, 5, 17};
  const auto cpu = make_ops("auto", 1);
  const auto gpu = simulated();
  EXPECT_EQ(voted(*gpu, shape, lengths, 16, true).accumulated_scores,
            voted(*cpu, shape, lengths, 16, true).accumulated_scores);
}

TEST(GpuAccumulatedScores, DoNotDependOnChunksOrCompanyAndChangeNoOutput) {
  for (const LabShape& shape : {LabShape{2, 1, 16, 16, KvType::kBF16, 0}, LabShape{3, 1, 18, 32, KvType::kInt8, 50},
                                LabShape{2, 1, 16, 16, KvType::kInt4, 0}}) {
    SCOPED_TRACE(shape.text());
    const auto ops = simulated();
    const Voted whole = voted(*ops, shape, kLengths, 262, false);
    EXPECT_TRUE(whole.accumulated_scores[1].empty()) << "did not ask";
    const Voted chunked = voted(*ops, shape, kLengths, 64, true);
    EXPECT_EQ(chunked.accumulated_scores, whole.accumulated_scores);
    const Voted none = voted(*ops, shape, kLengths, 64, true, false);
    for (std::size_t s = 0; s < whole.out.size(); ++s) {
      EXPECT_TRUE(same_bits(chunked.out[s], whole.out[s]));
      EXPECT_TRUE(same_bits(none.out[s], whole.out[s]));
    }
  }
}

TEST(GpuAccumulatedScores, AreTheProbabilitiesOfEachGroupOverRowsAndHeads) {
  for (const KvType type : {KvType::kBF16, KvType::kFp8, KvType::kInt8, KvType::kInt4}) {
    const LabShape shape{2, 1, 16, 16, type, 0};
    SCOPED_TRACE(shape.text());
    const std::uint32_t lengths[] = {40};
    const auto ops = simulated();
    const Voted got = voted(*ops, shape, lengths, 13, true);
    const auto sequences = lab_sequences(shape, lengths, 77);
    std::vector<double> expected(3);
    double tolerance = 0;
    for (std::uint32_t p = 0; p < 40; ++p) {
      double of_f32 = 0;
      dense_f64(shape, sequences[0], p, &of_f32, &expected);
      tolerance += tiles_tolerance(shape, sequences[0], p, of_f32);  // as in attention_test.cc of the CPU
    }
    ASSERT_EQ(got.accumulated_scores[0].size(), expected.size());
    double sum = 0;
    for (std::size_t group = 0; group < expected.size(); ++group) {
      EXPECT_NEAR(static_cast<double>(got.accumulated_scores[0][group]) * 0x1p-32, expected[group], tolerance) << group;
      sum += static_cast<double>(got.accumulated_scores[0][group]) * 0x1p-32;
    }
    EXPECT_NEAR(sum, 40.0 * 2, 40 * 2 * 16 * 0x1p-23) << "a row's accumulated_scores add up to one for each head";
  }
}

}  // namespace
}  // namespace quire::gpu::test::attention_accumulated_scores_test
