// Norms, activations, sums, soft caps, attention and linear layers of every kind on the simulated GPU: the CPU's bits
// wherever their equations are the same, and for bf16 those of the GPU's own plain ops.
#include "tests/core/cpu/linear_kinds.h"
#include "tests/gpu/attention_lab.h"

namespace quire::gpu::test::gpu_kinds_test {
namespace {

using backend::Ops;

TEST(GpuKinds, OfRowsHaveTheBitsOfTheCpu) {
  for (const std::uint32_t width : {1u, 15u, 16u, 17u, 257u}) {
    SCOPED_TRACE(width);
    expect_same_bits([&](Ops& ops) { return numbers_of_row_ops(ops, width); });
  }
}

TEST(GpuKinds, OfAttentionOverF32HaveTheBitsOfTheCpu) {
  for (const AttentionCase& c : attention_cases(KvType::kF32)) {
    SCOPED_TRACE(c.text());
    expect_same_bits([&](Ops& ops) { return numbers_of(attended(ops, c)); });
  }
}

// Heads whose attention is the plain kernel's in every type.
TEST(GpuKinds, OfAttentionOfManyDimensionsHaveTheBitsOfTheCpu) {
  for (const KvType type : backend::kAllKvTypes) {
    AttentionCase c{.shape = {1, 1, 258, 16, type, 0, 0.9f}, .q = HeadVectors::kShared, .half = 20, .rows = 18};
    c.shares = type != KvType::kInt4;
    SCOPED_TRACE(c.text());
    expect_same_bits([&](Ops& ops) { return numbers_of(attended(ops, c)); });
  }
}

// The rows that rope_store leaves are the CPU's; attention goes through the tensor cores.
TEST(GpuKinds, OfRopeStoreHaveTheBitsOfTheCpuInEveryTypeOfCache) {
  for (const KvType type : {KvType::kBF16, KvType::kFp8, KvType::kInt8, KvType::kInt4}) {
    for (AttentionCase c : attention_cases(type)) {
      c.shares = type != KvType::kInt4;
      SCOPED_TRACE(c.text());
      const Attended got = attended(*simulated(), c);
      EXPECT_TRUE(same_bits(got.qkv, rows_by_equation(c, random_qkv(c))));
      EXPECT_TRUE(got.same_cache);
      EXPECT_TRUE(!c.shares || same_bits(got.shared_out, got.out));
    }
  }
}

void expect_cpu_on_gpu(std::span<const LinearCase> cases) {
  const auto cpu = make_ops("auto", 1);
  const auto gpu = simulated();
  for (const LinearCase& c : cases) {
    EXPECT_TRUE(same_bits(run_case(*gpu, c, How::kFused), run_case(*cpu, c, How::kComposed))) << c.text();
  }
}

TEST(GpuKinds, OfLinearLayersInF32AndF16HaveTheBitsOfTheCpu) {
  for (const WeightKind kind : {kF32, kF16}) expect_cpu_on_gpu(neighbour_cases(kind, 5));
  expect_cpu_on_gpu(list_cases(kF32, kF16, kF32, 5));
}

void expect_composition(std::span<const LinearCase> cases) {
  const auto ops = simulated();
  const auto other = simulated(2);
  for (const LinearCase& c : cases) {
    EXPECT_TRUE(same_bits(run_case(*ops, c, How::kFused), run_case(*other, c, How::kComposed))) << c.text();
  }
}

TEST(GpuKinds, OfLinearLayersInBf16AreTheirCompositions) {
  expect_composition(neighbour_cases(kBf16, 3));
  expect_composition(list_cases(kBf16, kF32, kInt8, 3));
}

// Kernels of few rows and of many end their products in places of their own.
TEST(GpuKinds, OfLinearLayersOfEveryTypeAndNumberOfRowsAreTheirCompositions) {
  for (const std::optional<Format> quantize : std::initializer_list<std::optional<Format>>{
           std::nullopt, Format::kInt8, Format::kInt4, Format::kW8A8, Format::kFp8}) {
    for (const std::uint32_t rows : {2u, 40u, 130u}) {
      LinearCase c{.weights = {{Format::kBF16, quantize}}, .outputs = {64}, .rows = rows, .before = NormChoice::kRms};
      std::vector<LinearCase> cases(4, c);
      cases[0].then = Then::kAdd, cases[0].scale = 0.22f;
      cases[1].then = Then::kActivate, cases[1].activation = backend::Activation::kGeluTanh;
      cases[2].then = Then::kActivate, cases[2].activation = backend::Activation::kRelu2;
      cases[3].then = Then::kActivate, cases[3].activation = backend::Activation::kGelu;
      expect_composition(cases);
    }
  }
}

const std::vector<LabShape>& finished_shapes() {
  static const std::vector<LabShape> all = {
      {4, 2, 16, 16, KvType::kBF16, 0, 1.0f},
      {3, 1, 18, 32, KvType::kBF16, 20, 30.0f},
      {9, 1, 16, 32, KvType::kFp8, 5, 0.5f},
      {4, 2, 16, 16, KvType::kInt8, 0, 0.8f},
      {4, 2, 16, 16, KvType::kInt4, 0, 1.0f},
      {3, 1, 18, 32, KvType::kInt4, 20, 0.6f},
      {4, 4, 16, 16, KvType::kBF16, 0, 0.0f, LabBias::kDistance},
      {9, 1, 16, 32, KvType::kFp8, 5, 0.5f, LabBias::kDistance},
      {4, 2, 16, 16, KvType::kInt4, 0, 0.0f, LabBias::kInBf16},
      {3, 1, 18, 32, KvType::kInt8, 20, 0.0f, LabBias::kInBf16},
  };
  return all;
}

std::span<const float> row_at(const std::vector<float>& out, const LabShape& shape, std::uint32_t p) {
  return std::span(out).subspan(std::size_t{p} * shape.q_width(), shape.q_width());
}

TEST(GpuCapsAndBiases, EqualTheTilesContractBitForBitWhateverTheOrderOfThreads) {
  const std::uint32_t lengths[] = {1, 21};
  for (const LabShape& shape : finished_shapes()) {
    SCOPED_TRACE(shape.text());
    const auto sequences = lab_sequences(shape, lengths, 77);
    for (const std::uint64_t seed : {1u, 2u}) {
      const auto ops = simulated(seed);
      Lab lab(*ops, shape, sequences, 1);
      lab.prefill(seed == 1 ? 64 : 7, /*together=*/true);
      for (std::size_t s = 0; s < sequences.size(); ++s) {
        for (std::uint32_t p = 0; p < lengths[s]; ++p) {
          ASSERT_TRUE(as_contract(row_at(lab.out()[s], shape, p), tiles_contract(shape, sequences[s], p))) << p;
        }
      }
    }
  }
}

TEST(GpuCapsAndBiases, AreAsCloseToF64AsRoundingsAllowOverSpansAndHoles) {
  const std::uint32_t lengths[] = {3, 300};
  for (const KvType type : {KvType::kBF16, KvType::kFp8, KvType::kInt8, KvType::kInt4}) {
    for (const bool with_holes : {false, true}) {
      const LabShape shape{2, 1, 16, 16, type, 0, 0.9f, with_holes ? LabBias::kDistance : LabBias::kInBf16};
      SCOPED_TRACE(shape.text());
      const auto ops = simulated();
      auto sequences = lab_sequences(shape, lengths, 77);
      if (with_holes) punch_holes(sequences[1], 2);
      Lab lab(*ops, shape, sequences, 1);
      lab.prefill(256, /*together=*/true);
      for (std::size_t s = 0; s < sequences.size(); ++s) {
        for (std::uint32_t p = 0; p < lengths[s]; p += p < 3 ? 1 : 33) {
          double of_f32 = 0;
          const std::vector<double> dense = dense_f64(shape, sequences[s], p, &of_f32);
          const double tolerance = tiles_tolerance(shape, sequences[s], p, of_f32);
          for (std::size_t i = 0; i < dense.size(); ++i) {
            ASSERT_NEAR(row_at(lab.out()[s], shape, p)[i], dense[i], tolerance) << s << ", " << p;
          }
        }
      }
    }
  }
}

TEST(GpuCapsAndBiases, AreInTheAccumulatedScores) {
  for (const KvType type : backend::kAllKvTypes) {
    const LabShape shape{2, 1, 16, 16, type, 0, 0.7f, LabBias::kDistance};
    SCOPED_TRACE(shape.text());
    const std::uint32_t lengths[] = {40};
    auto sequences = lab_sequences(shape, lengths, 77);
    sequences[0].accumulated_scores = true;
    const auto ops = simulated();
    Lab lab(*ops, shape, sequences, 1);
    lab.prefill(13, /*together=*/true);
    std::vector<double> expected(3);
    double tolerance = 0;
    for (std::uint32_t p = 0; p < 40; ++p) {
      double of_f32 = 0;
      dense_f64(shape, sequences[0], p, &of_f32, &expected);
      tolerance += type == KvType::kF32 ? of_f32 : tiles_tolerance(shape, sequences[0], p, of_f32);
    }
    ASSERT_EQ(lab.accumulated_scores()[0].size(), expected.size());
    for (std::size_t group = 0; group < expected.size(); ++group) {
      EXPECT_NEAR(static_cast<double>(lab.accumulated_scores()[0][group]) * 0x1p-32, expected[group], tolerance);
    }
  }
}

}  // namespace
}  // namespace quire::gpu::test::gpu_kinds_test
