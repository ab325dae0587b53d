// Requests that ask for everything that one may ask for, and what each of them hears in a given setting, on the real
// decoder and CPU backend.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/cpu/cpu_ops.h"
#include "core/sample/reference.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/support/engine_rig.h"
#include "tests/support/recording_runner.h"
#include "tests/support/toy_grammars.h"

namespace quire::engine::testing {

using quire::testing::Ask;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RecordingRunner;
using quire::testing::RigOptions;

inline constexpr const char* kConfig = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "vocab_size": 320, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": false})";
inline constexpr std::uint32_t kVocab = 320;
inline constexpr std::uint32_t kMaxLength = 128;

struct Request {
  std::uint32_t prompt, max_tokens, arrival;
  Ask ask;
};

inline std::shared_ptr<const sample::Rules> shared(sample::Rules rules) {
  return std::make_shared<const sample::Rules>(std::move(rules));
}

inline std::vector<TokenId> prompt_of(const Request& request) {
  std::vector<TokenId> prompt = quire::testing::toy_prompt(request.prompt, request.prompt);
  for (TokenId& token : prompt) token %= static_cast<TokenId>(kVocab);
  return prompt;
}

// Every rule, the three toy grammars, n > 1, candidates, and prompts that are scored with and without an answer.
inline std::vector<Request> many_requests() {
  const auto vocabulary = quire::testing::toy_vocabulary(kVocab);
  std::vector<TokenId> low(200);
  for (TokenId id = 0; id < 200; ++id) low[static_cast<std::size_t>(id)] = id;
  std::vector<Request> all(10);
  all[0] = {20, 30, 0, {.params = {.temperature = 0.8f, .typical_p = 0.9f, .seed = 1, .logprob = true, .num_top = 3}}};
  all[0].ask.rules = shared({1.2f, 0.4f, 0.3f, {{5, 4.0f}, {77, -3.0f}}, low, {{5, 5}, {9}}, 10});
  all[0].ask.stop_tokens = {5, 300};
  all[1] = {33, 0, 0, {.params = {.num_top = 5}, .scores_prompt = true}};
  all[2] = {20, 25, 1, {.params = {.temperature = 1.0f, .seed = 3, .logprob = true}, .n = 3, .scores_prompt = true}};
  all[2].ask.rules = shared({.repetition_penalty = 0.7f});
  for (int number = 1; number <= quire::testing::kNumToyGrammars; ++number) {
    Request& request = all[static_cast<std::size_t>(number) + 2];
    request = {12, 16, 2, {.params = {.temperature = 1.0f, .seed = 4, .logprob = true, .num_top = 2}}};
    request.ask.grammar = quire::testing::toy_grammar(number, vocabulary);
    request.ask.n = 2;
  }
  all[5].ask.rules = shared({.frequency_penalty = 1.5f, .bad_words = {{1, 1}}, .min_tokens = 4});
  all[6] = {70, 12, 3, {.params = {.temperature = 0.0f, .logprob = true, .num_top = 1}, .scores_prompt = true}};
  all[7] = {1, 20, 4, {.params = {.temperature = 0.0f, .logprob = true}, .scores_prompt = true}};
  all[8] = {45, 0, 1, {.pooling = flow::Pooling::kMean}};
  all[9] = {70, 0, 3, {.pooling = flow::Pooling::kLast}};  // begins as the scored one does
  return all;
}

struct Setting {
  const char* name;
  std::uint32_t threads = 1;
  std::uint32_t num_blocks = 64;
  std::uint32_t block_tokens = 16;
  std::uint32_t max_num_seqs = 16;
  std::uint32_t max_num_batched_tokens = 64;
  std::uint32_t num_swap_blocks = 0;
  bool prefix_caching = true;
  bool together = true;
  bool warm = false;   // everything runs twice in its engine; the second answer counts
  bool storm = false;  // all are sent back again and again
  std::uint32_t max_logits_rows = 0;
  speculate::Drafter* drafter = nullptr;
  std::uint32_t max_draft_nodes = 8;
};

// What a client heard, as bytes, so that equal means equal.
struct Received {
  std::vector<TokenId> tokens;
  flow::Finish finish = flow::Finish::kNone;
  std::string numbers;
  bool operator==(const Received&) const = default;
};

template <typename List>
void append_bytes(std::string& out, const List& values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
}

inline Received drained_by(const Client& client) {
  Received received{client.tokens, client.finish, {}};
  append_bytes(received.numbers, client.logprobs);
  for (const auto& top : client.tops) append_bytes(received.numbers, top);
  if (const bridge::PromptScores* scores = client.stream->scores()) {
    append_bytes(received.numbers, scores->logprobs);
    append_bytes(received.numbers, scores->ranks);
    append_bytes(received.numbers, scores->top);
  }
  if (const bridge::PromptEmbedding* embedding = client.stream->embedding()) {
    EXPECT_TRUE(embedding->finite() && embedding->sums[0] != 0.0);
    append_bytes(received.numbers, embedding->sums);
  }
  return received;
}

class ExactRequestsTest : public ::testing::TestWithParam<backend::KvType> {
 protected:
  struct Model {
    explicit Model(std::uint32_t threads, std::uint32_t max_rows)
        : config(model::parse_config(kConfig, "config.json")),
          safetensors(model::testing::safetensors_file(model::testing::fitting_tensors(config, "F32"))),
          files(model::ModelFiles::memory(named())),
          ops(cpu::make_cpu_ops({.num_threads = threads, .max_rows = max_rows})),
          decoder(*ops, model::load_config(*files), *files, kMaxLength) {}
    std::vector<std::pair<std::string_view, model::FileBytes>> named() const {
      return {{"config.json", std::as_bytes(std::span(std::string_view(kConfig)))},
              {"model.safetensors", std::as_bytes(std::span(std::string_view(safetensors)))}};
    }
    model::ModelSpec config;
    std::string safetensors;
    std::unique_ptr<model::ModelFiles> files;
    std::unique_ptr<backend::Ops> ops;
    model::Decoder decoder;
  };

  static RigOptions rig_options(const Setting& setting) {
    return {.num_blocks = setting.num_blocks,
            .block_tokens = setting.block_tokens,
            .max_num_seqs = setting.max_num_seqs,
            .max_num_batched_tokens = setting.max_num_batched_tokens,
            .max_logits_rows = setting.max_logits_rows,
            .max_model_len = kMaxLength,
            .vocab = kVocab,
            .prefix_caching = setting.prefix_caching,
            .num_swap_blocks = setting.num_swap_blocks,
            .residual_groups = GetParam() == backend::KvType::kInt4,
            .drafter = setting.drafter,
            .max_draft_nodes = setting.max_draft_nodes};
  }
  static model::RunnerLimits limits(const Setting& setting) {
    return {.max_rows = setting.max_num_batched_tokens,
            .max_sequences = setting.max_num_seqs,
            .max_logits_rows = setting.max_logits_rows,
            .block_tokens = setting.block_tokens,
            .num_blocks = setting.num_blocks,
            .kv_dtype = GetParam(),
            .num_swap_blocks = setting.num_swap_blocks};
  }

  // By request, by choice.
  static std::vector<std::vector<Received>> answers(const Setting& setting) {
    const RoleScope role(engine_role);
    Model model(setting.threads, setting.max_num_batched_tokens);
    const std::vector<Request> requests = many_requests();
    std::vector<std::vector<Received>> received;
    const std::size_t group = setting.together ? requests.size() : 1;
    preemptions_ = 0;
    accepted_ = 0;
    for (std::size_t first = 0; first < requests.size(); first += group) {
      model::DecoderRunner runner(*model.ops, model.decoder, limits(setting));
      EngineRig rig(rig_options(setting), runner);
      const auto part = std::span(requests).subspan(first, group);
      if (setting.warm) run(rig, setting, part);
      for (auto& one : run(rig, setting, part)) received.push_back(std::move(one));
      EXPECT_EQ(rig.pool.num_held(), 0u) << setting.name;
      accepted_ += rig.metrics.spec_accepted_tokens.value();
      preemptions_ += rig.engine.scheduler().num_preemptions();
    }
    return received;
  }

  static std::vector<std::vector<Received>> run(EngineRig& rig, const Setting& setting,
                                                std::span<const Request> requests) REQUIRES(engine_role) {
    std::vector<Client> clients;
    std::vector<std::size_t> first_of;
    for (const Request& request : requests) {
      for (std::uint32_t iteration = 0; requests.size() > 1 && iteration < request.arrival; ++iteration) rig.iterate();
      first_of.push_back(clients.size());
      for (Client& client : rig.submit_many(prompt_of(request), request.max_tokens, request.ask)) {
        clients.push_back(std::move(client));
      }
    }
    for (int iteration = 0; setting.storm && iteration < 60; ++iteration) {
      rig.iterate();
      if (iteration % 3 == 0) rig.engine.preempt_all();
      for (Client& client : clients) client.read_all();
    }
    rig.run(clients);
    first_of.push_back(clients.size());
    std::vector<std::vector<Received>> received(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      for (std::size_t at = first_of[i]; at < first_of[i + 1]; ++at) received[i].push_back(drained_by(clients[at]));
    }
    return received;
  }

  static void expect_equal(const std::vector<std::vector<Received>>& got,
                           const std::vector<std::vector<Received>>& alone, const char* what) {
    ASSERT_EQ(got.size(), alone.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      for (std::size_t choice = 0; choice < alone[i].size(); ++choice) {
        EXPECT_EQ(got[i][choice].tokens, alone[i][choice].tokens) << what << ", request " << i;
        EXPECT_TRUE(got[i][choice] == alone[i][choice]) << what << ", request " << i << ", choice " << choice;
      }
    }
  }

  static inline std::uint64_t preemptions_ = 0;
  static inline std::uint64_t accepted_ = 0;  // guesses
};

}  // namespace quire::engine::testing
