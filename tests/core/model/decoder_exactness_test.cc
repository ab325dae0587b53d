// The promise at the model's level, on the CPU backend: a row's logits are a function of its sequence alone, bit for
// bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/base/kv_constants.h"
#include "core/base/thread_role.h"
#include "core/cpu/cpu_ops.h"
#include "core/model/run/decoder_runner.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::decoder_exactness_test {
namespace {

using enum flow::BlockOp::Kind;
using testing::fitting_tensors;
using testing::safetensors_file;
using testing::TempDir;

constexpr std::uint32_t kBlockTokens = 16;
constexpr std::uint32_t kBlocksEach = 20;  // 320 positions: two attention spans
constexpr std::uint32_t kVocab = 50;

const std::string kQwen3 =
    R"({"model_type": "qwen3", "hidden_size": 40, "intermediate_size": 56, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12, "vocab_size": 50, "max_position_embeddings": 320,
  "use_sliding_window": true, "sliding_window": 19, "max_window_layers": 1})";

// A sequence: its tokens, and which blocks hold it. How many of them are computed already.
struct Sequence {
  std::vector<TokenId> tokens;
  std::vector<BlockId> blocks;
  std::uint32_t done = 0;
  std::uint32_t residual_group = 0;
  std::vector<std::uint16_t> kept{};  // of the spans before its next rows, where something was dropped
};

Sequence sequence(std::uint32_t length, std::uint32_t seed, std::uint32_t first_block, std::uint32_t stride = 1) {
  Sequence made;
  for (std::uint32_t i = 0; i < length; ++i) {
    seed = seed * 1664525u + 1013904223u;
    made.tokens.push_back(static_cast<TokenId>((seed >> 16) % kVocab));
  }
  made.residual_group = first_block / kBlocksEach;
  for (std::uint32_t i = 0; i < kBlocksEach; ++i) made.blocks.emplace_back(first_block + i * stride);
  return made;
}

struct Part {
  Sequence* sequence;
  std::uint32_t num_rows;
};

class DecoderExactness : public ::testing::TestWithParam<backend::KvType> {
 protected:
  DecoderExactness() {
    const ModelSpec config = parse_config(kQwen3, "config.json");
    dir_.write("config.json", kQwen3);
    dir_.write("model.safetensors", safetensors_file(fitting_tensors(config, "BF16")));
    const auto files = ModelFiles::directory(dir_.path());
    decoder_ = std::make_unique<Decoder>(*ops_, config, *files, 320);
    RunnerLimits limits;
    limits.max_rows = 512;
    limits.max_sequences = 4;
    limits.num_blocks = 4 * kBlocksEach;
    limits.kv_dtype = GetParam();
    limits.num_swap_blocks = 3;
    runner_ = std::make_unique<DecoderRunner>(*ops_, *decoder_, limits);
  }

  // One step of some rows of some sequences, all of which speak. Their logits, in order. With pools_ nobody speaks, and
  // it is the hidden states of all rows.
  std::vector<std::vector<float>> step(const std::vector<Part>& parts) {
    const RoleScope engine(engine_role);
    flow::StepPlan plan;
    for (const auto& [sequence, num_rows] : parts) {
      flow::PlannedSequence planned;
      planned.first_row = static_cast<std::uint32_t>(plan.tokens.size());
      planned.num_rows = num_rows;
      planned.first_position = sequence->done;
      planned.first_table = static_cast<std::uint32_t>(plan.block_tables.size());
      planned.num_table = kBlocksEach;
      planned.samples = !pools_;
      planned.num_pooled = pools_ ? num_rows : 0;
      planned.residual_group = sequence->residual_group;
      planned.first_kept = static_cast<std::uint32_t>(plan.kept_groups.size());
      planned.num_kept = static_cast<std::uint32_t>(sequence->kept.size());
      plan.kept_groups.insert(plan.kept_groups.end(), sequence->kept.begin(), sequence->kept.end());
      plan.sequences.push_back(planned);
      plan.block_tables.insert(plan.block_tables.end(), sequence->blocks.begin(), sequence->blocks.end());
      for (std::uint32_t row = 0; row < num_rows; ++row, ++sequence->done) {
        const std::uint32_t position = sequence->done;
        plan.tokens.push_back(sequence->tokens[position]);
        plan.positions.push_back(position);
        plan.slots.push_back(sequence->blocks[position / kBlockTokens].value * kBlockTokens + position % kBlockTokens);
      }
    }
    runner_->submit(plan);
    runner_->collect();
    std::vector<std::vector<float>> hidden;
    for (std::size_t i = 0; i < parts.size() && pools_; ++i) {
      const std::span<const float> pooled = runner_->pooled(i);
      hidden.emplace_back(pooled.begin(), pooled.end());
    }
    if (pools_) return hidden;
    std::vector<float> logits(parts.size() * kVocab);
    runner_->read_logits(logits);
    std::vector<std::vector<float>> rows;
    for (std::size_t i = 0; i < parts.size(); ++i)
      rows.emplace_back(logits.begin() + i * kVocab, logits.begin() + (i + 1) * kVocab);
    return rows;
  }

  // A step that does nothing but this.
  void step(const std::vector<flow::BlockOp>& ops) {
    const RoleScope engine(engine_role);
    flow::StepPlan plan;
    plan.block_ops = ops;
    runner_->submit(plan);
    EXPECT_TRUE(runner_->collect().empty());
  }

  static void move_blocks(DecoderRunner& from, std::uint32_t first, DecoderRunner& to, std::uint32_t to_first,
                          std::uint32_t count) {
    const RoleScope engine(engine_role);
    std::vector<std::byte> bytes(from.block_bytes());
    for (std::uint32_t i = 0; i < count; ++i) {
      from.read_block(BlockId(first + i), bytes);
      to.write_block(BlockId(to_first + i), bytes);
    }
  }

  // The last row's logits, the whole sequence in one step and alone.
  std::vector<float> alone(Sequence sequence) {
    sequence.done = 0;
    return step({{&sequence, static_cast<std::uint32_t>(sequence.tokens.size())}}).back();
  }

  TempDir dir_;
  std::unique_ptr<backend::Ops> ops_ = cpu::make_cpu_ops({2, "auto", 512});
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<DecoderRunner> runner_;
  bool pools_ = false;
};

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

TEST_P(DecoderExactness, LogitsDoNotDependOnHowThePromptIsChunked) {
  Sequence prompt = sequence(300, 1, 0);
  const std::vector<float> whole = alone(prompt);
  for (const std::uint32_t chunk : {1u, 15u, 16u, 17u, 255u, 256u, 257u}) {
    prompt.done = 0;
    std::vector<float> last;
    while (prompt.done < 300) last = step({{&prompt, std::min(chunk, 300 - prompt.done)}}).back();
    expect_same_bits(last, whole);
  }
}

TEST_P(DecoderExactness, LogitsDoNotDependOnBatchMates) {
  Sequence first = sequence(300, 1, 0);
  Sequence second = sequence(40, 2, kBlocksEach);
  Sequence third = sequence(7, 3, 2 * kBlocksEach);
  const std::vector<std::vector<float>> expected = {alone(first), alone(second), alone(third)};
  step({{&second, 13}});
  step({{&first, 200}, {&second, 1}});
  step({{&third, 6}, {&first, 1}, {&second, 25}});
  const auto found = step({{&first, 99}, {&second, 1}, {&third, 1}});
  for (std::size_t i = 0; i < 3; ++i) expect_same_bits(found[i], expected[i]);
}

TEST_P(DecoderExactness, HiddenStatesDependNeitherOnChunksNorOnBatchMates) {
  pools_ = true;
  Sequence prompt = sequence(300, 1, 0);
  Sequence mate = sequence(300, 2, kBlocksEach);
  const std::vector<float> whole = alone(prompt);
  ASSERT_EQ(whole.size(), 300u * 40);
  for (const std::uint32_t chunk : {1u, 15u, 16u, 17u, 255u, 256u, 257u}) {
    prompt.done = mate.done = 0;
    std::vector<float> all;
    while (prompt.done < 300) {
      const auto rows = step({{&mate, 1}, {&prompt, std::min(chunk, 300 - prompt.done)}});
      all.insert(all.end(), rows[1].begin(), rows[1].end());
    }
    expect_same_bits(all, whole);
  }
}

TEST_P(DecoderExactness, LogitsDoNotDependOnWhichBlocksHoldTheSequence) {
  const std::vector<float> expected = alone(sequence(300, 1, 0));
  expect_same_bits(alone(sequence(300, 1, 3 * kBlocksEach)), expected);
  expect_same_bits(alone(sequence(300, 1, 1, 3)), expected);
}

TEST_P(DecoderExactness, CopiedBlocksHoldWhatTheOriginalsHeld) {
  Sequence original = sequence(64, 1, 0);
  const std::vector<float> expected = alone(original);
  step({{&original, 48}});
  Sequence copy = sequence(64, 1, kBlocksEach);
  copy.done = 48;
  step({{kCopy, 0, 20}, {kCopy, 1, 21}, {kCopy, 2, 22}});
  expect_same_bits(step({{&copy, 16}}).back(), expected);
}

// Forked in the middle of a block and of a group: with int4 the open group goes along.
TEST_P(DecoderExactness, AForkGoesOnAsTheOriginalDoes) {
  Sequence original = sequence(64, 1, 0);
  const std::vector<float> expected = alone(original);
  step({{&original, 41}});
  Sequence fork = sequence(64, 1, kBlocksEach);
  fork.done = 41;
  std::vector<flow::BlockOp> ops = {{kCopy, 0, 20}, {kCopy, 1, 21}, {kCopy, 2, 22}};
  if (GetParam() == backend::KvType::kInt4) ops.push_back({kCopyResidualGroup, 0, 1});
  step(ops);
  step({{&original, 1}, {&fork, 2}});
  expect_same_bits(step({{&original, 22}}).back(), expected);
  expect_same_bits(step({{&fork, 21}}).back(), expected);
}

TEST_P(DecoderExactness, SwappedBlocksComeBackAsTheyWent) {
  Sequence original = sequence(64, 1, 0);
  const std::vector<float> expected = alone(original);
  step({{&original, 48}});
  step({{kSwapOut, 0, 2}, {kSwapOut, 1, 0}, {kSwapOut, 2, 1}, {kPoison, 0, 0}, {kPoison, 0, 1}, {kPoison, 0, 2}});
  Sequence back = sequence(64, 1, 2 * kBlocksEach);
  back.done = 48;
  step({{kSwapIn, 2, 40}, {kSwapIn, 0, 41}, {kSwapIn, 1, 42}});
  expect_same_bits(step({{&back, 16}}).back(), expected);
}

TEST_P(DecoderExactness, PoisonIsSeenByWhoeverReadsIt) {
  Sequence original = sequence(64, 1, 0);
  step({{&original, 48}});
  step({{kPoison, 0, 1}});
  const std::vector<float> logits = step({{&original, 16}}).back();
  for (const float logit : logits) EXPECT_TRUE(std::isnan(logit));
}

TEST_P(DecoderExactness, SavedBlocksServeInAnotherRunner) {
  Sequence original = sequence(64, 1, 0);
  const std::vector<float> expected = alone(original);
  step({{&original, 48}});
  auto other = std::make_unique<DecoderRunner>(*ops_, *decoder_, runner_->limits());
  move_blocks(*runner_, 0, *other, 40, 3);
  runner_ = std::move(other);
  Sequence loaded = sequence(64, 1, 2 * kBlocksEach);
  loaded.done = 48;
  expect_same_bits(step({{&loaded, 16}}).back(), expected);
}

TEST_P(DecoderExactness, DroppedGroupsAreNotLookedAtAndKeptOnesAre) {
  Sequence prompt = sequence(270, 1, 0);
  const std::vector<float> full = alone(prompt);
  prompt.done = 0;
  step({{&prompt, 256}});
  prompt.kept = {0xffff};
  expect_same_bits(step({{&prompt, 14}}).back(), full);

  prompt.done = 256;
  prompt.kept = {0xfff7};  // layer 1's window of 19 does not reach group 3 anyway
  const std::vector<float> holed = step({{&prompt, 14}}).back();
  EXPECT_NE(holed, full);
  step({{kPoison, 0, 3}});
  prompt.blocks[3] = kNoBlock;
  for (const std::uint32_t chunk : {1u, 7u, 14u}) {
    prompt.done = 256;
    std::vector<float> last;
    while (prompt.done < 270) last = step({{&prompt, std::min(chunk, 270 - prompt.done)}}).back();
    expect_same_bits(last, holed);
  }
}

using DecoderExactnessDeathTest = DecoderExactness;

TEST_P(DecoderExactnessDeathTest, ABlockThatSomeRowSeesMustBeInTheTable) {
  Sequence prompt = sequence(270, 1, 0);
  step({{&prompt, 256}});
  prompt.blocks[3] = kNoBlock;
  EXPECT_DEATH(step({{&prompt, 1}}), "may_look_at");
  prompt.kept = {0xffff};
  EXPECT_DEATH(step({{&prompt, 1}}), "may_look_at");
  prompt.kept = {0xfff7};
  step({{&prompt, 1}});
  prompt.done = 255;
  EXPECT_DEATH(step({{&prompt, 2}}), "0 vs 1");  // two spans in one step
}

class Int4ResidualGroupDeathTest : public DecoderExactness {};

TEST_P(Int4ResidualGroupDeathTest, NobodyGoesOnInAnResidualGroupThatIsNotTheirs) {
  Sequence first = sequence(64, 1, 0);
  Sequence second = sequence(64, 2, kBlocksEach);
  second.residual_group = 0;
  EXPECT_DEATH(step({{&first, 5}, {&second, 5}}), "CHECK failed: open.step");
  step({{&first, 5}});
  step({{&second, 6}});
  EXPECT_DEATH(step({{&first, 5}}), "5 vs 6");
  first.residual_group = 4;
  first.done = 0;
  EXPECT_DEATH(step({{&first, 5}}), "4 vs 4");
  const std::vector<flow::BlockOp> beyond = {{kCopyResidualGroup, 0, 4}};
  EXPECT_DEATH(step(beyond), "4 vs 4");
}
INSTANTIATE_TEST_SUITE_P(Kv, Int4ResidualGroupDeathTest, ::testing::Values(backend::KvType::kInt4));

TEST_P(DecoderExactness, DifferentTokensGiveDifferentLogits) {
  EXPECT_NE(alone(sequence(40, 1, 0)), alone(sequence(40, 2, 0)));
}

INSTANTIATE_TEST_SUITE_P(Kv, DecoderExactnessDeathTest, ::testing::Values(backend::KvType::kF32));
INSTANTIATE_TEST_SUITE_P(Kv, DecoderExactness, ::testing::ValuesIn(backend::kAllKvTypes),
                         [](const auto& kv) { return std::string(backend::name_of(kv.param)); });

}  // namespace
}  // namespace quire::model::decoder_exactness_test
