// Mixtures of experts on the simulated GPU: the experts, weights, order and sums of the CPU bit for bit; products by
// expert with the bits of each expert's own layer, whatever the format, the rows of the others, and how many there are.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "gpu/gpu_ops.h"
#include "gpu/kernels/routes.h"
#include "gpu/parallel/sharded_ops.h"
#include "gpu/runtime/simulated_device.h"
#include "tests/core/cpu/blocks/plain_blocks.h"
#include "tests/core/cpu/op_kinds.h"
#include "tests/core/cpu/plain_quantised.h"

namespace quire::gpu::experts_test {
namespace {

using namespace cpu::test;
using backend::ExpertWeights;
using backend::Format;
using backend::Ops;
using backend::RouteRule;
using backend::RouteScore;
using backend::WeightList;

std::unique_ptr<Ops> simulated(std::uint64_t seed = 1) {
  return make_gpu_ops(make_simulated_device(seed), {.max_rows = 80});
}

struct Routed {
  std::vector<std::uint32_t> experts;
  std::vector<float> weights;
  bool operator==(const Routed&) const = default;
};

Routed routed(Ops& ops, const RouteRule& rule, const std::vector<float>& logits, std::uint32_t rows,
              std::span<const float> bias = {}, std::span<const float> scales = {}) {
  const auto buffer = buffer_of(ops, logits, rows);
  const auto routes = ops.make_routes(rows, rule.num_experts, rule.top_k);
  std::unique_ptr<backend::Vector> vectors[2];
  if (!bias.empty()) vectors[0] = ops.upload(bias);
  if (!scales.empty()) vectors[1] = ops.upload(scales);
  ops.route(*buffer, rule, {vectors[0].get(), vectors[1].get()}, rows, *routes);
  Routed out{std::vector<std::uint32_t>(std::size_t{rows} * rule.top_k),
             std::vector<float>(std::size_t{rows} * rule.top_k)};
  ops.read_routes(*routes, rows, out.experts, out.weights);
  return out;
}

std::vector<RouteRule> rules() {
  std::vector<RouteRule> out;
  for (const RouteScore score : {RouteScore::kSoftmax, RouteScore::kSigmoid, RouteScore::kLogit}) {
    for (const std::uint32_t experts : {1u, 2u, 7u, 16u, 33u, 64u, 128u, 512u}) {
      RouteRule rule{.num_experts = experts, .top_k = std::min(experts, 4u), .score = score};
      out.push_back(rule);
      rule.top_k = std::min(experts, 32u);
      rule.normed = true;
      rule.norm_eps = 1e-20f;
      rule.scale = 2.5f;
      out.push_back(rule);
    }
    for (const bool highest : {false, true}) {
      out.push_back({.num_experts = 64,
                     .top_k = 6,
                     .score = score,
                     .num_groups = 8,
                     .top_groups = 3,
                     .groups_by_highest = highest,
                     .normed = true,
                     .norm_least = 0.5f});
      out.push_back({.num_experts = 64,
                     .top_k = 1,
                     .score = score,
                     .num_groups = 64,
                     .top_groups = 5,
                     .groups_by_highest = highest});
    }
  }
  for (const float margin : {0.0f, 0.02f, 0.5f}) {
    out.push_back({.num_experts = 16, .top_k = 2, .score = RouteScore::kSparsemixer, .margin = margin});
  }
  return out;
}

TEST(GpuExperts, RoutesHaveTheBitsOfTheCpuForEveryRule) {
  const auto cpu = make_ops("auto", 1);
  const auto gpu = simulated();
  Random random(71);
  constexpr std::uint32_t kRows = 5;
  for (const RouteRule& rule : rules()) {
    std::vector<float> logits = random.floats(std::size_t{kRows} * rule.num_experts, 4.0f);
    // Equals, of which the lowest index is chosen; an infinity; a NaN, which is the highest of all.
    for (std::uint32_t i = 0; i < rule.num_experts; ++i) logits[rule.num_experts + i] = static_cast<float>(i % 3);
    logits[2 * rule.num_experts + rule.num_experts / 2] = -std::numeric_limits<float>::infinity();
    logits[3 * rule.num_experts + rule.num_experts / 2] = std::numeric_limits<float>::quiet_NaN();
    const bool is_plain = rule.score == RouteScore::kSparsemixer || rule.num_groups == 64;
    const std::vector<float> bias = is_plain ? std::vector<float>() : random.floats(rule.num_experts, 0.3f);
    const std::vector<float> scales = is_plain ? std::vector<float>() : random.floats(rule.num_experts, 2.0f);
    for (const bool has_vectors : {false, true}) {
      const auto of = [&](Ops& ops) {
        return has_vectors ? routed(ops, rule, logits, kRows, bias, scales) : routed(ops, rule, logits, kRows);
      };
      const Routed expected = of(*cpu);
      const Routed got = of(*gpu);
      const std::string what = std::to_string(static_cast<int>(rule.score)) + " " + std::to_string(rule.num_experts) +
                               " " + std::to_string(rule.top_k) + " groups " + std::to_string(rule.num_groups);
      EXPECT_EQ(got.experts, expected.experts) << what;
      for (std::size_t i = 0; i < got.weights.size(); ++i) {
        const bool both_nan = got.weights[i] != got.weights[i] && expected.weights[i] != expected.weights[i];
        ASSERT_TRUE(both_nan || bits_of(got.weights[i]) == bits_of(expected.weights[i])) << what << " at " << i;
      }
    }
  }
}

TEST(GpuExperts, TilesAreNeverMoreThanTheirBound) {
  Random random(72);
  for (int i = 0; i < 2000; ++i) {
    const auto experts = static_cast<std::uint32_t>(1 + random.below(40));
    const auto places = static_cast<std::uint32_t>(1 + random.below(100));
    std::vector<std::uint32_t> counts(experts);
    for (std::uint32_t place = 0; place < places; ++place) ++counts[random.below(1 + random.below(experts))];
    std::uint32_t tiles = 0;
    for (const std::uint32_t count : counts) tiles += (count + 7) / 8;
    ASSERT_LE(tiles, most_expert_tiles(experts, places)) << experts << " " << places;
  }
}

// Experts of a format, their outputs [n] of inputs [k].
struct Experts {
  Experts(Ops& ops, Format format, std::uint32_t count, std::uint32_t n, std::uint32_t k, bool in_columns = false) {
    Random random(73);
    for (std::uint32_t expert = 0; expert < count; ++expert) {
      const bool is_blocks = format.is_blocks();
      matrices.push_back(is_blocks ? random_blocks(random, backend::layout_of(format.blocks), n, k)
                                   : random_matrix(random, n, k, format == Format::kF32 ? format : Format::kBF16));
      backend::HostMatrix view = matrices.back().view();
      std::vector<std::uint32_t> columns(k);
      std::iota(columns.begin(), columns.end(), 0u);
      for (std::size_t i = k - 1; i > 0; --i) std::swap(columns[i], columns[random.below(i + 1)]);
      if (in_columns) view.columns = columns;
      const std::vector<float> bias = random.floats(n);
      const std::span<const float> biases(bias);
      weights.push_back(ops.pack({&view, 1}, {&biases, 1}, format));
    }
    for (const auto& weight : weights) lists.push_back(WeightList(*weight));
  }
  std::vector<Matrix> matrices;
  std::vector<std::unique_ptr<backend::Weight>> weights;
  std::vector<WeightList> lists;
};

constexpr std::uint32_t kExperts = 5;
constexpr std::uint32_t kTopK = 2;

// Logits by which expert 0 has every row, expert 4 none, and the others some.
std::vector<float> uneven_logits(std::uint32_t rows) {
  std::vector<float> logits;
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t expert = 0; expert < kExperts; ++expert) {
      logits.push_back(expert == 0 ? 9.0f : expert == 4 ? -9.0f : static_cast<float>((row * 7 + expert * 5) % 11));
    }
  }
  return logits;
}

struct Mixed {
  std::vector<float> products, activated, sums;
};

Mixed mixed(Ops& ops, const Experts& experts, const std::vector<float>& x, std::uint32_t rows,
            const backend::ThenActivate* like) {
  const RouteRule rule{.num_experts = kExperts, .top_k = kTopK};
  const std::uint32_t n = experts.lists.front().n();
  const std::uint32_t k = experts.matrices.front().k;
  const auto logits = buffer_of(ops, uneven_logits(rows), rows);
  const auto in = buffer_of(ops, x, rows);
  const auto routes = ops.make_routes(rows, kExperts, kTopK);
  const auto gathered = ops.make_buffer(rows * kTopK, k);
  const auto products = ops.make_buffer(rows * kTopK, n);
  const auto activated = ops.make_buffer(rows * kTopK, like != nullptr && like->gated ? n / 2 : n);
  const auto sums = ops.make_buffer(rows, n);
  ops.route(*logits, rule, {}, rows, *routes);
  ops.gather_by_expert(*in, *routes, rows, *gathered);
  Mixed out;
  if (like != nullptr) {
    backend::ThenActivate then = *like;
    then.out = activated.get();
    ops.linear_by_expert(*gathered, experts.lists, *routes, rows, *products, &then);
    out.activated = read(ops, *activated, rows * kTopK);
  } else {
    ops.linear_by_expert(*gathered, experts.lists, *routes, rows, *products);
    out.products = read(ops, *products, rows * kTopK);
    const auto shared = buffer_of(ops, Random(3).floats(std::size_t{rows} * n), rows);
    const auto gate = buffer_of(ops, Random(4).floats(rows), rows);
    ops.combine_experts(*products, *routes, backend::SharedExpert{shared.get(), gate.get()}, rows, *sums);
    out.sums = read(ops, *sums, rows);
  }
  return out;
}

TEST(GpuExperts, HaveTheBitsOfTheCpuInF32AndInWholeNumbers) {
  const auto cpu = make_ops("auto", 2);
  const auto gpu = simulated();
  for (const Format format : {Format::kF32, Format::kW8A8, Format::kW4A8, Format::of_blocks(BlockType::kNf4G64),
                              Format::of_blocks(BlockType::kQ4_K)}) {
    for (const std::uint32_t rows : {1u, 3u, 20u}) {
      const std::uint32_t k = 256;
      const std::vector<float> x = Random(rows).floats(std::size_t{rows} * k);
      const Experts on_cpu(*cpu, format, kExperts, 48, k);
      const Experts on_gpu(*gpu, format, kExperts, 48, k);
      const Mixed expected = mixed(*cpu, on_cpu, x, rows, nullptr);
      const Mixed got = mixed(*gpu, on_gpu, x, rows, nullptr);
      EXPECT_TRUE(same_bits(got.products, expected.products)) << backend::name_of(format) << " " << rows;
      EXPECT_TRUE(same_bits(got.sums, expected.sums)) << backend::name_of(format) << " " << rows;
      const backend::ThenActivate forms[] = {
          {nullptr, backend::Activation::kSilu, true},
          {nullptr, backend::Activation::kRelu2, false},
          {nullptr, backend::Activation::kSilu, true, {}, backend::Clamp{1.7f, 0.8f}}};
      for (const backend::ThenActivate& like : forms) {
        EXPECT_TRUE(
            same_bits(mixed(*gpu, on_gpu, x, rows, &like).activated, mixed(*cpu, on_cpu, x, rows, &like).activated))
            << backend::name_of(format) << " " << rows << " gated " << like.gated;
      }
    }
  }
}

// Every format: a row's product is that of its expert's layer alone, with columns too.
TEST(GpuExperts, MultiplyEachRowAsItsExpertsLayerWould) {
  std::vector<Format> formats = {Format::kBF16,
                                 Format::kInt8,
                                 Format::kFp8,
                                 Format::kInt4,
                                 Format::kW8A8PerRow,
                                 Format::of_blocks(BlockType::kFp8G128),
                                 Format::of_blocks(BlockType::kFp8G32)};
  for (const BlockLayout& layout : backend::block_layouts_of_files()) {
    formats.push_back(Format::of_blocks(layout.type, Activation::kInt8));
  }
  for (const Format format : formats) {
    for (const bool in_columns : {false, true}) {
      if (in_columns && !format.is_blocks()) continue;
      const auto gpu = simulated(2);
      constexpr std::uint32_t kRows = 11;
      const std::uint32_t k = 512;
      const std::vector<float> x = Random(5).floats(std::size_t{kRows} * k);
      const Experts experts(*gpu, format, kExperts, 32, k, in_columns);
      const Mixed got = mixed(*gpu, experts, x, kRows, nullptr);
      // The rows by expert, from the experts of each row.
      const Routed routes = routed(*gpu, {.num_experts = kExperts, .top_k = kTopK}, uneven_logits(kRows), kRows);
      std::size_t place = 0;
      for (std::uint32_t expert = 0; expert < kExperts; ++expert) {
        for (std::uint32_t row = 0; row < kRows; ++row) {
          const auto own = std::span(routes.experts).subspan(std::size_t{row} * kTopK, kTopK);
          if (std::ranges::find(own, expert) == own.end()) continue;
          const std::vector<float> alone(x.begin() + std::ptrdiff_t{row} * k, x.begin() + std::ptrdiff_t{row + 1} * k);
          ASSERT_TRUE(same_bits(std::span(got.products).subspan(place * 32, 32),
                                run_linear(*gpu, alone, *experts.weights[expert], 1)))
              << backend::name_of(format) << " columns " << in_columns << " expert " << expert << " row " << row;
          ++place;
        }
      }
      EXPECT_EQ(place, std::size_t{kRows} * kTopK);
    }
  }
}

// Outputs that two ranks share, and those that they do not, which every rank has.
TEST(GpuExperts, HaveTheBitsOfOneGpuOnRanks) {
  for (const Format format : {Format::kF32, Format::kBF16, Format::kW8A8, Format::of_blocks(BlockType::kFp8G128)}) {
    for (const std::uint32_t n : {64u, 33u}) {
      const auto one = simulated(4);
      const auto ranks = make_sharded_ops(make_simulated_ranks(2, 5), {.max_rows = 80}, {.box = 300});
      constexpr std::uint32_t kRows = 9;
      const std::vector<float> x = Random(7).floats(std::size_t{kRows} * 256);
      const Experts on_one(*one, format, kExperts, n, 256);
      const Experts on_ranks(*ranks, format, kExperts, n, 256);
      const Mixed expected = mixed(*one, on_one, x, kRows, nullptr);
      const Mixed got = mixed(*ranks, on_ranks, x, kRows, nullptr);
      EXPECT_TRUE(same_bits(got.products, expected.products)) << backend::name_of(format) << " " << n;
      EXPECT_TRUE(same_bits(got.sums, expected.sums)) << backend::name_of(format) << " " << n;
      const backend::ThenActivate like{nullptr, backend::Activation::kSilu, false};
      EXPECT_TRUE(
          same_bits(mixed(*ranks, on_ranks, x, kRows, &like).activated, mixed(*one, on_one, x, kRows, &like).activated))
          << backend::name_of(format) << " " << n;
    }
  }
}

TEST(GpuExperts, GatesOfTensorCoresAreActivatedAsTheyAreStored) {
  for (const Format format : {Format::kBF16, Format::kFp8, Format::of_blocks(BlockType::kMXFP4, Activation::kInt8)}) {
    const auto gpu = simulated(3);
    constexpr std::uint32_t kRows = 9;
    const std::vector<float> x = Random(6).floats(std::size_t{kRows} * 256);
    const Experts experts(*gpu, format, kExperts, 64, 256);
    const std::vector<float> y = mixed(*gpu, experts, x, kRows, nullptr).products;
    const backend::ThenActivate like{nullptr, backend::Activation::kSilu, true};
    std::vector<float> expected;
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (i % 64 < 32) expected.push_back(activated(backend::Activation::kSilu, y[i]) * y[i + 32]);
    }
    EXPECT_TRUE(same_bits(mixed(*gpu, experts, x, kRows, &like).activated, expected)) << backend::name_of(format);
  }
}

}  // namespace
}  // namespace quire::gpu::experts_test
