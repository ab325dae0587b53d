// The promise under everything that the KV cache does: cached, chunked, preempted at every step, swapped, forked, among
// 32 others, in fewer bits, with a lossy policy, the logits of a request are the same bits as alone.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/cpu/cpu_ops.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/support/engine_rig.h"
#include "tests/support/recording_runner.h"

namespace quire::engine::exactness_kv_test {
namespace {

using quire::testing::Ask;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RecordingRunner;
using quire::testing::RigOptions;
using Kind = flow::KvPolicy::Kind;

constexpr const char* kConfig = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "vocab_size": 160, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "tie_word_embeddings": true})";
constexpr std::uint32_t kVocab = 160;
constexpr std::uint32_t kLongest = 1024;

struct Case {
  const char* name;
  backend::KvType type;
  flow::KvPolicy policy;
};

struct Setting {
  const char* name;
  std::uint32_t budget = 512;
  std::uint32_t threads = 1;
  std::uint32_t block_tokens = 16;
  bool caching = false;
  bool together = false;
  bool preempt_always = false;
  bool swap = false;
  std::uint32_t neighbours = 0;
  bool twice = false;  // the second answer counts
};

struct Received {
  std::vector<TokenId> tokens;
  std::vector<std::vector<float>> logits;
};

struct Request {
  std::vector<TokenId> prompt;
  std::uint32_t max_tokens;
  sample::Params params;
};

std::vector<TokenId> random_tokens(std::uint32_t length, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(length);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % kVocab);
  return tokens;
}

std::vector<Request> requests() {
  std::vector<Request> out{{random_tokens(37, 1), 30, {.temperature = 0.0f}},
                           {random_tokens(250, 2), 20, {.temperature = 1.0f, .top_p = 0.9f, .seed = 3}},
                           {random_tokens(600, 3), 12, {.temperature = 0.8f, .seed = 4}}};
  // One that begins like the last, and then goes its own way in the middle of a block.
  out.push_back({out.back().prompt, 12, {.temperature = 1.0f, .seed = 5}});
  out.back().prompt.resize(530);
  out.back().prompt.push_back(7);
  return out;
}

class ExactnessKvTest : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    config_ = model::parse_config(kConfig, "config.json");
    auto tensors = model::testing::fitting_tensors(config_, "F32");
    safetensors_ = model::testing::safetensors_file(tensors);
  }

  static std::vector<Received> answers(const Setting& setting, const Case& which) {
    SCOPED_TRACE(setting.name);
    const RoleScope role(engine_role);
    const std::string config = kConfig;
    const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); };
    const std::vector<std::pair<std::string_view, model::FileBytes>> named{{"config.json", bytes(config)},
                                                                           {"model.safetensors", bytes(safetensors_)}};
    const auto files = model::ModelFiles::memory(named);
    const auto ops = cpu::make_cpu_ops({.num_threads = setting.threads, .isa = "auto", .max_rows = 512});
    const model::Decoder decoder(*ops, model::load_config(*files), *files, kLongest);
    const std::uint32_t num_blocks = 6 * kLongest / setting.block_tokens;
    const std::uint32_t num_swap_blocks = setting.swap ? num_blocks : 0;
    const auto all = requests();
    std::vector<Received> received(all.size());
    for (std::size_t first = 0; first < all.size(); first += setting.together ? all.size() : 1) {
      model::DecoderRunner decoder_runner(*ops, decoder,
                                          {.max_rows = 512,
                                           .max_sequences = 40,
                                           .block_tokens = setting.block_tokens,
                                           .num_blocks = num_blocks,
                                           .kv_dtype = which.type,
                                           .num_swap_blocks = num_swap_blocks});
      RecordingRunner runner(decoder_runner, kVocab);
      EngineRig rig({.num_blocks = num_blocks,
                     .block_tokens = setting.block_tokens,
                     .max_num_seqs = std::min(setting.budget, 40u),
                     .max_num_batched_tokens = setting.budget,
                     .max_model_len = kLongest,
                     .vocab = kVocab,
                     .prefix_caching = setting.caching,
                     .num_swap_blocks = num_swap_blocks,
                     .residual_groups = which.type == backend::KvType::kInt4,
                     .check_blocks = true,
                     .cut_by_time = false},
                    runner);
      const auto ask = [&](const Request& request) {
        return rig.submit_many(request.prompt, request.max_tokens,
                               {.params = request.params,
                                .cache_namespace = setting.caching ? std::optional(CacheNamespace{0, 1}) : std::nullopt,
                                .kv_policy = which.policy})[0];
      };
      std::vector<Client> clients;
      if (setting.twice) {
        for (std::size_t i = first; i < (setting.together ? all.size() : first + 1); ++i)
          clients.push_back(ask(all[i]));
        rig.run(clients);
        clients.clear();
      }
      const std::uint64_t before = setting.twice ? (setting.together ? all.size() : 1) : 0;
      std::vector<Client> others;
      for (std::uint32_t i = 0; i < setting.neighbours; ++i) {
        others.push_back(rig.submit(random_tokens(1 + i * 5, 100 + i), 40));
      }
      for (std::size_t i = first; i < (setting.together ? all.size() : first + 1); ++i) clients.push_back(ask(all[i]));
      while (!std::ranges::all_of(clients, &Client::done)) {
        rig.iterate();
        for (Client& client : clients) client.read_all();
        for (Client& client : others) client.read_all();
        if (setting.preempt_always) rig.engine.preempt_all();
      }
      EXPECT_EQ(rig.metrics.preemptions.value() > 10, setting.preempt_always);
      const bool moves = which.type != backend::KvType::kInt4 || which.policy.kind == Kind::kFull;
      EXPECT_EQ(rig.metrics.preemptions_by_swap.value() > 0, setting.swap && moves);
      for (std::size_t i = 0; i < clients.size(); ++i) {
        received[first + i] = {clients[i].tokens, runner.logits[SeqId(before + others.size() + i + 1)]};
      }
      rig.engine.abandon();
      EXPECT_EQ(rig.pool.num_held(), 0u);
    }
    return received;
  }

  static void expect_same_bits(const std::vector<Received>& got, const std::vector<Received>& alone, const char* what) {
    for (std::size_t i = 0; i < alone.size(); ++i) {
      ASSERT_EQ(alone[i].tokens.size(), requests()[i].max_tokens);
      ASSERT_EQ(alone[i].logits.size(), alone[i].tokens.size());
      EXPECT_EQ(got[i].tokens, alone[i].tokens) << what << ", request " << i;
      ASSERT_EQ(got[i].logits.size(), alone[i].logits.size()) << what << ", request " << i;
      for (std::size_t token = 0; token < got[i].logits.size(); ++token) {
        ASSERT_EQ(std::memcmp(got[i].logits[token].data(), alone[i].logits[token].data(), kVocab * sizeof(float)), 0)
            << what << ", request " << i << ", token " << token;
      }
    }
  }

  static inline model::ModelSpec config_;
  static inline std::string safetensors_;
};

TEST_P(ExactnessKvTest, WhateverTheCacheDoesTheLogitsAreThoseOfRunningAloneBitForBit) {
  const Case& which = GetParam();
  const auto alone = answers({.name = "alone"}, which);
  for (const Setting& setting : {
           Setting{.name = "a row at a time", .budget = 1},
           Setting{.name = "chunks of 7", .budget = 7, .threads = 2},
           Setting{.name = "chunks of 16, cached", .budget = 16, .caching = true, .twice = true},
           Setting{.name = "cached, together, again", .caching = true, .together = true, .twice = true},
           Setting{.name = "together, cold", .threads = 2, .caching = true, .together = true},
           Setting{.name = "blocks of 48", .block_tokens = 48, .caching = true, .together = true, .twice = true},
           Setting{.name = "preempted at every step", .together = true, .preempt_always = true},
           Setting{
               .name = "preempted at every step, cached", .caching = true, .together = true, .preempt_always = true},
           Setting{.name = "swapped at every step", .together = true, .preempt_always = true, .swap = true},
           Setting{.name = "among 32", .budget = 100, .threads = 2, .together = true, .neighbours = 32},
       }) {
    expect_same_bits(answers(setting, which), alone, setting.name);
  }
}

TEST_P(ExactnessKvTest, ALossyPolicyIsSeenInTheLogitsOfLongSequencesAlone) {
  Case full = GetParam();
  full.policy = {};
  const auto alone = answers({.name = "alone"}, GetParam());
  const auto whole = answers({.name = "whole"}, full);
  const bool lossy = GetParam().policy.kind != Kind::kFull;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const bool long_enough = requests()[i].prompt.size() >= 512;  // the first span that something drops out of
    EXPECT_EQ(alone[i].logits[0] == whole[i].logits[0], !(lossy && long_enough)) << "request " << i;
  }
}

const flow::KvPolicy kFull{};
const flow::KvPolicy kSinks{Kind::kSinkWindow, 16, 256, 0};
const flow::KvPolicy kHeavy{Kind::kHeavyHitters, 16, 256, 48};

INSTANTIATE_TEST_SUITE_P(
    TypesAndPolicies, ExactnessKvTest,
    ::testing::Values(Case{"f32", backend::KvType::kF32, kFull}, Case{"bf16", backend::KvType::kBF16, kFull},
                      Case{"fp8", backend::KvType::kFp8, kFull}, Case{"int8", backend::KvType::kInt8, kFull},
                      Case{"int4", backend::KvType::kInt4, kFull}, Case{"sinks", backend::KvType::kF32, kSinks},
                      Case{"heavy_hitters", backend::KvType::kF32, kHeavy},
                      Case{"int4_sinks", backend::KvType::kInt4, kSinks},
                      Case{"int4_heavy_hitters", backend::KvType::kInt4, kHeavy},
                      Case{"int8_heavy_hitters", backend::KvType::kInt8, kHeavy}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

}  // namespace
}  // namespace quire::engine::exactness_kv_test
