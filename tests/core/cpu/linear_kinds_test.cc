// linear() with norms, scales, activations, soft caps and lists of weights equals its composition, bit for bit.
#include "tests/core/cpu/linear_kinds.h"

namespace quire::cpu::test::linear_kinds_test {
namespace {

void expect_composition(const std::string& isa, std::uint32_t threads, std::span<const LinearCase> cases) {
  const auto ops = make_ops(isa, threads);
  for (const LinearCase& c : cases) {
    EXPECT_TRUE(same_bits(run_case(*ops, c, How::kFused), run_case(*ops, c, How::kComposed)))
        << isa << ", " << threads << " threads, " << c.text();
  }
}

TEST(LinearKinds, WithEveryNeighbourEqualsItsCompositionBitForBit) {
  for (const std::string& isa : supported_isas()) {
    for (const WeightKind kind : {kF32, kBf16, kInt8}) {
      for (const std::uint32_t rows : {1u, 19u}) expect_composition(isa, 3, neighbour_cases(kind, rows));
    }
  }
}

TEST(LinearKinds, OfSeveralWeightsEqualsItsCompositionBitForBit) {
  for (const std::string& isa : supported_isas()) {
    for (const std::uint32_t rows : {1u, 19u}) expect_composition(isa, 2, list_cases(kF32, kBf16, kInt8, rows));
  }
}

// Sizes in which the team has something to share.
TEST(LinearKinds, IsTheSameForAnyNumberOfThreads) {
  std::vector<LinearCase> cases;
  for (const LinearCase& small : neighbour_cases(kBf16, 40)) {
    cases.push_back(small);
    cases.back().inputs *= 8;
    cases.back().outputs[0] *= 8;
  }
  std::vector<std::vector<float>> expected;
  const auto alone = make_ops("auto", 1);
  for (const LinearCase& c : cases) expected.push_back(run_case(*alone, c, How::kComposed));
  for (const std::uint32_t threads : {1u, 2u, 5u}) {
    const auto ops = make_ops("auto", threads);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      EXPECT_TRUE(same_bits(run_case(*ops, cases[i], How::kFused), expected[i])) << threads << " " << cases[i].text();
    }
  }
}

TEST(LinearKinds, OfSeveralWeightsGivesEachOnesOutputsSideBySide) {
  const auto ops = make_ops("auto", 2);
  Random random(1);
  const std::vector<float> x = random.floats(7 * 40);
  std::vector<std::unique_ptr<backend::Weight>> weights;
  weights.push_back(pack(*ops, random_matrix(random, 16, 40, Format::kF32)));
  weights.push_back(pack(*ops, random_matrix(random, 5, 40, Format::kBF16), Format::kInt8));
  weights.push_back(pack(*ops, random_matrix(random, 33, 40, Format::kBF16), random.floats(33)));
  const backend::Weight* list[] = {weights[0].get(), weights[1].get(), weights[2].get()};
  const auto in = buffer_of(*ops, x, 7);
  const auto out = ops->make_buffer(7, 54);
  const OwnedBatch batch = plain_rows(7);
  ops->begin(batch.view());
  ops->linear(*in, backend::WeightList(list), 7, *out);
  const std::vector<float> all = read(*ops, *out, 7);
  std::size_t column = 0;
  for (const backend::Weight* weight : list) {
    const std::vector<float> alone = run_linear(*ops, x, *weight, 7);
    for (std::size_t t = 0; t < 7; ++t) {
      EXPECT_TRUE(same_bits(std::span(all).subspan(t * 54 + column, weight->n()),
                            std::span(alone).subspan(t * weight->n(), weight->n())))
          << "columns from " << column << ", row " << t;
    }
    column += weight->n();
  }
}

}  // namespace
}  // namespace quire::cpu::test::linear_kinds_test
