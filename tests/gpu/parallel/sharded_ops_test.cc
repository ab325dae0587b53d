// A model on several ranks says what it says on one GPU, bit for bit: logits, tokens, what is stored, and whatever
// files keep of it.
#include "gpu/parallel/sharded_ops.h"

#include <gmock/gmock.h>

#include <cstring>

#include "core/base/start_error.h"
#include "core/cpu/cpu_ops.h"
#include "core/model/run/decoder_runner.h"
#include "gpu/runtime/simulated_device.h"
#include "tests/core/cpu/attention_lab.h"
#include "tests/core/cpu/tiny_decoder.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/support/cases.h"
#include "tests/support/engine_rig.h"

namespace quire::gpu {
namespace {

using namespace cpu::test;
using backend::Ops;
using quire::testing::Client;
using quire::testing::EngineRig;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::unique_ptr<Ops> one_gpu(std::uint32_t max_rows = 64) {
  return make_gpu_ops(make_simulated_device(), {.max_rows = max_rows});
}
// Boxes shorter than most messages.
std::unique_ptr<Ops> of_ranks(std::uint32_t ranks, std::uint32_t max_rows = 64, std::uint32_t depth = 1) {
  return make_sharded_ops(make_simulated_ranks(ranks, ranks), {.max_rows = max_rows, .depth = depth}, {.box = 300});
}

// What divides by four, and by the tensor cores' tiles not everywhere; the vocabulary divides by two and by four, or by
// nothing.
std::string config_of(std::uint32_t vocab, bool tied, std::uint32_t num_kv_heads = 4) {
  return R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 64, "intermediate_size": 120,
    "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": )" +
         std::to_string(num_kv_heads) + R"(, "head_dim": 16, "vocab_size": )" + std::to_string(vocab) +
         R"(, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": )" +
         (tied ? "true" : "false") + "}";
}

struct TinyModel {
  std::string config_text;
  std::string checkpoint;
  std::unique_ptr<model::ModelFiles> files;
  model::ModelSpec config;

  TinyModel(std::uint32_t vocab, bool tied, const char* dtype, std::uint32_t num_kv_heads = 4)
      : config_text(config_of(vocab, tied, num_kv_heads)) {
    const model::ModelSpec parsed = model::parse_config(config_text, "config.json");
    checkpoint = model::testing::safetensors_file(model::testing::fitting_tensors(parsed, dtype));
    const std::vector<std::pair<std::string_view, model::FileBytes>> named = {
        {"config.json", std::as_bytes(std::span(config_text))},
        {"model.safetensors", std::as_bytes(std::span(checkpoint))}};
    files = model::ModelFiles::memory(named);
    config = model::load_config(*files);
  }
};

struct SampledRow {
  std::vector<float> logits;
  std::vector<TokenId> tokens;
  std::vector<std::vector<std::byte>> blocks;
};

// Three sequences by chunks of `chunk` rows, all rows speak.
SampledRow said(Ops& ops, const TinyModel& model, std::optional<Format> quantize, KvType kv, std::uint32_t chunk) {
  const model::Decoder decoder(ops, model.config, *model.files, 64, {.quantize = quantize});
  backend::KvShape shape = model.config.kv_shape(16, 6, kv);
  shape.num_residual_groups = 3;
  const auto cache = ops.make_kv(shape);
  model::Workspace workspace = decoder.make_workspace(64, 64, {});
  const std::uint32_t lengths[] = {1, 19, 17};
  const std::uint32_t all[] = {0, 1, 2};
  const Prompts prompts(lengths, 16);
  SampledRow out;
  for (std::uint32_t first = 0; first < 19; first += chunk) {
    OwnedBatch batch = make_step(prompts, first, chunk, 16, all);
    for (TokenId& token : batch.tokens) token %= static_cast<TokenId>(model.config.vocab);
    std::vector<backend::Choice> choices(batch.logits_rows.size());
    decoder.forward(batch.view(), *cache, workspace);
    ops.collect(choices);
    const std::vector<float> rows = read(ops, *workspace.logits, static_cast<std::uint32_t>(choices.size()));
    out.logits.insert(out.logits.end(), rows.begin(), rows.end());
    for (const backend::Choice& choice : choices) out.tokens.push_back(choice.token);
  }
  for (const BlockId block : prompts.tables[1]) {
    ops.read_block(*cache, block, out.blocks.emplace_back(cache->block_bytes()));
  }
  return out;
}

void expect_equal(const SampledRow& a, const SampledRow& b) {
  EXPECT_TRUE(same_bits(a.logits, b.logits));
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.blocks, b.blocks);
}

TEST(ShardedOps, DecodeWithTheBitsOfOneGpuInEveryTypeOfWeights) {
  struct Case {
    const char* dtype;
    std::optional<Format> quantize;
  };
  for (const auto& [dtype, quantize] : quire::testing::sampled(
           {Case{"F32", std::nullopt}, Case{"F16", std::nullopt}, Case{"BF16", std::nullopt},
            Case{"BF16", Format::kInt8}, Case{"BF16", Format::kInt4}, Case{"BF16", Format::kW8A8},
            Case{"BF16", Format::kW4A8}, Case{"BF16", Format::kW16A16}, Case{"BF16", Format::kFp8}})) {
    SCOPED_TRACE(std::string(dtype) + " " + name_of(quantize.value_or(Format::kBF16)));
    const TinyModel model(60, /*tied=*/false, dtype);
    expect_equal(said(*of_ranks(2), model, quantize, KvType::kBF16, 10),
                 said(*one_gpu(), model, quantize, KvType::kBF16, 10));
  }
}

TEST(ShardedOps, DecodeWithTheBitsOfOneGpuWithFewerKvHeadsThanRanks) {
  for (const std::uint32_t num_kv_heads : {1u, 2u}) {
    for (const KvType kv : quire::testing::sampled({KvType::kF32, KvType::kInt8, KvType::kInt4})) {
      TinyModel model(60, /*tied=*/false, "BF16", num_kv_heads);
      const SampledRow expected = said(*one_gpu(), model, std::nullopt, kv, 10);
      model.config.copy_kv_heads(4);
      const SampledRow copied = said(*of_ranks(4), model, std::nullopt, kv, 10);
      EXPECT_TRUE(same_bits(copied.logits, expected.logits)) << num_kv_heads << " " << name_of(kv);
      EXPECT_EQ(copied.tokens, expected.tokens);
    }
  }
}

// A norm is every rank's own: it reads what was written on each.
TEST(ShardedOps, WriteRowsForEveryRank) {
  Random random(9);
  const std::vector<float> rows = random.floats(std::size_t{2} * 24);
  const std::vector<float> scale = random.floats(24);
  const auto normed = [&](Ops& ops) {
    const auto in = ops.make_buffer(4, 24);
    const auto out = ops.make_buffer(4, 24);
    ops.write(rows, *in);
    const OwnedBatch batch = plain_rows(2);
    ops.begin(batch.view());
    ops.norm(*in, {ops.upload(scale).get(), 1e-5f}, 2, *out);
    ops.collect({});
    return read(ops, *out, 2);
  };
  EXPECT_TRUE(same_bits(normed(*of_ranks(3)), normed(*one_gpu())));
}

TEST(ShardedOps, StoreTheBytesOfOneGpuInEveryTypeOfCache) {
  const TinyModel model(60, /*tied=*/true, "BF16");
  for (const KvType kv : backend::kAllKvTypes) {
    SCOPED_TRACE(backend::name_of(kv));
    const SampledRow one = said(*one_gpu(), model, std::nullopt, kv, 19);
    EXPECT_FALSE(one.blocks.empty());
    expect_equal(said(*of_ranks(2), model, std::nullopt, kv, 19), one);
  }
}

TEST(ShardedOps, DecodeWithTheBitsOfOneGpuOnFourRanksAndWhereTheVocabularyIsWhole) {
  const TinyModel even(60, /*tied=*/true, "BF16");
  const TinyModel odd(61, /*tied=*/true, "BF16");
  expect_equal(said(*of_ranks(4), even, std::nullopt, KvType::kF32, 19),
               said(*one_gpu(), even, std::nullopt, KvType::kF32, 19));
  expect_equal(said(*of_ranks(2), odd, std::nullopt, KvType::kF32, 19),
               said(*one_gpu(), odd, std::nullopt, KvType::kF32, 19));
}

// All but what the engine's shortest messages are goes by the library, which adds in an order of its own.
TEST(ShardedOps, HaveTheBitsOfOneGpuWhereLongMessagesGoByNccl) {
  const TinyModel model(60, /*tied=*/false, "BF16");
  const int devices[] = {0, 1};
  const auto ops = make_sharded_ops(make_simulated_ranks(2), {.max_rows = 64}, {.box = 20},
                                    std::make_unique<Nccl>(devices, QUIRE_FAKE_NCCL));
  expect_equal(said(*ops, model, Format::kInt8, KvType::kFp8, 7),
               said(*one_gpu(), model, Format::kInt8, KvType::kFp8, 7));
}

// Op by op, where a weight is one matrix that holds q, k and v: nobody says so when it is packed.
TEST(ShardedOps, HaveTheBitsOfOneGpuOpByOpAndFused) {
  const auto logits = [](bool fused, const std::function<std::unique_ptr<Ops>()>& make) {
    DecoderConfig config;
    config.fused = fused;
    config.make = make;
    cpu::test::Decoder decoder(config);
    const std::uint32_t lengths[] = {5, 2};
    const std::uint32_t all[] = {0, 1};
    const Prompts prompts(lengths, config.block_tokens);
    const OwnedBatch batch = make_step(prompts, 0, 5, config.block_tokens, all);
    std::vector<backend::Choice> choices(batch.logits_rows.size());
    decoder.step(batch.view(), choices);
    return decoder.logits(static_cast<std::uint32_t>(choices.size()));
  };
  for (const bool fused : {false, true}) {
    EXPECT_TRUE(same_bits(logits(fused, [] { return of_ranks(2, kMaxRows); }),
                          logits(fused, [] { return one_gpu(kMaxRows); })));
  }
}

TEST(ShardedOps, AddUpTheAccumulatedScoresOfAllHeads) {
  const auto voted = [](Ops& ops) {
    const LabShape shape{4, 2, 16, 16, KvType::kBF16, 0, 0.0f, LabBias::kDistance};
    const std::uint32_t lengths[] = {40, 9};
    auto sequences = lab_sequences(shape, lengths, 3);
    sequences[0].accumulated_scores = true;
    Lab lab(ops, shape, std::move(sequences), 1);
    lab.prefill(13, /*together=*/true);
    return std::pair(lab.out(), lab.accumulated_scores());
  };
  const auto ranks = voted(*of_ranks(2));
  const auto one = voted(*one_gpu());
  EXPECT_EQ(ranks.second, one.second);
  for (std::size_t s = 0; s < one.first.size(); ++s) EXPECT_TRUE(same_bits(ranks.first[s], one.first[s]));
}

TEST(ShardedOps, KeepBlocksAsBytes) {
  const backend::KvShape shape{backend::kv_layers(3, 4, 8), 16, 3, KvType::kBF16};
  const auto ranks = of_ranks(4);
  const auto one = one_gpu();
  const auto cache = ranks->make_kv(shape);
  const auto whole = one->make_kv(shape);
  ASSERT_EQ(cache->block_bytes(), whole->block_bytes());
  EXPECT_EQ(cache->bytes(), whole->bytes());
  Random random(1);
  std::vector<std::byte> bytes(cache->block_bytes());
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  const backend::BlockCopy copy{BlockId{1}, BlockId{2}};
  const backend::RowCopy row{35, 34};
  std::vector<std::vector<std::byte>> out;
  for (const auto& [ops, kv] : {std::pair{ranks.get(), cache.get()}, std::pair{one.get(), whole.get()}}) {
    ops->write_block(*kv, BlockId{1}, bytes);
    ops->copy_blocks(*kv, {&copy, 1});
    ops->poison_block(*kv, BlockId{1});
    ops->read_block(*kv, BlockId{2}, out.emplace_back(bytes.size()));
    ops->copy_rows(*kv, {&row, 1});
    ops->read_block(*kv, BlockId{2}, out.emplace_back(bytes.size()));
  }
  EXPECT_EQ(out[0], bytes);
  EXPECT_EQ(out[2], bytes);
  EXPECT_NE(out[1], bytes);
  EXPECT_EQ(out[1], out[3]);
}

// A block is read back as it was written, though the order of its bytes is not that of one GPU.
TEST(ShardedOps, KeepBlocksOfGroupsOfOtherSizesAsBytes) {
  const backend::KvShape shape{
      {{.num_kv_heads = 4, .head_dim = 8, .group = 0}, {.num_kv_heads = 8, .head_dim = 8, .group = 1}},
      16,
      3,
      KvType::kBF16};
  ASSERT_FALSE(shape.groups_are_alike());
  const auto ranks = of_ranks(2);
  const auto cache = ranks->make_kv(shape);
  ASSERT_EQ(cache->block_bytes(), one_gpu()->make_kv(shape)->block_bytes());
  Random random(1);
  std::vector<std::byte> bytes(cache->block_bytes());
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  const backend::BlockCopy copy{BlockId{1}, BlockId{2}};
  ranks->write_block(*cache, BlockId{1}, bytes);
  ranks->copy_blocks(*cache, {&copy, 1});
  std::vector<std::byte> out(bytes.size());
  ranks->read_block(*cache, BlockId{2}, out);
  EXPECT_EQ(out, bytes);
}

TEST(ShardedOps, AdoptWhatTheyPackedAndNothingThatWasCutOtherwise) {
  Random random(3);
  const auto ranks = of_ranks(2);
  for (const std::uint32_t n : {20u, 21u}) {  // cut, and whole
    const Matrix w = random_matrix(random, n, 30, Format::kBF16);
    const std::vector<float> bias = random.floats(n);
    const std::vector<float> x = random.floats(2 * 30);
    const auto packed = pack(*ranks, w, bias);
    const backend::WeightShape shape{n, 30, backend::Format::kBF16, true};
    const auto adopted = ranks->adopt(shape, packed->packed(), nullptr);
    ASSERT_NE(adopted, nullptr);
    const auto one = one_gpu();
    const std::vector<float> expected = run_linear(*one, x, *pack(*one, w, bias), 2);
    EXPECT_TRUE(same_bits(run_linear(*ranks, x, *packed, 2), expected));
    EXPECT_TRUE(same_bits(run_linear(*ranks, x, *adopted, 2), expected));
    EXPECT_EQ(ranks->adopt(shape, packed->packed().first(packed->bytes() - 1), nullptr), nullptr);
    EXPECT_EQ(ranks->adopt({n + 16, 30, backend::Format::kBF16, true}, packed->packed(), nullptr), nullptr);
    EXPECT_EQ(of_ranks(4)->adopt(shape, packed->packed(), nullptr), nullptr);
  }
  EXPECT_NE(ranks->layout(), of_ranks(4)->layout());
  EXPECT_NE(ranks->layout(), one_gpu()->layout());
}

TEST(ShardedOps, HoldOfAWeightTheirShareAndOfWhatIsWholeAllOfIt) {
  Ranks ranks = make_simulated_ranks(2);
  std::vector<Device*> devices;
  for (const auto& device : ranks.devices) devices.push_back(device.get());
  if (devices[0]->name() != "simulated") GTEST_SKIP() << "a GPU gives out memory by megabytes";
  const auto ops = make_sharded_ops(std::move(ranks), {.max_rows = 4});
  Random random(1);
  for (const std::uint32_t n : {64u, 65u}) {
    const Matrix w = random_matrix(random, n, 40, Format::kBF16);
    const auto room = pack(*ops, w);  // scratch for such a layer is there from now on
    const std::uint64_t before[] = {devices[0]->free_bytes(), devices[1]->free_bytes()};
    const auto packed = pack(*ops, w);
    const std::uint64_t shard = weight_bytes(n == 64 ? 32 : 65, 40, backend::Format::kBF16);
    for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(before[rank] - devices[rank]->free_bytes(), shard) << n;
  }
}

TEST(ShardedOps, NameTheModeOfOneGpuAndRefuseKvHeadsThatDoNotDivide) {
  const auto ranks = of_ranks(2);
  EXPECT_THAT(ranks->description(), StartsWith("gpu-"));  // whose bits these are: files of the cache are good for both
  EXPECT_THAT(ranks->description(), HasSubstr("2 ranks"));
  for (const std::uint32_t heads : {1u, 3u}) {
    try {
      ranks->make_kv({backend::kv_layers(1, heads, 8), 16, 2, KvType::kF32});
      ADD_FAILURE() << heads;
    } catch (const StartError& error) {
      EXPECT_THAT(error.what(), HasSubstr("tensor-parallel-size 2 does not divide num_key_value_heads"));
    }
  }
  EXPECT_NE(ranks->make_kv({backend::kv_layers(1, 2, 8), 16, 2, KvType::kF32}), nullptr);
}

TEST(ShardedOps, TakeNothingOfAnyDeviceWithinAStep) {
  const TinyModel model(60, /*tied=*/false, "BF16");
  Ranks ranks = make_simulated_ranks(2);
  std::vector<Device*> devices;
  for (const auto& device : ranks.devices) devices.push_back(device.get());
  const auto ops = make_sharded_ops(std::move(ranks), {.max_rows = 64});
  const model::Decoder decoder(*ops, model.config, *model.files, 64);
  const auto cache = ops->make_kv(model.config.kv_shape(16, 6, KvType::kBF16));
  model::Workspace workspace = decoder.make_workspace(64, 64, {});
  const std::uint64_t before[] = {devices[0]->num_taken(), devices[1]->num_taken()};
  const std::uint32_t lengths[] = {20};
  const std::uint32_t all[] = {0};
  const OwnedBatch batch = make_step(Prompts(lengths, 16), 0, 20, 16, all);
  OwnedBatch tokens = batch;
  for (TokenId& token : tokens.tokens) token %= 60;
  std::vector<backend::Choice> choices(tokens.logits_rows.size());
  decoder.forward(tokens.view(), *cache, workspace);
  ops->collect(choices);
  EXPECT_GT(before[0], 10u);
  EXPECT_EQ(devices[0]->num_taken(), before[0]);
  EXPECT_EQ(devices[1]->num_taken(), before[1]);
}

// Greedy and drawn requests in one engine: what each hears.
std::vector<std::vector<TokenId>> heard(Ops& ops) REQUIRES(engine_role) {
  const TinyModel model(60, /*tied=*/false, "F32");
  const model::Decoder decoder(ops, model.config, *model.files, 64);
  model::RunnerLimits limits;
  limits.max_rows = 24;
  limits.max_sequences = 3;
  limits.num_blocks = 7;
  model::DecoderRunner runner(ops, decoder, limits);
  EngineRig rig({.num_blocks = 7,
                 .max_num_seqs = 3,
                 .max_num_batched_tokens = 24,
                 .max_model_len = 64,
                 .vocab = 60,
                 .cut_by_time = false},
                runner);
  std::vector<Client> clients;
  const auto ask = [&](std::uint32_t length, std::uint32_t max_tokens, const quire::testing::Ask& how) {
    std::vector<TokenId> prompt = quire::testing::toy_prompt(length, length);
    for (TokenId& token : prompt) token %= 60;
    clients.push_back(rig.submit_many(prompt, max_tokens, how)[0]);
  };
  ask(9, 8, {});
  ask(14, 6, {.params = {.temperature = 0.9f, .top_p = 0.9f, .seed = 4}});
  rig.iterate();
  ask(30, 9, {.params = {.temperature = 1.0f, .seed = 5}});
  rig.run(clients);
  while (!rig.engine.idle()) rig.iterate();
  std::vector<std::vector<TokenId>> all;
  for (const Client& client : clients) all.push_back(client.tokens);
  return all;
}

TEST(EngineOnRanks, SaysWhatTheCpuSaysWithOneStepAndWithTwoInFlight) {
  const RoleScope role(engine_role);
  const auto expected = heard(*cpu::make_cpu_ops({.num_threads = 1, .isa = "auto", .max_rows = 24}));
  for (const std::uint32_t depth : {1u, 2u}) {
    const auto ops = of_ranks(2, 24, depth);
    EXPECT_EQ(ops->depth(), depth);
    EXPECT_EQ(heard(*ops), expected) << depth;
  }
}

}  // namespace
}  // namespace quire::gpu
