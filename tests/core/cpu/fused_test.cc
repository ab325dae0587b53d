// The fused ops: how often a layer wakes the team, and choices made from pieces of the logits. That they are their
// compositions, bit for bit: decoder_test.cc.
#include "core/cpu/fused.h"

#include <cmath>

#include "core/cpu/attention.h"
#include "core/cpu/isa/select.h"
#include "core/cpu/pack.h"
#include "tests/core/cpu/rig.h"

namespace quire::cpu::test::fused_test {
namespace {

constexpr std::uint32_t kHidden = 512;
constexpr std::uint32_t kFeed = 1024;
constexpr std::uint32_t kHeads = 8;
constexpr std::uint32_t kKvHeads = 4;
constexpr std::uint32_t kHead = 64;
constexpr std::uint32_t kMaxRows = 300;

// A layer on a team that can be asked how many jobs it had.
class Layer {
 public:
  explicit Layer(std::uint32_t threads)
      : kernels_(select_kernels("auto")), team_(threads), attention_(kernels_, team_, kMaxRows) {
    attention_.reserve(cache_.shape());
    spec_.num_heads = kHeads;
    spec_.num_kv_heads = kKvHeads;
    spec_.head_dim = kHead;
    spec_.scale = 0.125f;
    spec_.rope = &rope_;
  }

  std::uint64_t jobs_of_a_step(std::uint32_t rows) {
    std::vector<BlockId> table;
    for (std::uint32_t block = 0; block * 16 < rows; ++block) table.emplace_back(block);
    OwnedBatch batch;
    batch.add(0, rows, table, 16);
    const backend::Batch view = batch.view();
    const std::uint64_t before = team_.num_jobs();
    attention_.begin(view);
    norm_qkv_rope_store(context_, view, spec_, norm_, x_, *qkv_weight_, scratch_, qkv_, cache_);
    attention_.attend(spec_, qkv_, cache_, attended_);
    project_add(context_, rows, attended_, *out_weight_, scratch_, 1.0f, x_);
    norm_gate_up(context_, rows, norm_, x_, *gate_up_weight_, backend::Activation::kSilu, scratch_, gate_up_, product_);
    project_add(context_, rows, product_, *down_weight_, scratch_, 1.0f, x_);
    return team_.num_jobs() - before;
  }

 private:
  std::unique_ptr<PackedWeight> weight(std::uint32_t n, std::uint32_t k) {
    Random random(n + k);
    const Matrix matrix = random_matrix(random, n, k, Format::kBF16);
    const backend::HostMatrix view = matrix.view();
    return pack_weight({&view, 1}, {}, std::nullopt, team_);
  }

  const Kernels& kernels_;
  Team team_;
  RowCoder coder_{kMaxRows};
  const KernelContext context_{kernels_, team_, coder_};
  Attention attention_;
  HostVector scale_{std::vector<float>(kHidden, 1.0f)};
  HostRope rope_{std::vector<float>(kMaxRows * kHead / 2, 1.0f), std::vector<float>(kMaxRows* kHead / 2), kHead / 2};
  PagedCache cache_{{backend::kv_layers(1, kKvHeads, kHead), 16, kMaxRows / 16 + 1, KvType::kBF16}};
  std::unique_ptr<PackedWeight> qkv_weight_ = weight((kHeads + 2 * kKvHeads) * kHead, kHidden);
  std::unique_ptr<PackedWeight> out_weight_ = weight(kHidden, kHeads* kHead);
  std::unique_ptr<PackedWeight> gate_up_weight_ = weight(2 * kFeed, kHidden);
  std::unique_ptr<PackedWeight> down_weight_ = weight(kHidden, kFeed);
  HostBuffer x_{kMaxRows, kHidden};
  HostBuffer scratch_{kMaxRows, kHidden};
  HostBuffer qkv_{kMaxRows, (kHeads + 2 * kKvHeads) * kHead};
  HostBuffer attended_{kMaxRows, kHeads* kHead};
  HostBuffer gate_up_{kMaxRows, 2 * kFeed};
  HostBuffer product_{kMaxRows, kFeed};
  backend::AttentionSpec spec_;
  const backend::Norm norm_{&scale_, 1e-5f};
};

TEST(FusedOps, ALayerWakesTheTeamFourTimesInDecodeAndFiveTimesInPrefill) {
  Layer layer(2);
  EXPECT_EQ(layer.jobs_of_a_step(1), 4u);  // so little attention is the caller's
  EXPECT_EQ(layer.jobs_of_a_step(8), 4u);
  EXPECT_EQ(layer.jobs_of_a_step(kMaxRows), 5u);
}

TEST(FusedOps, ALayerOnOneThreadWakesNobody) {
  Layer layer(1);
  EXPECT_EQ(layer.jobs_of_a_step(kMaxRows), 0u);
}

// Every row speaks; row 1 has a fault in one logit, and rows 2 and 3 are given two equal highest ones.
TEST(FusedOps, AChoiceFromPiecesIsTheChoiceFromTheWhole) {
  constexpr std::uint32_t kRows = 5;
  constexpr std::uint32_t kWide = 3000;  // logits; the last ones are padding
  constexpr std::uint32_t kVocab = 2990;
  Random random(12);
  Matrix head = random_matrix(random, kWide, 48, Format::kF32);
  for (std::uint32_t k = 0; k < 48; ++k) {
    for (const std::uint32_t twin : {700u, 2100u}) head.values[twin * 48 + k] = 2.0f;
    head.values[(kVocab + 3) * 48 + k] = 50.0f;  // never looked at
  }
  head = make_matrix(kWide, 48, Format::kF32, head.values);
  std::vector<float> x = random.floats(kRows * 48);
  x[48 + 5] = NAN;
  std::fill(x.begin() + 2 * 48, x.begin() + 4 * 48, 1.0f);
  OwnedBatch batch = plain_rows(kRows);
  for (std::uint32_t r = 0; r < kRows; ++r) {
    batch.logits_rows.push_back({r, r + 1, {.temperature = r == 3 ? 1.0f : 0.0f, .seed = 9, .logprob = true}});
  }
  for (const std::string& isa : supported_isas()) {
    for (const std::uint32_t threads : {1u, 2u, 5u}) {
      const auto ops = make_ops(isa, threads);
      const auto packed = pack(*ops, head);
      auto in = ops->make_buffer(kRows, 48);
      auto whole = ops->make_buffer(kRows, kWide);
      auto pieces = ops->make_buffer(kRows, kWide);
      std::vector<backend::Choice> expected(kRows);
      std::vector<backend::Choice> choices(kRows);
      ops->begin(batch.view());
      fill(*ops, *in, x);
      ops->linear(*in, *packed, kRows, *whole);
      ops->choose(*whole, kVocab);
      ops->collect(expected);
      ops->linear(*in, *packed, kRows, *pieces, {}, backend::ThenChoose{kVocab});
      ops->collect(choices);
      for (std::uint32_t r = 0; r < kRows; ++r) {
        SCOPED_TRACE(isa + ", " + std::to_string(threads) + " threads, row " + std::to_string(r));
        EXPECT_EQ(choices[r].token, expected[r].token);
        EXPECT_EQ(choices[r].finite, r != 1);
        EXPECT_EQ(choices[r].logprob, expected[r].logprob);
      }
      EXPECT_EQ(choices[2].token, 700);
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::fused_test
