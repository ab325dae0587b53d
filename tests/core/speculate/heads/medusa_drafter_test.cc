#include "core/speculate/heads/medusa_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/cpu/cpu_ops.h"
#include "core/speculate/heads/head_tensors.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/core/speculate/book_tree.h"
#include "tests/core/speculate/heads/tiny_head.h"

namespace quire::speculate::medusa_drafter_test {
namespace {

using model::testing::TempDir;
using model::testing::TestTensor;
using testing::Grown;
using testing::Path;
using testing::random_states;
using testing::times;
using testing::values_of;

constexpr std::uint32_t kHeads = 3;
constexpr std::uint32_t kBlocks = 2;
constexpr std::uint32_t kHidden = 16;
constexpr std::uint32_t kVocab = 40;

struct Names {
  const char* name;
  std::function<std::string(std::uint32_t, std::uint32_t)> block;
  std::function<std::string(std::uint32_t)> output;
};

// Heads as a file has them, and as plain loops in f64 compute them.
struct PlainHeads {
  explicit PlainHeads(const Names& names) {
    for (std::uint32_t head = 0; head < kHeads; ++head) {
      for (std::uint32_t block = 0; block < kBlocks; ++block) {
        add(names.block(head, block) + ".weight", {kHidden, kHidden});
        add(names.block(head, block) + ".bias", {kHidden});
      }
      add(names.output(head) + ".weight", {kVocab, kHidden});
    }
  }
  void add(const std::string& name, const std::vector<std::uint64_t>& shape) {
    tensors.push_back(model::testing::filled(name, "F32", shape));
  }
  std::vector<double> logprobs(std::uint32_t head, const std::vector<float>& state) const {
    std::size_t at = std::size_t{head} * (2 * kBlocks + 1);
    std::vector<double> x(state.begin(), state.end());
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      std::vector<double> y = times(tensors[at++], x);
      const std::vector<float> bias = values_of(tensors[at++]);
      for (std::uint32_t i = 0; i < kHidden; ++i) {
        const double gate = y[i] + static_cast<double>(bias[i]);
        x[i] += gate / (1.0 + std::exp(-gate));
      }
    }
    std::vector<double> logits = times(tensors[at], x);
    double sum = 0.0;
    for (const double logit : logits) sum += std::exp(logit);
    for (double& logit : logits) logit -= std::log(sum);
    return logits;
  }
  std::vector<TestTensor> tensors;
};

const std::string kConfig = R"({"medusa_num_heads": 2, "medusa_num_layers": 2, "hidden_size": 16, "vocab_size": 40,
  "base_model_name_or_path": "x"})";

// A target, and heads in a directory.
class MedusaRig : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write_target(target_dir_);
    target_files_ = model::ModelFiles::directory(target_dir_.path());
    ops_ = cpu::make_cpu_ops({.num_threads = 1, .isa = "auto", .max_rows = 64});
    target_.emplace(*ops_, model::load_config(*target_files_), *target_files_, 64);
  }
  std::unique_ptr<MedusaDrafter> load(const std::vector<TestTensor>& tensors, const std::string& config = kConfig) {
    head_dir_.write("config.json", config);
    head_dir_.write("model.safetensors", model::testing::safetensors_file(tensors));
    const auto files = model::ModelFiles::directory(head_dir_.path());
    return std::make_unique<MedusaDrafter>(*ops_, *target_, *files, MedusaOptions{.width = 3}, 64, 8);
  }

  TempDir target_dir_, head_dir_;
  std::unique_ptr<model::ModelFiles> target_files_;
  std::unique_ptr<backend::Ops> ops_;
  std::optional<model::Decoder> target_;
};

class MedusaDrafterTest : public MedusaRig, public ::testing::WithParamInterface<Names> {};

INSTANTIATE_TEST_SUITE_P(
    Layouts, MedusaDrafterTest,
    ::testing::Values(
        Names{"first", [](auto h, auto b) { return std::to_string(h) + "." + std::to_string(b) + ".linear"; },
              [](auto h) { return std::to_string(h) + "." + std::to_string(kBlocks); }},
        Names{"inside_a_model",
              [](auto h, auto b) { return "medusa_head." + std::to_string(h) + "." + std::to_string(b) + ".linear"; },
              [](auto h) { return "medusa_head." + std::to_string(h) + "." + std::to_string(kBlocks); }},
        Names{"by_kind", [](auto h, auto b) { return "blocks." + std::to_string(h) + ".layers." + std::to_string(b); },
              [](auto h) { return "lm_heads." + std::to_string(h); }}),
    [](const auto& names) { return std::string(names.param.name); });

TEST_P(MedusaDrafterTest, GrowsTheLikeliestPathsOfTheHeadsLists) {
  const RoleScope role(engine_role);
  const PlainHeads plain(GetParam());
  const std::unique_ptr<MedusaDrafter> drafter = load(plain.tensors);
  EXPECT_EQ(drafter->num_heads(), kHeads);  // whatever config.json says
  std::vector<float> values;
  const auto states = random_states(*ops_, 10, values);
  const std::vector<TokenId> tokens = {1, 2, 3, 4, 5, 6};
  const std::vector<BlockId> table = {BlockId(0)};
  const std::array<std::vector<std::uint32_t>, 3> rows = {{{7, 8, 9}, {0}, {2, 5}}};
  std::vector<Observed> observed;
  std::vector<Asked> asked;
  const sample::Params greedy{.temperature = 0.0f};
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    const auto num = static_cast<std::uint32_t>(rows[i].size());
    observed.push_back({.seq = SeqId(i), .tokens = tokens, .first_position = 5 - num, .rows = rows[i], .table = table});
    asked.push_back(
        {.seq = SeqId(i), .tokens = tokens, .table = table, .sampling = &greedy, .max_nodes = 7, .max_depth = 2 + i});
  }
  drafter->observe({.sequences = observed, .states = states.get()});
  std::vector<sample::TokenTree> trees(asked.size());
  drafter->propose(asked, trees);
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    const float* state = &values[std::size_t{rows[i].back()} * kHidden];
    const auto odds = [&](const Path& path) {
      const std::vector<double> logprobs =
          plain.logprobs(static_cast<std::uint32_t>(path.size()), std::vector<float>(state, state + kHidden));
      std::vector<std::pair<TokenId, float>> all;
      for (std::uint32_t token = 0; token < kVocab; ++token)
        all.emplace_back(token, static_cast<float>(logprobs[token]));
      std::ranges::stable_sort(all, std::greater<>(), [](const auto& one) { return one.second; });
      all.resize(3);
      return all;
    };
    const TreeLimits limits{.width = 3, .max_depth = std::min(2 + i, kHeads), .max_nodes = 7};
    const std::vector<Grown> expected = testing::by_the_book(limits, odds);
    const std::vector<Grown> nodes = testing::nodes_of(trees[i]);
    ASSERT_EQ(nodes.size(), expected.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      EXPECT_EQ(nodes[n].path, expected[n].path);
      EXPECT_NEAR(nodes[n].score, std::exp(expected[n].score), 1e-5f);
    }
  }
}

TEST_P(MedusaDrafterTest, RefusesWhatItWouldReadWrongly) {
  PlainHeads more(GetParam());
  const std::string unknown = GetParam().block(1, 9) + ".weight";
  more.add(unknown, {kHidden, kHidden});
  EXPECT_NE(model::testing::refusal([&] { load(more.tensors); }).find("'" + unknown + "'"), std::string::npos);
  PlainHeads fewer(GetParam());
  fewer.tensors.erase(fewer.tensors.begin());
  EXPECT_NE(model::testing::refusal([&] { load(fewer.tensors); }).find(".weight' is missing"), std::string::npos);
  const PlainHeads plain(GetParam());
  const std::string strange = model::testing::replaced(kConfig, "\"x\"", "\"x\", \"typical\": 1, \"hydra_layers\": 2");
  const std::string refused = model::testing::refusal([&] { load(plain.tensors, strange); });
  EXPECT_NE(refused.find("typical"), std::string::npos);
  EXPECT_NE(refused.find("hydra_layers"), std::string::npos);
}

TEST_P(MedusaDrafterTest, HasNoDraftForWhomTheLastStepDidNotRun) {
  const RoleScope role(engine_role);
  const std::unique_ptr<MedusaDrafter> drafter = load(PlainHeads(GetParam()).tensors);
  std::vector<float> values;
  const auto states = random_states(*ops_, 2, values);
  const std::vector<TokenId> tokens = {1, 2, 3};
  const std::vector<BlockId> table = {BlockId(0)};
  const std::vector<std::uint32_t> rows = {1};
  const sample::Params greedy{.temperature = 0.0f};
  const Observed one{.seq = SeqId(1), .tokens = tokens, .first_position = 1, .rows = rows, .table = table};
  const Asked asked{
      .seq = SeqId(1), .tokens = tokens, .table = table, .sampling = &greedy, .max_nodes = 4, .max_depth = 4};
  sample::TokenTree tree;
  drafter->propose({&asked, 1}, {&tree, 1});
  EXPECT_TRUE(tree.empty());
  drafter->observe({.sequences = {&one, 1}, .states = states.get()});
  drafter->propose({&asked, 1}, {&tree, 1});
  EXPECT_EQ(tree.size(), 4u);
  tree.clear();
  drafter->observe({});
  drafter->propose({&asked, 1}, {&tree, 1});
  EXPECT_TRUE(tree.empty());
}

// ---- published files

class MedusaFiles : public MedusaRig {
 protected:
  std::unique_ptr<MedusaDrafter> load_from(const char* file, const std::vector<TestTensor>& tensors,
                                           const std::string& config = kConfig) {
    head_dir_.write("config.json", config);
    head_dir_.write(file, model::testing::safetensors_file(tensors));
    const auto files = model::ModelFiles::directory(head_dir_.path());
    return std::make_unique<MedusaDrafter>(*ops_, *target_, *files, MedusaOptions{.width = 3}, 64, 8);
  }
  // Tokens of a greedy draft after a state of the target.
  std::vector<TokenId> drafted(MedusaDrafter& drafter) REQUIRES(engine_role) {
    std::vector<float> values;
    const auto states = random_states(*ops_, 1, values);
    const std::vector<TokenId> tokens = {1, 2};
    const std::vector<BlockId> table = {BlockId(0)};
    const std::vector<std::uint32_t> rows = {0};
    const sample::Params greedy{.temperature = 0.0f};
    const Observed one{.seq = SeqId(1), .tokens = tokens, .first_position = 0, .rows = rows, .table = table};
    drafter.observe({.sequences = {&one, 1}, .states = states.get()});
    const Asked asked{
        .seq = SeqId(1), .tokens = tokens, .table = table, .sampling = &greedy, .max_nodes = 6, .max_depth = 3};
    sample::TokenTree tree;
    drafter.propose({&asked, 1}, {&tree, 1});
    std::vector<TokenId> drafts;
    for (std::uint32_t i = 0; i < tree.size(); ++i) drafts.push_back(tree.token(static_cast<int>(i)));
    return drafts;
  }
  std::string why_not(const char* file, const std::vector<TestTensor>& tensors, const std::string& config) {
    return model::testing::refusal([&] { load_from(file, tensors, config); });
  }
};

Names names_of_the_authors() {
  return {"", [](auto h, auto b) { return std::to_string(h) + "." + std::to_string(b) + ".linear"; },
          [](auto h) { return std::to_string(h) + "." + std::to_string(kBlocks); }};
}
Names names_of_vllm() {
  return {"", [](auto h, auto b) { return "blocks." + std::to_string(h) + ".layers." + std::to_string(b); },
          [](auto h) { return "lm_heads." + std::to_string(h); }};
}

TEST_F(MedusaFiles, WrittenByTheAuthorsProgramAreReadUnderTheirOwnName) {
  const RoleScope role(engine_role);
  const auto usual = drafted(*load_from("model.safetensors", PlainHeads(names_of_the_authors()).tensors));
  ASSERT_FALSE(usual.empty());
  head_dir_.write("model.safetensors", "not the heads");
  EXPECT_EQ(drafted(*load_from("medusa_lm_head.safetensors", PlainHeads(names_of_the_authors()).tensors)), usual);
}

TEST_F(MedusaFiles, OfAWholeModelAreItsHeadsAlone) {
  const RoleScope role(engine_role);
  const auto usual = drafted(*load_from("model.safetensors", PlainHeads(names_of_the_authors()).tensors));
  std::vector<TestTensor> whole = PlainHeads(names_of_the_authors()).tensors;
  for (TestTensor& tensor : whole) tensor.name.insert(0, "medusa_head.");
  whole.push_back(model::testing::filled("model.layers.0.mlp.up_proj.weight", "F32", {32, kHidden}));
  const std::string config = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16,
      "num_attention_heads": 4, "num_hidden_layers": 7, "rms_norm_eps": 1e-5, "vocab_size": 40,
      "medusa_num_heads": 3, "medusa_num_layers": 2})";
  EXPECT_EQ(drafted(*load_from("model.safetensors", whole, config)), usual);
  whole.push_back(model::testing::filled("medusa_head.0.7.linear.weight", "F32", {kHidden, kHidden}));
  EXPECT_NE(why_not("model.safetensors", whole, config).find("'medusa_head.0.7.linear.weight'"), std::string::npos);
}

TEST_F(MedusaFiles, OfVllmHaveTheirBlocksCountedByItsOwnKey) {
  const RoleScope role(engine_role);
  const auto usual = drafted(*load_from("model.safetensors", PlainHeads(names_of_the_authors()).tensors));
  const std::string config = R"({"architectures": ["MedusaModel"], "model_type": "medusa", "hidden_size": 16,
      "vocab_size": 40, "truncated_vocab_size": 40, "num_heads": 3, "num_hidden_layers": 2, "max_paths": 64,
      "max_seq_len": 2048, "num_lookahead_tokens": 3, "topk": 10})";
  std::vector<TestTensor> renamed = PlainHeads(names_of_the_authors()).tensors;
  const std::vector<TestTensor> names = PlainHeads(names_of_vllm()).tensors;
  for (std::size_t i = 0; i < renamed.size(); ++i) renamed[i].name = names[i].name;
  EXPECT_EQ(drafted(*load_from("model.safetensors", renamed, config)), usual);
}

TEST_F(MedusaFiles, WithATokenMapDraftTheTokensThatItNames) {
  const RoleScope role(engine_role);
  const std::string all = R"({"medusa_num_layers": 2, "hidden_size": 16, "vocab_size": 40})";
  const std::string few = R"({"medusa_num_layers": 2, "hidden_size": 16, "vocab_size": 40, "truncated_vocab_size": 8})";
  const PlainHeads plain(names_of_the_authors());
  // The first 8 rows of each output matrix, and their tokens' ids times 5.
  std::vector<TestTensor> cut = plain.tensors;
  for (TestTensor& tensor : cut) {
    if (tensor.shape != std::vector<std::uint64_t>{kVocab, kHidden}) continue;
    tensor.shape[0] = 8;
    tensor.data.resize(std::size_t{8} * kHidden * sizeof(float));
  }
  const auto with_map = [&](const std::vector<std::int64_t>& ids) {
    std::vector<TestTensor> tensors = cut;
    TestTensor map{"token_map", "I64", {ids.size()}, {}};
    map.data.assign(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::int64_t));
    tensors.push_back(map);
    return tensors;
  };
  const std::vector<std::int64_t> same = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<std::int64_t> fives = {0, 5, 10, 15, 20, 25, 30, 35};
  std::vector<TokenId> expected = drafted(*load_from("model.safetensors", with_map(same), few));
  ASSERT_FALSE(expected.empty());
  for (TokenId& token : expected) token *= 5;
  EXPECT_EQ(drafted(*load_from("model.safetensors", with_map(fives), few)), expected);

  EXPECT_NE(why_not("model.safetensors", cut, few).find("'token_map' is missing"), std::string::npos);
  EXPECT_NE(why_not("model.safetensors", with_map({0, 1, 2, 3, 4, 5, 6, 40}), few)
                .find("maps draft token 7 to a token outside the target's vocabulary"),
            std::string::npos);
  EXPECT_NE(why_not("model.safetensors", with_map({0, 1, 2, 3, 4, 5, 6, -1}), few).find("maps draft token 7"),
            std::string::npos);
  EXPECT_NE(why_not("model.safetensors", with_map({0, 1, 2, 3, 4, 5, 6, 6}), few).find("maps two draft tokens"),
            std::string::npos);
  EXPECT_NE(why_not("model.safetensors", with_map({0, 1, 2, 3}), few).find("has shape [4]"), std::string::npos);
  EXPECT_NE(why_not("model.safetensors", cut, all).find("has shape [8, 16]"), std::string::npos);
}

TEST_F(MedusaFiles, WithoutOutputsTakeTheTargetsIfTheirConfigSaysSo) {
  const RoleScope role(engine_role);
  std::vector<TestTensor> blocks = PlainHeads(names_of_the_authors()).tensors;
  std::erase_if(blocks, [](const TestTensor& tensor) { return tensor.shape[0] == kVocab; });
  const std::string sizes = R"({"medusa_num_layers": 2, "hidden_size": 16, "vocab_size": 40)";
  EXPECT_NE(why_not("model.safetensors", blocks, sizes + "}").find("'0.2.weight' is missing"), std::string::npos);
  for (const char* key : {R"(, "version": "2"})", R"(, "original_lm_head": true})"}) {
    EXPECT_FALSE(drafted(*load_from("model.safetensors", blocks, sizes + key)).empty()) << key;
  }
}

}  // namespace
}  // namespace quire::speculate::medusa_drafter_test
