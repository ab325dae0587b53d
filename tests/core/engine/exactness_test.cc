// The promise itself, on the real decoder and CPU backend: batched, chunked, preempted, on any instruction set and
// number of threads, a request's tokens are the same and the logits behind them are the same bits.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/cpu/cpu_ops.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/support/engine_rig.h"
#include "tests/support/recording_runner.h"

namespace quire::engine::exactness_test {
namespace {

using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RecordingRunner;
using quire::testing::RigOptions;

// The notebook's model: vocabulary 320, hidden 128, feed-forward 256, 4 layers, 8 heads, 2 kv heads, context 512.
constexpr const char* kNotebookConfig = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
  "vocab_size": 320, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "tie_word_embeddings": false})";
constexpr std::uint32_t kVocab = 320;

struct Request {
  std::uint32_t prompt, max_tokens, arrival;
  sample::Params params;
};
// Lengths in the notebook's proportions, four times as long, because a CPU block is 16 tokens and not 4.
const Request kRequests[] = {{12, 40, 0, {.temperature = 0.0f}},
                             {24, 100, 2, {.temperature = 0.8f, .top_p = 0.9f, .seed = 7}},
                             {16, 32, 4, {.temperature = 1.0f, .min_p = 0.02f, .seed = 8}},
                             {20, 72, 6, {.temperature = 1.3f, .top_k = 40, .seed = 9}}};

struct Setting {
  const char* name;
  const char* isa = "auto";
  std::uint32_t threads = 1;
  std::uint32_t num_blocks = 64;
  std::uint32_t block_tokens = 16;
  std::uint32_t max_num_seqs = 8;
  std::uint32_t max_num_batched_tokens = 64;
  bool together = true;
  bool warm = false;  // each request runs twice in its engine; the second answer counts
};

struct Received {
  std::vector<TokenId> tokens;
  std::vector<std::vector<float>> logits;
};

class ExactnessTest : public ::testing::TestWithParam<backend::KvType> {
 protected:
  static void SetUpTestSuite() {
    const model::ModelSpec config = model::parse_config(kNotebookConfig, "config.json");
    for (const char* dtype : {"F32", "BF16"}) {
      auto tensors = model::testing::fitting_tensors(config, dtype);
      files_.push_back(
          {{"config.json", kNotebookConfig}, {"model.safetensors", model::testing::safetensors_file(tensors)}});
    }
  }

  // The answers to kRequests, all in one engine or each in one of its own.
  static std::vector<Received> answers(const Setting& setting, backend::KvType dtype) {
    std::vector<std::pair<std::string_view, model::FileBytes>> named;
    for (const auto& [name, bytes] : files_[dtype == backend::KvType::kF32 ? 0 : 1]) {
      named.emplace_back(name, std::as_bytes(std::span(bytes.data(), bytes.size())));
    }
    const auto files = model::ModelFiles::memory(named);
    const auto ops = cpu::make_cpu_ops(
        {.num_threads = setting.threads, .isa = setting.isa, .max_rows = setting.max_num_batched_tokens});
    const model::Decoder decoder(*ops, model::load_config(*files), *files, 512);
    std::vector<Received> received;
    const std::size_t group = setting.together ? std::size(kRequests) : 1;
    for (std::size_t first = 0; first < std::size(kRequests); first += group) {
      const auto part = run_together(setting, dtype, *ops, decoder, std::span(kRequests).subspan(first, group));
      received.insert(received.end(), part.begin(), part.end());
    }
    return received;
  }

  static std::vector<Received> run_together(const Setting& setting, backend::KvType dtype, backend::Ops& ops,
                                            const model::Decoder& decoder, std::span<const Request> requests) {
    const RoleScope role(engine_role);
    model::DecoderRunner decoder_runner(ops, decoder,
                                        {.max_rows = setting.max_num_batched_tokens,
                                         .max_sequences = setting.max_num_seqs,
                                         .block_tokens = setting.block_tokens,
                                         .num_blocks = setting.num_blocks,
                                         .kv_dtype = dtype});
    RecordingRunner runner(decoder_runner, kVocab);
    EngineRig rig({.num_blocks = setting.num_blocks,
                   .block_tokens = setting.block_tokens,
                   .max_num_seqs = setting.max_num_seqs,
                   .max_num_batched_tokens = setting.max_num_batched_tokens,
                   .vocab = kVocab},
                  runner);
    std::vector<Client> clients;
    for (const Request& request : requests) {
      while (requests.size() > 1 && rig.iterations < request.arrival) rig.iterate();
      clients.push_back(rig.submit(prompt_of(request), request.max_tokens, request.params));
    }
    rig.run(clients);
    if (setting.warm) {
      const std::vector<Client> first = std::move(clients);
      clients.clear();
      for (std::size_t i = 0; i < first.size(); ++i) {
        clients.push_back(rig.submit(prompt_of(requests[i]), requests[i].max_tokens, requests[i].params));
      }
      rig.run(clients);
    }
    cached_tokens_ = rig.metrics.prefix_cache_hits.value();
    EXPECT_EQ(rig.pool.num_held(), 0u) << setting.name;
    preemptions_ = rig.metrics.preemptions.value();
    std::vector<Received> received;
    for (std::size_t i = 0; i < clients.size(); ++i)
      received.push_back({clients[i].tokens, runner.logits[SeqId(i + 1 + (setting.warm ? clients.size() : 0))]});
    return received;
  }

  static std::vector<TokenId> prompt_of(const Request& request) {
    std::mt19937 random(request.prompt);
    std::vector<TokenId> prompt(request.prompt);
    for (TokenId& token : prompt) token = static_cast<TokenId>(random() % kVocab);
    return prompt;
  }

  static void expect_same_bits(const std::vector<Received>& got, const std::vector<Received>& alone, const char* what) {
    ASSERT_EQ(got.size(), alone.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].tokens.size(), kRequests[i].max_tokens);
      EXPECT_EQ(got[i].tokens, alone[i].tokens) << what << ", request " << i;
      ASSERT_EQ(got[i].logits.size(), alone[i].logits.size()) << what << ", request " << i;
      for (std::size_t token = 0; token < got[i].logits.size(); ++token) {
        ASSERT_EQ(std::memcmp(got[i].logits[token].data(), alone[i].logits[token].data(), kVocab * sizeof(float)), 0)
            << what << ", request " << i << ", token " << token;
      }
    }
  }

  static inline std::vector<std::vector<std::pair<std::string, std::string>>> files_;
  static inline std::uint64_t preemptions_ = 0;
  static inline std::uint64_t cached_tokens_ = 0;
};

TEST_P(ExactnessTest, BatchedChunkedAndOnAnyThreadsTheLogitsAreThoseOfRunningAloneBitForBit) {
  const auto alone = answers({.name = "alone", .together = false}, GetParam());
  for (const Setting& setting : {Setting{.name = "together"}, Setting{.name = "together, two threads", .threads = 2},
                                 Setting{.name = "chunks of at most 8", .max_num_batched_tokens = 8},
                                 Setting{.name = "two at a time", .max_num_seqs = 2},
                                 Setting{.name = "blocks of 32", .num_blocks = 32, .block_tokens = 32},
                                 Setting{.name = "one row a step", .max_num_seqs = 1, .max_num_batched_tokens = 1}}) {
    expect_same_bits(answers(setting, GetParam()), alone, setting.name);
  }
}

TEST_P(ExactnessTest, WithAPoolOfEightBlocksTheyAllStillFinishWithTheSameBits) {
  const auto alone = answers({.name = "alone", .together = false}, GetParam());
  const auto squeezed = answers({.name = "eight blocks", .num_blocks = 8}, GetParam());
  EXPECT_GT(preemptions_, 0u) << "the pool was meant to run dry";
  expect_same_bits(squeezed, alone, "eight blocks");
}

TEST_P(ExactnessTest, BehindACachedPrefixTheLogitsAreTheSameBits) {
  const auto alone = answers({.name = "alone", .together = false}, GetParam());
  const auto twice = answers({.name = "twice in one engine", .together = false, .warm = true}, GetParam());
  EXPECT_GT(cached_tokens_, 0u) << "the prompts were meant to be found";
  expect_same_bits(twice, alone, "behind a cached prefix");
}

TEST_P(ExactnessTest, EveryInstructionSetOfThisMachineGivesTheSameBits) {
  const auto isas = cpu::supported_isas();
  const auto alone = answers({.name = "scalar", .isa = "scalar", .together = false}, GetParam());
  for (const std::string& isa : isas) {
    expect_same_bits(answers({.name = isa.c_str(), .isa = isa.c_str(), .threads = 2}, GetParam()), alone, isa.c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(WeightsAndCache, ExactnessTest,
                         ::testing::Values(backend::KvType::kF32, backend::KvType::kBF16, backend::KvType::kFp8,
                                           backend::KvType::kInt8),
                         [](const auto& parameter) { return std::string(backend::name_of(parameter.param)); });

}  // namespace
}  // namespace quire::engine::exactness_test
