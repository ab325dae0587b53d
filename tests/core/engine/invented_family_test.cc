// A family that no config.json has: norms on both sides of attention and MLP with biases, scores and logits capped, an
// MLP of relu² without a gate, half of each head turned, one layer that slides, and tensor names of its own. A ModelSpec
// alone makes it: it is served with the same bits in every setting, and they are close to a plain forward pass in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "core/cpu/cpu_ops.h"
#include "tests/core/engine/plain_pass.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/support/engine_rig.h"
#include "tests/support/recording_runner.h"

namespace quire::engine::invented_family_test {
namespace {

using model::ModelSpec;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RecordingRunner;

constexpr std::uint32_t kVocab = 101;
constexpr std::uint32_t kLongest = 300;  // more than a span of attention

ModelSpec invented() {
  model::LayerSpec layer;
  layer.placement = model::Placement::kSandwich;
  layer.norm = {backend::NormKind::kLayer, 1e-5f, /*bias=*/true};
  layer.attention.num_heads = 4;
  layer.attention.num_kv_heads = 2;
  layer.attention.head_dim = 16;
  layer.attention.scale = 0.4f;
  layer.attention.softcap = 1.5f;
  layer.mlp = {.width = 56, .activation = backend::Activation::kRelu2, .gated = false};
  ModelSpec spec;
  spec.architecture = "InventedForCausalLM";
  spec.model_type = "invented";
  spec.hidden = spec.embedding = 40;
  spec.vocab = kVocab;
  spec.max_positions = kLongest;
  spec.ropes.resize(1);
  spec.ropes[0].rotary_fraction = 0.5;
  spec.layers.assign(2, layer);
  spec.layers[1].attention.window = 19;
  spec.final_norm = layer.norm;
  spec.logit_softcap = 2.5f;
  model::TensorNames& names = spec.names;
  names.prefix = "model.trunk.";
  names.input_norm = "before_mix";
  names.q = "mix.ask";
  names.k = "mix.key";
  names.v = "mix.value";
  names.out = "mix.out";
  names.attention_norm = "after_mix";
  names.mlp_norm = "before_think";
  names.up = "think.widen";
  names.down = "think.narrow";
  names.mlp_out_norm = "after_think";
  names.final_norm = "last";
  names.head = "speak";
  return spec;
}

std::string checkpoint(const std::string& dtype) {
  return model::testing::safetensors_file(model::testing::fitting_tensors(invented(), dtype));
}

struct Request {
  std::uint32_t prompt, max_tokens, arrival;
  sample::Params params;
};
const std::vector<Request> kRequests = {{12, 40, 0, {.temperature = 0.0f}},
                                        {250, 30, 2, {.temperature = 0.8f, .top_p = 0.9f, .seed = 7}},
                                        {33, 24, 4, {.temperature = 1.0f, .min_p = 0.02f, .seed = 8}},
                                        {70, 30, 6, {.temperature = 1.3f, .top_k = 40, .seed = 9}}};

std::vector<TokenId> prompt_of(const Request& request) {
  std::mt19937 random(request.prompt);
  std::vector<TokenId> prompt(request.prompt);
  for (TokenId& token : prompt) token = static_cast<TokenId>(random() % kVocab);
  return prompt;
}

struct Setting {
  const char* name;
  std::uint32_t threads = 1;
  std::uint32_t num_blocks = 64;
  std::uint32_t block_tokens = 16;
  std::uint32_t max_num_seqs = 8;
  std::uint32_t budget = 64;
  bool together = true;
  bool warm = false;            // each request runs twice in its engine; the second answer counts
  bool preempt_always = false;  // all are sent back after every step
  bool cut = false;             // the layer that slides has blocks of its own
};

struct Received {
  std::vector<TokenId> tokens;
  std::vector<std::vector<float>> logits;
};

struct Served {
  std::vector<Received> received;
  std::uint64_t preemptions = 0;
  std::uint64_t cached_tokens = 0;
};

void finish(const Setting& setting, EngineRig& rig, std::vector<Client>& clients) REQUIRES(engine_role) {
  while (!std::ranges::all_of(clients, &Client::done)) {
    rig.iterate();
    for (Client& client : clients) client.read_all();
    if (setting.preempt_always) rig.engine.preempt_all();
  }
}

// Requests in one engine.
void run(const Setting& setting, EngineRig& rig, RecordingRunner& runner, std::span<const Request> requests,
         Served& served) REQUIRES(engine_role) {
  std::vector<Client> clients;
  std::size_t earlier = 0;
  for (int round = 0; round <= (setting.warm ? 1 : 0); ++round) {
    earlier = clients.size();
    clients.clear();
    for (const Request& request : requests) {
      while (requests.size() > 1 && rig.iterations < request.arrival) rig.iterate();
      clients.push_back(rig.submit(prompt_of(request), request.max_tokens, request.params));
    }
    finish(setting, rig, clients);
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    served.received.push_back({clients[i].tokens, runner.logits[SeqId(earlier + i + 1)]});
  }
  served.preemptions += rig.metrics.preemptions.value();
  served.cached_tokens += rig.metrics.prefix_cache_hits.value();
  EXPECT_EQ(rig.pool.num_held(), 0u) << setting.name;
}

Served serve(const Setting& setting, backend::KvType kv_type) {
  const RoleScope role(engine_role);
  const std::string safetensors = checkpoint(kv_type == backend::KvType::kF32 ? "F32" : "BF16");
  const std::vector<std::pair<std::string_view, model::FileBytes>> named{
      {"model.safetensors", std::as_bytes(std::span(safetensors.data(), safetensors.size()))}};
  const auto files = model::ModelFiles::memory(named);
  const auto ops = cpu::make_cpu_ops({.num_threads = setting.threads, .max_rows = setting.budget});
  const model::Decoder decoder(*ops, invented(), *files, kLongest);
  Served served;
  const model::KvGroups groups = setting.cut ? model::cut_into_groups(invented()) : model::one_group(invented());
  const std::size_t group = setting.together ? kRequests.size() : 1;
  for (std::size_t first = 0; first < kRequests.size(); first += group) {
    model::DecoderRunner inner(*ops, decoder,
                               {.max_rows = setting.budget,
                                .max_sequences = setting.max_num_seqs,
                                .block_tokens = setting.block_tokens,
                                .num_blocks = setting.num_blocks,
                                .kv_dtype = kv_type,
                                .groups = groups});
    RecordingRunner runner(inner, kVocab);
    EngineRig rig({.num_blocks = setting.num_blocks,
                   .block_tokens = setting.block_tokens,
                   .max_num_seqs = setting.max_num_seqs,
                   .max_num_batched_tokens = setting.budget,
                   .max_model_len = kLongest,
                   .vocab = kVocab,
                   .groups = setting.cut ? std::vector<kv::CacheGroup>{{}, {kv::CacheGroup::Kind::kWindow, 19}}
                                         : std::vector<kv::CacheGroup>{{}},
                   .residual_groups = kv_type == backend::KvType::kInt4,
                   .check_blocks = true,
                   .poison_blocks = setting.cut,
                   .cut_by_time = false},
                  runner);
    run(setting, rig, runner, std::span(kRequests).subspan(first, group), served);
  }
  return served;
}

void expect_same_bits(const std::vector<Received>& got, const std::vector<Received>& alone, const char* what) {
  ASSERT_EQ(got.size(), kRequests.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(std::string(what) + ", request " + std::to_string(i));
    EXPECT_EQ(got[i].tokens.size(), kRequests[i].max_tokens);
    EXPECT_EQ(got[i].tokens, alone[i].tokens);
    ASSERT_EQ(got[i].logits.size(), alone[i].logits.size());
    for (std::size_t token = 0; token < got[i].logits.size(); ++token) {
      ASSERT_EQ(std::memcmp(got[i].logits[token].data(), alone[i].logits[token].data(), kVocab * sizeof(float)), 0)
          << "token " << token;
    }
  }
}

std::vector<Setting> also_cut(std::vector<Setting> settings) {
  for (std::size_t i = 0, size = settings.size(); i < size; ++i) {
    settings.push_back(settings[i]);
    settings.back().cut = true;
  }
  return settings;
}

class InventedFamily : public ::testing::TestWithParam<backend::KvType> {};

TEST_P(InventedFamily, IsServedWithTheSameBitsInChunksCompanyBlocksAndThreads) {
  const Served alone = serve({.name = "alone", .together = false}, GetParam());
  for (const Setting& setting : also_cut({{.name = "together"},
                                          {.name = "two threads", .threads = 2},
                                          {.name = "chunks of at most 7", .max_num_seqs = 7, .budget = 7},
                                          {.name = "two at a time", .max_num_seqs = 2},
                                          {.name = "blocks of 48", .num_blocks = 24, .block_tokens = 48},
                                          {.name = "one row a step", .max_num_seqs = 1, .budget = 1}})) {
    expect_same_bits(serve(setting, GetParam()).received, alone.received, setting.name);
  }
}

TEST_P(InventedFamily, IsServedWithTheSameBitsBehindACachedPrefix) {
  const Served alone = serve({.name = "alone", .together = false}, GetParam());
  for (const Setting& setting : also_cut({{.name = "again", .warm = true}})) {
    const Served again = serve(setting, GetParam());
    EXPECT_GT(again.cached_tokens, 0u);
    expect_same_bits(again.received, alone.received, "behind a cached prefix");
  }
}

TEST_P(InventedFamily, IsServedWithTheSameBitsAfterPreemptions) {
  const Served alone = serve({.name = "alone", .together = false}, GetParam());
  for (const Setting& setting :
       {Setting{.name = "a pool for one and a half", .num_blocks = 20},
        Setting{.name = "a pool for one and a half of two groups", .num_blocks = 33, .cut = true},
        Setting{.name = "at every step", .budget = 400, .preempt_always = true},
        Setting{.name = "at every step", .budget = 400, .preempt_always = true, .cut = true}}) {
    const Served squeezed = serve(setting, GetParam());
    EXPECT_GT(squeezed.preemptions, 0u) << setting.name;
    expect_same_bits(squeezed.received, alone.received, setting.name);
  }
}

INSTANTIATE_TEST_SUITE_P(Kv, InventedFamily, ::testing::ValuesIn(backend::kAllKvTypes),
                         [](const auto& kv) { return std::string(backend::name_of(kv.param)); });

// The largest difference of a request's logits from those of a plain pass, in tolerances.
double largest_gap(const ModelSpec& spec, const Request& request, const Received& received) {
  std::vector<TokenId> tokens = prompt_of(request);
  const std::size_t first = tokens.size() - 1;
  tokens.insert(tokens.end(), received.tokens.begin(), received.tokens.end() - 1);
  PlainPass pass(spec, model::testing::fitting_tensors(invented(), "F32"));
  const std::vector<Row> plain = pass.logits(tokens);
  EXPECT_EQ(first + received.logits.size(), plain.size());
  double gap = 0.0;
  for (std::size_t t = 0; t < received.logits.size(); ++t) {
    const double allowed = tolerance(spec, first + t, pass.lengths[first + t], pass.widest());
    for (std::size_t i = 0; i < kVocab; ++i) {
      gap = std::max(gap, std::abs(double{received.logits[t][i]} - plain[first + t][i]) / allowed);
    }
  }
  return gap;
}

TEST(InventedFamilyLogits, AreThoseOfAPlainPassInF64) {
  const Served served = serve({.name = "together"}, backend::KvType::kF32);
  for (std::size_t i = 0; i < kRequests.size(); ++i) {
    EXPECT_LE(largest_gap(invented(), kRequests[i], served.received[i]), 1.0) << "request " << i;
  }
}

TEST(InventedFamilyLogits, ShowEachOfItsTraits) {
  const Received received = serve({.name = "together"}, backend::KvType::kF32).received[0];
  const auto gap_without = [&](const std::function<void(ModelSpec&)>& drop) {
    ModelSpec spec = invented();
    drop(spec);
    return largest_gap(spec, kRequests[0], received);
  };
  EXPECT_GT(gap_without([](ModelSpec& s) { s.layers[0].attention.softcap = 0.0f; }), 10.0);
  EXPECT_GT(gap_without([](ModelSpec& s) { s.layers[1].attention.window = 0; }), 10.0);
  EXPECT_GT(gap_without([](ModelSpec& s) { s.layers[0].attention.scale = 0.25f; }), 10.0);
  EXPECT_GT(gap_without([](ModelSpec& s) { s.ropes[0].rotary_fraction = 1.0; }), 10.0);
  EXPECT_GT(gap_without([](ModelSpec& s) { s.final_norm->bias = false; }), 10.0);
  EXPECT_GT(gap_without([](ModelSpec& s) { s.logit_softcap = 0.0f; }), 10.0);
}

}  // namespace
}  // namespace quire::engine::invented_family_test
