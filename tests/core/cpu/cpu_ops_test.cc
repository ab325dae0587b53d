// What surrounds the arithmetic: the choice of an instruction set, memory, choices, shape checks.
#include "core/cpu/cpu_ops.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>

#include "core/base/start_error.h"
#include "core/cpu/memory.h"
#include "core/sample/sampler.h"
#include "tests/core/cpu/rig.h"

namespace quire::cpu::test::cpu_ops_test {
namespace {

using ::testing::HasSubstr;

std::string start_error(const CpuOptions& options) {
  try {
    make_cpu_ops(options);
  } catch (const StartError& error) {
    return error.what();
  }
  return "";
}

TEST(CpuOps, NamesWhatItRunsOn) {
  EXPECT_EQ(supported_isas().front(), "scalar");
  for (const std::string& isa : supported_isas()) {
    EXPECT_EQ(make_ops(isa, 1)->description(), "cpu/" + isa + " 1 thread");
    EXPECT_EQ(make_ops(isa, 3)->description(), "cpu/" + isa + " 3 threads");
  }
  EXPECT_THAT(make_ops("auto", 2)->description(), HasSubstr("cpu/" + supported_isas().back() + " "));
}

TEST(CpuOps, RefusesAnUnknownInstructionSetAndListsTheKnown) {
  CpuOptions options;
  options.isa = "neon";
  const std::string error = start_error(options);
  EXPECT_THAT(error, HasSubstr("'neon'"));
  for (const std::string& isa : supported_isas()) EXPECT_THAT(error, HasSubstr(isa));
}

TEST(CpuOps, SaysHowMuchMemoryWasMissing) {
  const auto ops = make_ops("auto", 1);
  try {
    ops->make_kv({backend::kv_layers(1u << 10, 1u << 10, 1u << 10), 1u << 10, 1u << 20, KvType::kF32});
    FAIL() << "more than an address space was given";
  } catch (const StartError& error) {
    EXPECT_THAT(error.what(), HasSubstr("out of memory"));
    EXPECT_THAT(error.what(), HasSubstr("the KV cache"));
  }
  EXPECT_THROW(Memory(SIZE_MAX, "everything"), StartError);
}

TEST(CpuOps, WritesRowsOfAnyNumberAndLeavesTheOthers) {
  const auto ops = make_ops("auto", 1);
  const auto buffer = ops->make_buffer(3, 21);
  Random random(5);
  std::vector<float> expected = random.floats(std::size_t{3} * 21);
  ops->write(expected, *buffer);
  EXPECT_TRUE(same_bits(read(*ops, *buffer, 3), expected));
  for (const std::size_t rows : {0u, 1u, 2u}) {
    const std::vector<float> fresh = random.floats(rows * 21);
    std::ranges::copy(fresh, expected.begin());
    ops->write(fresh, *buffer);
    EXPECT_TRUE(same_bits(read(*ops, *buffer, 3), expected)) << rows;
  }
  EXPECT_DEATH(ops->write(std::vector<float>(22), *buffer), "CHECK failed");
  EXPECT_DEATH(ops->write(std::vector<float>(4 * 21), *buffer), "CHECK failed");
}

TEST(Memory, IsZeroAndOnCacheLines) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{3} << 20}) {
    Memory memory(bytes, "a test");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0u);
    EXPECT_EQ(memory.bytes(), bytes);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory.data()[i], std::byte{0});
  }
}

// choose() gives what the sampler gives for each row alone, on every instruction set.
void expect_sampler_s_choices(const OwnedBatch& batch, const std::vector<float>& logits, std::uint32_t width,
                              std::uint32_t vocab) {
  const std::size_t rows = batch.logits_rows.size();
  for (const std::string& isa : supported_isas()) {
    for (const std::uint32_t threads : {1u, 3u}) {
      const auto ops = make_ops(isa, threads);
      auto buffer = ops->make_buffer(static_cast<std::uint32_t>(rows), width);
      ops->begin(batch.view());
      fill(*ops, *buffer, logits);
      ops->choose(*buffer, vocab);
      std::vector<backend::Choice> choices(rows);
      ops->collect(choices);
      for (std::size_t r = 0; r < rows; ++r) {
        sample::Scratch scratch(vocab);
        const backend::LogitsRow& logits_row = batch.logits_rows[r];
        const sample::SampledToken drawn = sample::draw(std::span(logits).subspan(r * width, vocab), logits_row.params,
                                                        logits_row.position, scratch, {}, logits_row.edits);
        EXPECT_EQ(choices[r].token, drawn.token) << isa << " row " << r;
        EXPECT_EQ(choices[r].logprob, drawn.logprob) << isa << " row " << r;
        EXPECT_TRUE(choices[r].finite);
      }
    }
  }
}

TEST(Choose, DrawsForEveryLogitsRowAsTheSamplerDoes) {
  const std::uint32_t rows = 9;
  const std::uint32_t width = 500;
  const std::uint32_t vocab = 491;
  Random random(3);
  std::vector<float> logits = random.floats(rows * width, 8.0f);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = vocab; i < width; ++i) logits[r * width + i] = NAN;  // the tail is never looked at
  }
  OwnedBatch batch = plain_rows(rows);
  for (std::uint32_t r = 0; r < rows; ++r) {
    sample::Params params;
    params.temperature = r == 0 ? 0.0f : 0.3f * static_cast<float>(r);
    params.top_p = r % 3 == 1 ? 0.8f : 1.0f;
    params.top_k = r % 3 == 2 ? 20 : 0;
    params.min_p = r % 4 == 3 ? 0.05f : 0.0f;
    params.seed = 100 + r;
    batch.logits_rows.push_back({r, 1000 + r, params});
  }
  expect_sampler_s_choices(batch, logits, width, vocab);
}

TEST(Choose, DrawsFromTheRowThatALogitsRowsRulesLeave) {
  const std::uint32_t rows = 6;
  const std::uint32_t vocab = 491;
  Random random(3);
  const std::vector<float> logits = random.floats(rows * vocab, 8.0f);
  const std::vector<sample::Edit> each = {{.token = 7, .bias = 9.0f}, {.token = 400, .times = 2, .seen = true}};
  const std::vector<TokenId> forbidden = {490, 3};
  std::vector<std::uint32_t> allowed((vocab + 31) / 32, 0x7ff01u);
  OwnedBatch batch = plain_rows(rows);
  for (std::uint32_t r = 0; r < rows; ++r) {
    batch.logits_rows.push_back({r, 1000 + r, {.temperature = r % 2 == 0 ? 0.0f : 1.0f, .seed = r, .logprob = true}});
    if (r != 3) batch.logits_rows.back().edits = {1.2f, 0.3f, 0.4f, each, forbidden, allowed};
  }
  expect_sampler_s_choices(batch, logits, vocab, vocab);
}

// Nodes 0 and 4 are on the walk; of the others 1, 2 and 5 are lookahead nodes, 3 and 6 are not.
TEST(Choose, GivesWhatALookaheadNodesRowAloneSaysWhereNoWalkCame) {
  const std::uint32_t rows = 8;
  const std::uint32_t vocab = 491;
  Random random(5);
  std::vector<float> logits = random.floats(rows * vocab, 8.0f);
  const auto row = [&](std::uint32_t r) { return std::span(logits).subspan(r * vocab, vocab); };
  row(1 + 2)[77] = NAN;
  std::vector<std::uint32_t> allowed((vocab + 31) / 32, 0x7ff01u);
  const sample::Edits edits = {.repetition = 1.0f, .allowed = allowed};
  const sample::Params params = {.temperature = 1.3f, .seed = 4, .logprob = true};
  sample::Scratch scratch(vocab);
  const TokenId first = sample::draw(row(0), params, 100, scratch, {}, edits).token;
  const TokenId second = sample::draw(row(1), params, 101, scratch, {}, edits).token;
  sample::TokenTree tree;
  tree.add(first, -1);
  tree.add(first + 1, -1);
  tree.add(5, 1);
  tree.add(second + 1, 0);
  tree.add(second, 0);
  tree.add(second, 0);  // the same again: not the first
  tree.add(6, 3);
  for (const std::uint8_t node : {0, 1, 2, 5}) tree.make_lookahead_node(node, node);
  OwnedBatch batch = plain_rows(rows);
  for (std::uint32_t r = 0; r < rows; ++r) {
    const std::uint32_t depth = r == 0 ? 0 : tree.depth(r - 1);
    batch.logits_rows.push_back({r, 100 + depth, params, edits});
  }
  batch.logits_rows[0].num_nodes = 7;
  batch.logits_rows[0].draft = &tree;
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 2);
    auto buffer = ops->make_buffer(rows, vocab);
    ops->begin(batch.view());
    fill(*ops, *buffer, logits);
    ops->choose(*buffer, vocab);
    std::vector<backend::Choice> choices(rows);
    ops->collect(choices);
    EXPECT_EQ(choices[0].token, first);
    for (const std::uint32_t node : {0u, 4u}) {
      const sample::SampledToken drawn =
          sample::draw(row(1 + node), params, 100 + tree.depth(node), scratch, {}, edits);
      EXPECT_EQ(choices[1 + node].token, drawn.token) << isa << ' ' << node;
      EXPECT_EQ(choices[1 + node].logprob, drawn.logprob) << isa << ' ' << node;
    }
    for (const std::uint32_t node : {1u, 5u}) {
      const auto highest = std::ranges::max_element(row(1 + node)) - row(1 + node).begin();
      EXPECT_EQ(choices[1 + node].token, highest) << isa << ' ' << node;
      EXPECT_EQ(choices[1 + node].logprob, 0.0f) << isa << ' ' << node;
    }
    for (const std::uint32_t node : {2u, 3u, 6u}) {
      EXPECT_EQ(choices[1 + node].token, -1) << isa << ' ' << node;
      EXPECT_TRUE(choices[1 + node].finite) << isa << ' ' << node;
    }
  }
}

TEST(Choose, ScoresATokenThatIsGivenAndDrawsNone) {
  const std::uint32_t rows = 5;
  const std::uint32_t vocab = 491;
  Random random(3);
  const std::vector<float> logits = random.floats(rows * vocab, 8.0f);
  OwnedBatch batch = plain_rows(rows);
  for (std::uint32_t r = 0; r < rows; ++r) {
    batch.logits_rows.push_back({r, 1000 + r, {.num_top = r}, {}, r == 2 ? -1 : static_cast<TokenId>(r * 122)});
  }
  for (const std::string& isa : supported_isas()) {
    for (const std::uint32_t threads : {1u, 3u}) {
      const auto ops = make_ops(isa, threads);
      auto buffer = ops->make_buffer(rows, vocab);
      ops->begin(batch.view());
      fill(*ops, *buffer, logits);
      ops->choose(*buffer, vocab);
      std::vector<backend::Choice> choices(rows);
      ops->collect(choices);
      for (std::uint32_t r = 0; r < rows; ++r) {
        if (r == 2) continue;
        sample::Scratch scratch(vocab);
        std::vector<sample::Candidate> room(r);
        const auto row = std::span(logits).subspan(r * vocab, vocab);
        const sample::SampledToken scored =
            sample::score(row, sample::highest_of(row), batch.logits_rows[r].given, r, scratch, room);
        EXPECT_EQ(choices[r].token, batch.logits_rows[r].given);
        EXPECT_EQ(choices[r].logprob, scored.logprob) << isa << " row " << r;
        EXPECT_EQ(choices[r].rank, scored.rank);
        EXPECT_EQ(choices[r].top.size(), r);
      }
    }
  }
}

TEST(Choose, SaysTheLogProbabilitiesThatTheSamplerSaysWhateverTheThreadsAndInstructions) {
  const std::uint32_t rows = 9;
  const std::uint32_t vocab = 491;
  const std::uint32_t lengths[rows] = {0, 1, 5, 0, 20, sample::kMaxTop - 1, sample::kMaxTop, 0, 2};
  Random random(3);
  const std::vector<float> logits = random.floats(rows * vocab, 8.0f);
  OwnedBatch batch = plain_rows(rows);
  for (std::uint32_t r = 0; r < rows; ++r) {
    sample::Params params;
    params.temperature = r % 2 == 0 ? 0.0f : 1.0f;
    params.logprob = r % 3 != 0;
    params.num_top = lengths[r];
    batch.logits_rows.push_back({r, 1000 + r, params});
  }
  for (const std::string& isa : supported_isas()) {
    for (const std::uint32_t threads : {1u, 2u, 3u}) {
      const auto ops = make_ops(isa, threads);
      auto buffer = ops->make_buffer(rows, vocab);
      ops->begin(batch.view());
      fill(*ops, *buffer, logits);
      ops->choose(*buffer, vocab);
      std::vector<backend::Choice> choices(rows);
      ops->collect(choices);
      for (std::size_t r = 0; r < rows; ++r) {
        sample::Scratch scratch(vocab);
        std::vector<sample::Candidate> room(sample::kMaxTop);
        const sample::SampledToken drawn =
            sample::draw(std::span(logits).subspan(r * vocab, vocab), batch.logits_rows[r].params,
                         batch.logits_rows[r].position, scratch, room);
        EXPECT_EQ(choices[r].logprob, drawn.logprob) << isa << " row " << r;
        ASSERT_EQ(choices[r].top.size(), lengths[r]) << isa << " row " << r;
        for (std::size_t i = 0; i < lengths[r]; ++i) {
          EXPECT_EQ(choices[r].top[i].token, drawn.top[i].token) << isa << " row " << r;
          EXPECT_EQ(choices[r].top[i].logprob, drawn.top[i].logprob) << isa << " row " << r;
        }
      }
    }
  }
}

TEST(Choose, ReportsTheRowWhoseLogitsAreNotFinite) {
  const auto ops = make_ops("auto", 1);
  Random random(4);
  std::vector<float> logits = random.floats(3 * 40);
  logits[40 + 7] = NAN;
  OwnedBatch batch = plain_rows(3);
  for (std::uint32_t r = 0; r < 3; ++r) batch.logits_rows.push_back({r, r + 1, {}});
  auto buffer = ops->make_buffer(3, 40);
  ops->begin(batch.view());
  fill(*ops, *buffer, logits);
  ops->choose(*buffer, 40);
  std::vector<backend::Choice> choices(3);
  ops->collect(choices);
  EXPECT_TRUE(choices[0].finite);
  EXPECT_FALSE(choices[1].finite);
  EXPECT_TRUE(choices[2].finite);
}

TEST(Choose, SeesAFaultWhereverItIsAndNoneInWhatIsMasked) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    for (const std::uint32_t vocab : {1u, 15u, 16u, 17u, 40u}) {
      auto buffer = ops->make_buffer(1, vocab);
      OwnedBatch batch = plain_rows(1);
      batch.logits_rows.push_back({0, 1, {.temperature = 0.0f}});
      const auto choice_of = [&](const std::vector<float>& logits) {
        ops->begin(batch.view());
        fill(*ops, *buffer, logits);
        ops->choose(*buffer, vocab);
        backend::Choice choice;
        ops->collect({&choice, 1});
        return choice;
      };
      for (std::uint32_t at = 0; at < vocab; ++at) {
        for (const float bad : {NAN, -NAN, kInf}) {
          std::vector<float> logits(vocab, -1.0f);
          logits[at] = bad;
          EXPECT_FALSE(choice_of(logits).finite) << isa << " " << bad << " at " << at << " of " << vocab;
        }
        std::vector<float> masked(vocab, -kInf);
        EXPECT_FALSE(choice_of(masked).finite);
        masked[at] = -std::numeric_limits<float>::max();
        EXPECT_EQ(choice_of(masked).token, static_cast<TokenId>(at)) << isa << " of " << vocab;
      }
    }
  }
}

// One wrong shape per op; expect_test.cc has the rest.
class CpuOpsDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    batch_ = plain_rows(3);
    batch_.logits_rows.push_back({2, 3, {}});
    ops_->begin(batch_.view());
  }

  std::unique_ptr<backend::Buffer> buffer(std::uint32_t width, std::uint32_t rows = 3) {
    return ops_->make_buffer(rows, width);
  }
  std::unique_ptr<backend::Weight> weight(std::uint32_t n, std::uint32_t k) {
    return pack(*ops_, make_matrix(n, k, Format::kF32, std::vector<float>(std::size_t{n} * k)));
  }

  std::unique_ptr<backend::Ops> ops_ = make_ops("auto", 1, 8);
  OwnedBatch batch_;
};

TEST_F(CpuOpsDeathTest, EveryOpRefusesAWrongShape) {
  const auto ten = buffer(10);
  const auto eleven = buffer(11);
  const auto two_rows = buffer(10, 2);
  const auto scale = ops_->upload(std::vector<float>(10));
  const backend::Norm norm{scale.get(), 1e-5f};
  const auto rope = ops_->upload_rope(std::vector<float>(40), std::vector<float>(40), 4);
  const auto cache = ops_->make_kv({backend::kv_layers(1, 1, 8), 16, 1, KvType::kF32});
  const auto qkv = buffer(24);
  const auto attended = buffer(8);
  backend::AttentionSpec spec;
  spec.num_heads = spec.num_kv_heads = 1;
  spec.head_dim = 8;
  spec.rope = rope.get();
  std::vector<backend::Choice> choices(2);
  std::vector<float> host(20);

  EXPECT_DEATH(ops_->embed(*weight(3, 11), 1.0f, *ten), "CHECK failed");
  EXPECT_DEATH(ops_->embed(*weight(2, 10), 1.0f, *ten), "CHECK failed");  // token 2 is no row of it
  EXPECT_DEATH(ops_->embed_positions(*weight(9, 11), 0, *ten), "CHECK failed");
  EXPECT_DEATH(ops_->embed_positions(*weight(9, 10), 9, *ten), "CHECK failed");  // position 0 is row 9
  EXPECT_DEATH(ops_->norm(*ten, norm, 3, *eleven), "CHECK failed");
  EXPECT_DEATH(ops_->norm(*ten, norm, 3, *two_rows), "CHECK failed");
  EXPECT_DEATH(ops_->linear(*ten, *weight(11, 11), 3, *eleven), "CHECK failed");
  EXPECT_DEATH(ops_->linear(*ten, *weight(11, 10), 4, *eleven), "CHECK failed");
  EXPECT_DEATH(ops_->rope_store(spec, *ten, *cache), "CHECK failed");
  EXPECT_DEATH(ops_->attend(spec, *qkv, *cache, *ten), "CHECK failed");
  EXPECT_DEATH(ops_->activate(*eleven, backend::Activation::kSilu, true, 3, *ten), "CHECK failed");
  EXPECT_DEATH(ops_->add(*ten, *eleven, 1.0f, 3), "CHECK failed");
  EXPECT_DEATH(ops_->gather_logits_rows(*ten, *eleven), "CHECK failed");
  EXPECT_DEATH(ops_->choose(*ten, 11), "CHECK failed");
  EXPECT_DEATH(ops_->linear(*eleven, *weight(10, 10), 1, *ten, {}, backend::ThenChoose{10}), "CHECK failed");
  EXPECT_DEATH(ops_->linear(*eleven, *weight(10, 11), 1, *ten, {}, backend::ThenChoose{11}), "CHECK failed");
  EXPECT_DEATH(ops_->collect(choices), "CHECK failed");
  EXPECT_DEATH(ops_->read(*ten, 2, 2, host), "CHECK failed");
  EXPECT_DEATH(ops_->read(*ten, 0, 1, host), "CHECK failed");
  const backend::BlockCopy copy{BlockId{0}, BlockId{1}};
  EXPECT_DEATH(ops_->copy_blocks(*cache, {&copy, 1}), "CHECK failed");
  EXPECT_DEATH(ops_->begin(plain_rows(9).view()), "CHECK failed");

  spec.head_dim = 4;  // the rope table has four
  const auto narrow = ops_->make_kv({backend::kv_layers(1, 1, 4), 16, 1, KvType::kF32});
  EXPECT_DEATH(ops_->rope_store(spec, *buffer(12), *narrow), "CHECK failed.*half");
  EXPECT_DEATH(ops_->make_kv({backend::kv_layers(1, 1, 8), 24, 1, KvType::kF32}), "CHECK failed.*block_tokens");
  EXPECT_DEATH(ops_->make_kv({backend::kv_layers(1, 1, 7), 16, 1, KvType::kF32}), "CHECK failed.*head_dim");
}

}  // namespace
}  // namespace quire::cpu::test::cpu_ops_test
