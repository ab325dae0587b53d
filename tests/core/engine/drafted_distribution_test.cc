// Every kind of drafter that computes, on tiny random checkpoints, draws chains and trees under ratio and block, and
// what clients hear has the law of the server without guesses. One that is wrong about what it drew from is seen at the
// same number of answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/speculate/heads/eagle_drafter.h"
#include "core/speculate/heads/hydra_drafter.h"
#include "core/speculate/heads/medusa_drafter.h"
#include "core/speculate/models/merged_drafter.h"
#include "tests/core/engine/distribution_lab.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/support/cases.h"

namespace quire::engine::testing::drafted_distribution_test {
namespace {

using model::testing::TempDir;
using model::testing::TestTensor;
using sample::Accept;
using speculate::Drafter;
using Shape = std::vector<std::uint64_t>;

constexpr std::uint32_t kAnswers = quire::testing::cases(6'000);
constexpr std::uint32_t kHidden = 24;
constexpr std::uint32_t kVocab = DistributionLab::kVocab;

// A checkpoint of random tensors for DistributionLab's target.
class HeadFile {
 public:
  explicit HeadFile(const std::string& config) { dir_.write("config.json", config); }
  void add(const std::string& name, const Shape& shape) {
    tensors_.push_back(model::testing::filled(name, "F32", shape));
  }
  void add_with_bias(const std::string& name, const Shape& shape) {
    add(name + ".weight", shape);
    add(name + ".bias", {shape[0]});
  }
  void add_layer(const std::string& at, std::uint64_t width) {
    add(at + "self_attn.q_proj.weight", {kHidden, width});
    add(at + "self_attn.k_proj.weight", {8, width});
    add(at + "self_attn.v_proj.weight", {8, width});
    add(at + "self_attn.o_proj.weight", {kHidden, kHidden});
    add(at + "mlp.gate_proj.weight", {40, kHidden});
    add(at + "mlp.up_proj.weight", {40, kHidden});
    add(at + "mlp.down_proj.weight", {kHidden, 40});
    add(at + "post_attention_layernorm.weight", {kHidden});
  }
  std::unique_ptr<model::ModelFiles> files() {
    dir_.write("model.safetensors", model::testing::safetensors_file(tensors_));
    return model::ModelFiles::directory(dir_.path());
  }

 private:
  TempDir dir_;
  std::vector<TestTensor> tensors_;
};

const std::string kLayer =
    R"("hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 1, "num_attention_heads": 3,
  "num_key_value_heads": 1, "vocab_size": 5)";

std::unique_ptr<HeadFile> eagle() {
  auto file = std::make_unique<HeadFile>("{" + kLayer + "}");
  file->add_with_bias("fc", {kHidden, 2 * kHidden});
  file->add_layer("layers.0.", kHidden);
  return file;
}

std::unique_ptr<HeadFile> eagle3() {
  auto file = std::make_unique<HeadFile>("{" + kLayer +
                                         R"(, "draft_vocab_size": 5, "eagle_aux_hidden_state_layer_ids": [0, 1, 2]})");
  file->add("fc.weight", {kHidden, 3 * kHidden});
  file->add("norm.weight", {kHidden});
  file->add("lm_head.weight", {kVocab, kHidden});
  file->add_layer("midlayer.", 2 * kHidden);
  file->add("midlayer.hidden_norm.weight", {kHidden});
  file->add("midlayer.input_layernorm.weight", {kHidden});
  return file;
}

std::unique_ptr<HeadFile> medusa() {
  auto file = std::make_unique<HeadFile>(R"({"medusa_num_heads": 3, "medusa_num_layers": 1})");
  for (const std::string head : {"0", "1", "2"}) {
    file->add_with_bias(head + ".0.linear", {kHidden, kHidden});
    file->add(head + ".1.weight", {kVocab, kHidden});
  }
  return file;
}

std::unique_ptr<HeadFile> hydra() {
  auto file = std::make_unique<HeadFile>(
      R"({"hydra_num_heads": 3, "hydra_num_layers": 2, "hydra_head_arch": "mlp", "grounded_heads": true})");
  for (std::uint64_t head = 0; head < 3; ++head) {
    const std::string at = "hydra_mlp." + std::to_string(head) + ".";
    file->add_with_bias(at + "0.res_connection", {kHidden, (head + 2) * kHidden});
    file->add_with_bias(at + "0.linear", {kHidden, (head + 2) * kHidden});
    file->add_with_bias(at + "1.linear", {kHidden, kHidden});
    file->add_with_bias("hydra_lm_head." + std::to_string(head), {kVocab, kHidden});
  }
  return file;
}

speculate::RunnerLimits head_limits() {
  return {.max_rows = 256,
          .max_sequences = DistributionLab::kAtOnce,
          .max_model_len = DistributionLab::kMaxLen,
          .block_tokens = 16,
          .num_blocks = DistributionLab::kBlocks};
}

// Says of its guesses that each was drawn from all that it could have been, as likely as the others. (Were they said to
// be no draws the law would hold: whatever is guessed, if what judges it knows nothing of it.)
class Mistaken final : public Drafter {
 public:
  explicit Mistaken(std::unique_ptr<Drafter> drafter) : drafter_(std::move(drafter)) {}
  std::string method() const override { return drafter_->method(); }
  speculate::Needs needs() const override { return drafter_->needs(); }
  void admit(const speculate::Admitted& sequence) override REQUIRES(engine_role) { drafter_->admit(sequence); }
  void observe(const speculate::ObservedStep& step) override REQUIRES(engine_role) { drafter_->observe(step); }
  void propose(std::span<const speculate::Asked> asked, std::span<sample::TokenTree> trees) override
      REQUIRES(engine_role) {
    drafter_->propose(asked, trees);
    distributions_.resize(std::max(distributions_.size(), trees.size()));
    for (std::size_t i = 0; i < trees.size(); ++i) {
      distributions_[i].clear();
      for (std::uint32_t node = 0; node < trees[i].size(); ++node) {
        const auto distribution = trees[i].distribution(node);
        for (const sample::TokenProbability& one : distribution)
          distributions_[i].add(one.token, 1.0f / static_cast<float>(distribution.size()));
        distributions_[i].close();
      }
      trees[i].set_distributions(&distributions_[i]);
    }
  }
  void release(SeqId seq, bool ended) override REQUIRES(engine_role) { drafter_->release(seq, ended); }
  void track(std::span<const flow::BlockOp> ops) override REQUIRES(engine_role) { drafter_->track(ops); }

 private:
  std::unique_ptr<Drafter> drafter_;
  std::vector<sample::ProposalDistributions> distributions_;
};

class DraftedDistribution : public ::testing::TestWithParam<std::pair<std::string, Accept>>, protected DistributionLab {
 protected:
  DraftedDistribution() : DistributionLab(GetParam().second) {}

  std::unique_ptr<Drafter> drafter(std::uint32_t width) {
    const std::string& method = GetParam().first;
    if (method == "draft_model") return draft_model({.widths = {width, width}});
    if (method == "specinfer") {
      std::vector<std::unique_ptr<Drafter>> members;
      for (const std::uint32_t member : {0u, 1u}) {
        const speculate::testing::TinyModel& model = member == 0 ? other_ : third_;
        members.push_back(draft_model(model, {.member = member, .widths = {width}}));
      }
      return std::make_unique<speculate::MergedDrafter>(method, std::move(members));
    }
    const auto files = file_->files();
    if (method == "medusa") {
      return std::make_unique<speculate::MedusaDrafter>(*ops_, *target_.decoder, *files,
                                                        speculate::MedusaOptions{.width = width}, 256, kAtOnce);
    }
    if (method == "hydra") {
      return std::make_unique<speculate::HydraDrafter>(*ops_, *target_.decoder, *files,
                                                       speculate::HydraOptions{.width = width}, head_limits());
    }
    return std::make_unique<speculate::EagleDrafter>(
        *ops_, *target_.decoder, *files, speculate::EagleOptions{.width = width, .max_depth = 4}, head_limits());
  }
  void SetUp() override {
    const std::string& method = GetParam().first;
    if (method == "eagle") file_ = eagle();
    if (method == "eagle3") file_ = eagle3();
    if (method == "medusa") file_ = medusa();
    if (method == "hydra") file_ = hydra();
  }

  speculate::testing::TinyModel third_{*ops_, speculate::testing::tiny_config(1, kVocab), "third"};
  std::unique_ptr<HeadFile> file_;
};

TEST_P(DraftedDistribution, OfAChainIsTheTargets) {
  const auto drafter = this->drafter(1);
  EXPECT_LT(sample::strangeness(counts(drafter.get(), kAnswers), distribution()), 1.0);
  EXPECT_GT(taken_, scripted_ / 25);
  EXPECT_EQ(scripted_, proposed_);  // whole drafts
}

TEST_P(DraftedDistribution, OfATreeIsTheTargets) {
  max_nodes_ = 5;
  const auto drafter = this->drafter(2);
  EXPECT_LT(sample::strangeness(counts(drafter.get(), kAnswers), distribution()), 1.0);
  EXPECT_GT(taken_, scripted_ / 25);
  EXPECT_EQ(scripted_, proposed_);
}

TEST_P(DraftedDistribution, IsSeenToBeAnotherWhereDraftTokensAreJudgedByAnotherDistribution) {
  max_nodes_ = 5;
  Mistaken chain(this->drafter(1));
  EXPECT_GT(sample::strangeness(counts(&chain, kAnswers), distribution()), 1.5);
  Mistaken tree(this->drafter(2));
  EXPECT_GT(sample::strangeness(counts(&tree, kAnswers), distribution()), 1.5);
}

std::vector<std::pair<std::string, Accept>> all_of_them() {
  std::vector<std::pair<std::string, Accept>> all;
  for (const char* method : {"eagle", "eagle3", "medusa", "hydra", "draft_model", "specinfer"}) {
    for (const Accept accept : {Accept::kRatio, Accept::kBlock}) all.emplace_back(method, accept);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(By, DraftedDistribution, ::testing::ValuesIn(all_of_them()), [](const auto& parameter) {
  return parameter.param.first + "_" + std::string(name_of(parameter.param.second));
});

}  // namespace
}  // namespace quire::engine::testing::drafted_distribution_test
