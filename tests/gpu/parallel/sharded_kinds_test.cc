// Ops of every kind on two and four ranks: the bits of one GPU.
#include <cstring>
#include <iterator>

#include "gpu/parallel/sharded_ops.h"
#include "gpu/runtime/simulated_device.h"
#include "tests/core/cpu/linear_kinds.h"
#include "tests/support/cases.h"

namespace quire::gpu::sharded_kinds_test {
namespace {

using namespace cpu::test;
using backend::Ops;
using quire::testing::sampled;

std::unique_ptr<Ops> on_one() { return make_gpu_ops(make_simulated_device(), {.max_rows = 64}); }
std::unique_ptr<Ops> on_ranks(std::uint32_t ranks) {  // boxes shorter than most messages
  return make_sharded_ops(make_simulated_ranks(ranks, ranks), {.max_rows = 64}, {.box = 300});
}

TEST(ShardedKinds, OfRowsHaveTheBitsOfOneGpu) {
  for (const std::uint32_t width : {16u, 17u}) {
    const std::vector<float> expected = numbers_of_row_ops(*on_one(), width);
    for (const std::uint32_t ranks : {2u, 4u}) {
      EXPECT_TRUE(same_bits(numbers_of_row_ops(*on_ranks(ranks), width), expected)) << ranks << " ranks, " << width;
    }
  }
}

// Those whose kv heads divide by the ranks.
std::vector<AttentionCase> cases_of(std::uint32_t ranks, KvType type) {
  std::vector<AttentionCase> cases = attention_cases(type);
  std::erase_if(cases, [&](const AttentionCase& c) { return c.shape.num_kv_heads % ranks != 0; });
  for (AttentionCase& c : cases) c.shares = type != KvType::kInt4;
  return cases;
}

TEST(ShardedKinds, OfAttentionHaveTheBitsOfOneGpu) {
  for (const KvType type : sampled({KvType::kF32, KvType::kBF16, KvType::kInt8, KvType::kInt4})) {
    for (const std::uint32_t ranks : {2u, 4u}) {
      for (const AttentionCase& c : cases_of(ranks, type)) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, " + c.text());
        const Attended got = attended(*on_ranks(ranks), c);
        EXPECT_TRUE(same_bits(numbers_of(got), numbers_of(attended(*on_one(), c))));
        EXPECT_TRUE(got.same_cache);
      }
    }
  }
}

// Rows of a checkpoint's own codes are longer than their codes: the scale follows them.
TEST(ShardedKinds, OfStoredCodesHaveTheBitsOfOneGpu) {
  constexpr std::uint32_t kOutputs = 96;
  constexpr std::uint32_t kInputs = 256;
  Random random(9);
  for (const Format format : {Format::kInt8, Format::kFp8, Format::kW8A8, Format::kW8A8PerRow}) {
    const Format stored = format == Format::kFp8 ? format : Format::kInt8;
    Matrix w{kOutputs, kInputs, stored, {}, {}};
    for (std::uint32_t row = 0; row < kOutputs; ++row) {
      for (std::uint32_t i = 0; i < kInputs; ++i) w.bits.push_back(static_cast<std::uint8_t>(random.below(256) & 0xb7));
      const float scale = random.uniform(0.01f);
      std::uint8_t bytes[sizeof(scale)];
      std::memcpy(bytes, &scale, sizeof(scale));
      w.bits.insert(w.bits.end(), std::begin(bytes), std::end(bytes));
    }
    const std::vector<float> x = random.floats(std::size_t{5} * kInputs);
    const auto product = [&](std::unique_ptr<Ops> ops) {
      const backend::HostMatrix view = w.view();
      return run_linear(*ops, x, *ops->pack({&view, 1}, {}, format), 5);
    };
    const std::vector<float> expected = product(on_one());
    EXPECT_TRUE(same_bits(product(on_ranks(2)), expected)) << backend::name_of(format);
    EXPECT_TRUE(same_bits(product(on_ranks(4)), expected)) << backend::name_of(format);
  }
}

void expect_one_gpu(std::span<const LinearCase> cases) {
  const auto one = on_one();
  const auto two = on_ranks(2);
  const auto four = on_ranks(4);
  for (const LinearCase& c : cases) {
    SCOPED_TRACE(c.text());
    const bool stores = c.then == Then::kRopeStore;
    const std::vector<float> expected = run_case(*one, c, How::kComposed);
    EXPECT_TRUE(same_bits(run_case(*two, c, How::kFused), expected));
    if (stores && c.attention.shape.num_kv_heads % 4 != 0) continue;
    EXPECT_TRUE(same_bits(run_case(*four, c, How::kFused), expected)) << "4 ranks";
  }
}

TEST(ShardedKinds, OfLinearLayersHaveTheBitsOfOneGpu) {
  expect_one_gpu(neighbour_cases(kBf16, 3));
  expect_one_gpu(neighbour_cases(kF32, 3));
}

// Where every weight divides: those of a list are cut alike.
TEST(ShardedKinds, OfListsOfWeightsHaveTheBitsOfOneGpu) {
  std::vector<LinearCase> cases = list_cases(kBf16, kF32, kInt8, 5);
  std::erase_if(cases, [](const LinearCase& c) {
    return std::ranges::any_of(c.outputs, [](std::uint32_t n) { return n % 4 != 0; });
  });
  EXPECT_GT(cases.size(), 20u);
  expect_one_gpu(cases);
}

}  // namespace
}  // namespace quire::gpu::sharded_kinds_test
