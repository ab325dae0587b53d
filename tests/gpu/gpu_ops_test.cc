// The GPU's ops on the simulated device, beside the CPU's: the same bits wherever their equations are the same, and for
// bf16, which the tensor cores multiply (linear_test.cc), the same bits however rows are dealt into steps.
#include "gpu/gpu_ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/core/cpu/attention_lab.h"
#include "tests/core/cpu/tiny_decoder.h"
#include "tests/gpu/beside_cpu.h"

namespace quire::gpu::gpu_ops_test {
namespace {

using namespace test;
using backend::Ops;

std::vector<float> wide_range(Random& random, std::size_t count) {
  std::vector<float> values = random.floats(count);
  for (float& value : values) value *= std::exp2(static_cast<float>(random.below(60)) - 30.0f);
  return values;
}

TEST(GpuOps, NormsRowsWithTheBitsOfTheCpu) {
  for (const std::uint32_t width : {1u, 15u, 16u, 17u, 256u, 300u}) {
    Random random(width);
    const std::vector<float> x = wide_range(random, 5 * width);
    const std::vector<float> scale = random.floats(width);
    SCOPED_TRACE(width);
    expect_same_bits([&](Ops& ops) {
      const auto in = ops.make_buffer(5, width);
      const auto out = ops.make_buffer(5, width);
      const OwnedBatch batch = plain_rows(5);
      ops.begin(batch.view());
      fill(ops, *in, x);
      ops.norm(*in, {ops.upload(scale).get(), 1e-5f}, 5, *out);
      return read(ops, *out, 5);
    });
  }
}

TEST(GpuOps, WritesRowsAsTheyAreWhenItIsAskedAndLeavesTheOthers) {
  for (const Pace pace : {Pace::kAtOnce, Pace::kLate}) {
    const auto ops = make_gpu_ops(make_simulated_device(1, pace), {.max_rows = 8});
    const auto buffer = ops->make_buffer(3, 21);
    Random random(5);
    const std::vector<float> all = random.floats(std::size_t{3} * 21);
    ops->write(all, *buffer);
    std::vector<float> first = random.floats(21);
    std::vector<float> expected = all;
    std::ranges::copy(first, expected.begin());
    ops->write(first, *buffer);
    std::ranges::fill(first, 7.0f);  // too late
    EXPECT_TRUE(same_bits(read(*ops, *buffer, 3), expected));
    EXPECT_DEATH(ops->write(std::vector<float>(22), *buffer), "CHECK failed");
    EXPECT_DEATH(ops->write(std::vector<float>(4 * 21), *buffer), "CHECK failed");
  }
}

TEST(GpuOps, GatesAddsCutsAndPlacesWithTheBitsOfTheCpu) {
  for (const std::uint32_t width : {1u, 16u, 255u, 256u, 257u}) {
    Random random(width);
    const std::vector<float> gate_up = wide_range(random, 3 * 2 * width);
    SCOPED_TRACE(width);
    expect_same_bits([&](Ops& ops) {
      const auto both = ops.make_buffer(3, 2 * width);
      const auto product = ops.make_buffer(3, width);
      const auto part = ops.make_buffer(3, width);
      const OwnedBatch batch = plain_rows(3);
      ops.begin(batch.view());
      fill(ops, *both, gate_up);
      ops.activate(*both, backend::Activation::kSilu, true, 3, *product);
      ops.cut(*both, 3, width, *part);
      ops.add(*part, *product, 1.0f, 3);
      ops.place(*part, 3, 0, *both);
      return read(ops, *both, 3);
    });
  }
}

TEST(GpuOps, MultipliesByF32AndF16WithTheBitsOfTheCpu) {
  for (const Format dtype : {Format::kF32, Format::kF16}) {
    for (const std::uint32_t rows : {1u, 8u, 9u}) {
      for (const std::uint32_t k : {1u, 127u, 128u, 129u}) {
        Random random(rows * 1000 + k);
        const Matrix w = random_matrix(random, 131, k, dtype);
        const std::vector<float> bias = random.floats(131);
        const std::vector<float> x = random.floats(std::size_t{rows} * k);
        SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(k) + ", " + backend::name_of(dtype));
        expect_same_bits([&](Ops& ops) { return run_linear(ops, x, *pack(ops, w, bias), rows); });
      }
    }
  }
}

TEST(GpuOps, AttendsWithTheBitsOfTheCpuOverWindowsGroupsAndBlocks) {
  struct Case {
    LabShape shape;
    std::vector<std::uint32_t> lengths;
  };
  // A row and head of the simulator is 256 threads: few are long.
  const Case cases[] = {{{2, 1, 8, 16, KvType::kF32, 0}, {3, 262}},
                        {{2, 2, 8, 32, KvType::kF32, 0}, {1, 17, 33}},
                        {{3, 1, 18, 16, KvType::kF32, 7}, {30}},
                        {{1, 1, 258, 64, KvType::kBF16, 0}, {18}}};
  for (const auto& [shape, lengths] : cases) {
    SCOPED_TRACE(shape.text());
    const auto attended = [&shape = shape, &lengths = lengths](Ops& ops, std::uint32_t chunk) {
      Lab lab(ops, shape, lab_sequences(shape, lengths, 77), 1);
      lab.prefill(chunk, /*together=*/true);
      return lab.out();
    };
    const auto cpu = make_ops("auto", 1, 600);
    const auto expected = attended(*cpu, 333);
    for (const std::uint32_t chunk : {333u, 13u}) {
      const auto gpu = simulated(chunk);
      const auto out = attended(*gpu, chunk);
      for (std::size_t s = 0; s < out.size(); ++s) EXPECT_TRUE(same_bits(out[s], expected[s])) << s << " by " << chunk;
    }
  }
}

std::vector<float> rope_of(std::uint32_t positions, std::uint32_t half, bool cosine) {
  std::vector<float> out;
  for (std::uint32_t p = 0; p < positions; ++p) {
    for (std::uint32_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(p) * std::exp2(-static_cast<float>(i));
      out.push_back(cosine ? std::cos(angle) : std::sin(angle));
    }
  }
  return out;
}

TEST(GpuOps, SeesOfADraftsTreeTheAncestorsAlone) {
  // Behind ten rows a root with the nodes a, b below it, c and d below a, e below b.
  const std::vector<std::uint64_t> ancestors = {0b00001, 0b00010, 0b00101, 0b01001, 0b10010};
  const LabShape shape{4, 2, 16, 16, KvType::kF32, 0};
  Random random(5);
  const std::vector<float> qkv = random.floats(std::size_t{16} * shape.width());
  for (const float softcap : {0.0f, 0.8f}) {
    expect_same_bits([&](Ops& ops) {
      OwnedBatch batch;
      const std::vector<BlockId> table = {BlockId{2}, BlockId{0}};
      batch.add(0, 16, table, 16);
      backend::SequenceRows& rows = batch.sequences.front();
      rows.num_nodes = 5;
      for (std::uint32_t i = 0; i < 5; ++i) batch.positions[11 + i] = 10 + std::popcount(ancestors[i]);
      backend::Batch view = batch.view();
      view.ancestors = ancestors;
      const auto cache = ops.make_kv({backend::kv_layers(1, shape.num_kv_heads, shape.head_dim), 16, 3, KvType::kF32});
      const auto rope = ops.upload_rope(rope_of(32, 8, true), rope_of(32, 8, false), 8);
      const auto in = ops.make_buffer(16, shape.width());
      const auto out = ops.make_buffer(16, shape.q_width());
      backend::AttentionSpec spec;
      spec.num_heads = shape.num_heads;
      spec.num_kv_heads = shape.num_kv_heads;
      spec.head_dim = shape.head_dim;
      spec.scale = 0.25f;
      spec.softcap = softcap;
      spec.rope = rope.get();
      ops.begin(view);
      fill(ops, *in, qkv);
      ops.rope_store(spec, *in, *cache);
      ops.attend(spec, *in, *cache, *out);
      return read(ops, *out, 16);
    });
  }
}

struct Outcome {
  std::vector<float> logits;
  std::vector<TokenId> tokens;
};

Outcome decoded(DecoderConfig config, std::uint32_t chunk, const std::function<std::unique_ptr<Ops>()>& make) {
  config.make = make;
  cpu::test::Decoder decoder(config);
  const std::uint32_t lengths[] = {1, 9, 18};
  const std::uint32_t all[] = {0, 1, 2};
  const Prompts prompts(lengths, config.block_tokens);
  Outcome outcome;
  std::vector<std::vector<float>> logits(3);
  std::vector<std::vector<TokenId>> tokens(3);
  for (std::uint32_t first = 0; first < 18; first += chunk) {
    const OwnedBatch batch = make_step(prompts, first, chunk, config.block_tokens, all);
    std::vector<backend::Choice> choices(batch.logits_rows.size());
    decoder.step(batch.view(), choices);
    const std::vector<float> rows = decoder.logits(static_cast<std::uint32_t>(choices.size()));
    std::size_t row = 0;
    std::size_t next = 0;
    for (const std::uint32_t s : all) {
      if (first >= prompts.tokens[s].size()) continue;
      for (std::uint32_t i = 0; i < batch.sequences[next].num_rows; ++i, ++row) {
        tokens[s].push_back(choices[row].token);
        logits[s].insert(logits[s].end(), rows.begin() + static_cast<std::ptrdiff_t>(row * kVocab),
                         rows.begin() + static_cast<std::ptrdiff_t>((row + 1) * kVocab));
      }
      ++next;
    }
  }
  for (std::uint32_t s : all) {
    outcome.logits.insert(outcome.logits.end(), logits[s].begin(), logits[s].end());
    outcome.tokens.insert(outcome.tokens.end(), tokens[s].begin(), tokens[s].end());
  }
  return outcome;
}

TEST(GpuOps, DecodesInF32WithTheBitsAndTokensOfTheCpu) {
  for (const bool fused : {false, true}) {
    DecoderConfig config;
    config.dtype = Format::kF32;
    config.kv = KvType::kF32;
    config.fused = fused;
    const Outcome cpu = decoded(config, 18, [] { return make_ops("auto", 1); });
    const Outcome gpu = decoded(config, 18, [] { return simulated(3); });
    EXPECT_TRUE(same_bits(gpu.logits, cpu.logits));
    EXPECT_EQ(gpu.tokens, cpu.tokens);
  }
}

TEST(GpuOps, DecodesInBf16WithTheSameBitsHoweverRowsAreDealt) {
  DecoderConfig config;
  config.dtype = Format::kBF16;
  config.kv = KvType::kBF16;
  const Outcome whole = decoded(config, 18, [] { return simulated(3); });
  for (const std::uint32_t chunk : {1u, 7u}) {
    const Outcome parts = decoded(config, chunk, [] { return simulated(4); });
    EXPECT_TRUE(same_bits(parts.logits, whole.logits)) << chunk;
    EXPECT_EQ(parts.tokens, whole.tokens);
  }
}

// Sizes in whole tiles: gates and their products are one kernel. The others are gated after it.
TEST(GpuOps, FusesLayersOfEveryTypeOfWeightsWithTheBitsOfTheirParts) {
  for (const std::optional<Format> quantize : std::initializer_list<std::optional<Format>>{
           std::nullopt, Format::kInt8, Format::kInt4, Format::kW8A8, Format::kW4A8, Format::kFp8}) {
    for (const bool whole : {true, false}) {
      if (!whole && quantize != std::nullopt) continue;  // the simulator takes long
      DecoderConfig config;
      config.quantize = quantize;
      config.whole_panels = whole;
      config.fused = false;
      const Outcome parts = decoded(config, 18, [] { return simulated(5); });
      config.fused = true;
      const Outcome fused = decoded(config, 18, [] { return simulated(6); });
      EXPECT_TRUE(same_bits(fused.logits, parts.logits)) << name_of(quantize.value_or(Format::kBF16)) << whole;
      EXPECT_EQ(fused.tokens, parts.tokens);
    }
  }
}

TEST(GpuOps, DecodesInWholeNumbersWithTheBitsAndTokensOfTheCpuHoweverRowsAreDealt) {
  for (const std::optional<Format> quantize : {Format::kW8A8, Format::kW8A8PerRow, Format::kW4A8}) {
    DecoderConfig config;
    config.quantize = quantize;
    config.kv = KvType::kF32;  // whose attention has the CPU's bits, too
    const Outcome cpu = decoded(config, 18, [] { return make_ops("auto", 1); });
    for (const std::uint32_t chunk : {18u, 5u}) {
      const Outcome gpu = decoded(config, chunk, [] { return simulated(3); });
      EXPECT_TRUE(same_bits(gpu.logits, cpu.logits)) << name_of(quantize.value_or(Format::kBF16)) << " " << chunk;
      EXPECT_EQ(gpu.tokens, cpu.tokens);
    }
  }
}

TEST(GpuOps, KeepsBlocksAsBytesAndGivesThemBack) {
  const auto ops = simulated();
  const auto cache = ops->make_kv({backend::kv_layers(2, 1, 8), 16, 3, KvType::kBF16});
  Random random(1);
  std::vector<std::byte> bytes(cache->block_bytes());
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  ops->write_block(*cache, BlockId{1}, bytes);
  const backend::BlockCopy copy{BlockId{1}, BlockId{2}};
  ops->copy_blocks(*cache, {&copy, 1});
  std::vector<std::byte> out(bytes.size());
  ops->read_block(*cache, BlockId{2}, out);
  EXPECT_EQ(out, bytes);
  ops->poison_block(*cache, BlockId{2});
  ops->read_block(*cache, BlockId{1}, out);
  EXPECT_EQ(out, bytes);
}

// More copies than a launch takes, each of what the one before wrote.
TEST(GpuOps, CopiesListsOfBlocksAndRowsInOrder) {
  for (const KvType type : {KvType::kF32, KvType::kBF16, KvType::kInt8}) {
    const auto ops = simulated();
    const auto in_lists = ops->make_kv({backend::kv_layers(2, 2, 18), 16, 5, type});
    const auto one_by_one = ops->make_kv({backend::kv_layers(2, 2, 18), 16, 5, type});
    Random random(1);
    std::vector<std::byte> bytes(in_lists->block_bytes());
    for (std::uint32_t block = 0; block < 5; ++block) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(64));
      for (backend::KvCache* cache : {in_lists.get(), one_by_one.get()})
        ops->write_block(*cache, BlockId{block}, bytes);
    }
    std::vector<backend::RowCopy> rows;
    std::vector<backend::BlockCopy> blocks;
    for (std::uint32_t i = 0; i < 70; ++i) {
      rows.push_back({i, i + 1});
      blocks.push_back({BlockId{random.below(5)}, BlockId{random.below(5)}});
    }
    ops->copy_rows(*in_lists, rows);
    ops->copy_blocks(*in_lists, blocks);
    for (const backend::RowCopy& row : rows) ops->copy_rows(*one_by_one, {&row, 1});
    for (const backend::BlockCopy& block : blocks) ops->copy_blocks(*one_by_one, {&block, 1});
    std::vector<std::byte> expected(bytes.size());
    for (std::uint32_t block = 0; block < 5; ++block) {
      ops->read_block(*in_lists, BlockId{block}, bytes);
      ops->read_block(*one_by_one, BlockId{block}, expected);
      EXPECT_EQ(bytes, expected) << backend::name_of(type) << " block " << block;
    }
  }
}

// Groups of layers of different sizes: a copy of rows writes nothing behind its own group's layers.
TEST(GpuOps, CopiesRowsOfGroupsOfOtherSizes) {
  const backend::KvShape shape{{{.num_kv_heads = 1, .head_dim = 16, .group = 0, .place = 0},
                                {.num_kv_heads = 1, .head_dim = 16, .group = 0, .place = 1},
                                {.num_kv_heads = 4, .head_dim = 16, .group = 1, .place = 0},
                                {.num_kv_heads = 1, .head_dim = 32, .group = 1, .place = 1}},
                               16,
                               2,
                               KvType::kBF16};
  constexpr std::size_t kHead = 16 * 16 * 2 * 2;
  const auto ops = simulated();
  const auto cache = ops->make_kv(shape);
  ASSERT_EQ(cache->block_bytes(), 6 * kHead);
  EXPECT_EQ(kv_block_bytes(shape), 6 * kHead);
  const std::vector<std::byte> ones(cache->block_bytes(), std::byte{1});
  for (const std::uint32_t group : {0u, 1u}) {
    ops->write_block(*cache, BlockId{0}, ones);
    ops->write_block(*cache, BlockId{1}, std::vector<std::byte>(ones.size()));
    const backend::RowCopy copy{.from = 3, .to = 16 + 5, .group = group};
    ops->copy_rows(*cache, {&copy, 1});
    std::vector<std::byte> out(ones.size());
    ops->read_block(*cache, BlockId{1}, out);
    const auto end = static_cast<std::ptrdiff_t>((group == 0 ? 2 : 6) * kHead);
    EXPECT_EQ(std::ranges::count(std::span(out).first(static_cast<std::size_t>(end)), std::byte{1}), end / 16);
    EXPECT_EQ(std::ranges::count(out, std::byte{1}), end / 16);
  }
}

TEST(GpuOps, AdoptsWhatItPacked) {
  const auto ops = simulated();
  Random random(3);
  const Matrix w = random_matrix(random, 20, 30, Format::kBF16);
  const std::vector<float> x = random.floats(2 * 30);
  const auto packed = pack(*ops, w, std::vector<float>(20, 0.5f));
  const backend::WeightShape shape{20, 30, backend::Format::kBF16, true};
  const auto adopted = ops->adopt(shape, packed->packed(), nullptr);
  ASSERT_NE(adopted, nullptr);
  EXPECT_TRUE(same_bits(run_linear(*ops, x, *adopted, 2), run_linear(*ops, x, *packed, 2)));
  EXPECT_EQ(ops->adopt(shape, packed->packed().first(packed->bytes() - 1), nullptr), nullptr);
}

// A step of three rows that could be captured as one of four; x has room for so many.
std::vector<float> of_three_logits_rows(const GpuOptions& options, std::uint32_t max_rows, std::uint32_t rows) {
  const auto ops = make_gpu_ops(make_simulated_device(), options);
  Random random(5);
  const auto w = pack(*ops, random_matrix(random, 20, 30, Format::kBF16));
  const auto table = pack(*ops, random_matrix(random, 3, 30, Format::kF32));
  const auto x = ops->make_buffer(max_rows, 30);
  const auto y = ops->make_buffer(max_rows, 20);
  OwnedBatch batch;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const BlockId block{i};
    batch.add(0, 1, {&block, 1}, 16);
    batch.logits_rows.push_back({i, 0, {}});
  }
  ops->begin(batch.view());
  ops->embed(*table, 1.0f, *x);
  ops->linear(*x, *w, rows, *y);
  return read(*ops, *y, rows);
}

TEST(GpuOps, PadsNoStepBeyondTheSmallestBuffer) {
  const std::vector<float> plain = of_three_logits_rows({.max_rows = 8}, 8, 3);
  for (const std::uint32_t room : {3u, 4u, 5u}) {
    EXPECT_TRUE(same_bits(of_three_logits_rows({.max_rows = 8, .capture = 8}, room, 3), plain)) << room;
  }
}

TEST(GpuOps, RunsWhatWasWrittenDownBeforeAWeightIsMadeAndDropped) {
  const auto embedded = [](const GpuOptions& options) {
    const auto ops = make_gpu_ops(make_simulated_device(), options);
    Random random(5);
    const auto x = ops->make_buffer(2, 30);
    const BlockId block{0};
    OwnedBatch batch;
    batch.add(0, 1, {&block, 1}, 16);
    batch.logits_rows.push_back({0, 0, {}});
    ops->begin(batch.view());
    ops->embed(*pack(*ops, random_matrix(random, 1, 30, Format::kF32)), 1.0f, *x);  // dropped behind this line
    pack(*ops, random_matrix(random, 1, 30, Format::kF32));                         // where it lay
    return read(*ops, *x, 1);
  };
  EXPECT_TRUE(same_bits(embedded({.max_rows = 2, .capture = 2}), embedded({.max_rows = 2})));
}

TEST(GpuOps, CapturesUpToAnOpOfOtherRowsThanTheStepHas) {
  const std::vector<float> plain = of_three_logits_rows({.max_rows = 8}, 8, 2);
  EXPECT_TRUE(same_bits(of_three_logits_rows({.max_rows = 8, .capture = 8}, 8, 2), plain));
}

}  // namespace
}  // namespace quire::gpu::gpu_ops_test
