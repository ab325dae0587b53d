#include "app/drafting/self_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/config/config.h"
#include "app/drafting/draft_settings.h"
#include "app/instance/instance.h"
#include "app/model/embedded_model.h"
#include "core/speculate/agreement.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/support/misread_drafter.h"
#include "tests/support/source_tree.h"

namespace quire::app::self_test_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What a server of the built-in model says while it starts, and what it has measured then; below 0: nothing.
struct Started {
  std::string log;
  double agreement = 0.0;
};

Config resolved() {
  Problems problems;
  Config config = resolve({}, problems);
  EXPECT_TRUE(problems.empty());
  config.threads = 1;
  return config;
}

Started start(const std::string& speculation, std::optional<std::uint32_t> max_model_len = {}) {
  Config config = resolved();
  config.speculative_config = speculation;
  config.max_model_len = max_model_len;
  config.max_num_seqs = 2;
  Started out;
  ::testing::internal::CaptureStderr();
  {
    Instance instance(config);
    instance.start(nullptr);
    out.agreement = instance.metrics().spec_agreement.value();
    instance.stop();
  }
  out.log = ::testing::internal::GetCapturedStderr();
  return out;
}

std::string as_json(std::string_view method, const std::string& path, const std::string& more = "") {
  return R"({"method": ")" + std::string(method) + R"(", "model": ")" + path + "\"" + more + "}";
}

// A test of these drafters alone, beside the built-in model.
class Tested {
 public:
  Tested() : config_(resolved()), target_(pack_model(config_, read_model(config_, open_model("")), 64, 512)) {}

  std::unique_ptr<speculate::Drafter> head() {
    config_.max_num_batched_tokens = 64;
    const speculate::SpeculativeConfig speculation;
    return std::make_unique<speculate::EagleDrafter>(*target_.ops, *target_.decoder, *embedded_head(),
                                                     eagle_options(speculation), head_runner_limits(config_, 8, 512));
  }
  std::string log_of(speculate::Drafter& drafter) {
    observe::Metrics metrics({});
    speculate::Drafter* const drafters[] = {&drafter};
    ::testing::internal::CaptureStderr();
    {
      const RoleScope role(engine_role);
      self_test(drafters, {.ops = *target_.ops,
                           .target = *target_.decoder,
                           .kv_dtype = target_.kv_dtype,
                           .block_tokens = 16,
                           .max_rows = 64,
                           .tokenizer = *load_tokenizer(*target_.source.files),
                           .max_model_len = 512,
                           .clock = FakeClock(),
                           .metrics = metrics});
    }
    return ::testing::internal::GetCapturedStderr();
  }
  std::string log_of_misread(std::vector<std::uint32_t> boundaries) {
    test::MisreadDrafter drafter(head(), std::move(boundaries));
    return log_of(drafter);
  }

 private:
  Config config_;
  LoadedModel target_;
};

// Never knows.
class Mute final : public speculate::Drafter {
 public:
  std::string method() const override { return "mute"; }
  void observe(const speculate::ObservedStep&) override {}
  void propose(std::span<const speculate::Asked>, std::span<sample::TokenTree>) override {}
};

// The built-in model's head, but for the layers that it says to take the states of.
class HeadOfLayers {
 public:
  explicit HeadOfLayers(const std::string& ids) {
    std::string config = test::source_text("models/stories_draft/config.json");
    const std::size_t at = config.find("eagle_aux_hidden_state_layer_ids");
    const std::size_t begin = config.find('[', at);
    config.replace(begin, config.find(']', at) + 1 - begin, ids);
    dir_.write("config.json", config);
    std::filesystem::create_symlink(test::source_path("models/stories_draft/model.safetensors"),
                                    dir_.path() + "/model.safetensors");
  }
  std::string path() const { return dir_.path(); }

 private:
  model::testing::TempDir dir_;
};

TEST(SelfTest, TheHeadOfTheBuiltInModelPasses) {
  const Started server = start(R"({"method": "eagle3"})");
  EXPECT_GE(server.agreement, speculate::Agreement::kSure);
  EXPECT_THAT(server.log, AllOf(HasSubstr("info draft_self_test drafter=eagle3 right="), Not(HasSubstr("warning"))));
}

TEST(SelfTest, AHeadWhoseConfigNamesTheWrongLayersIsWarnedOf) {
  const HeadOfLayers head("[0, 2, 4]");
  const Started server = start(as_json("eagle3", head.path()));
  EXPECT_THAT(server.log,
              AllOf(HasSubstr("warning draft_self_test drafter=eagle3 right="),
                    HasSubstr("are right with each layer one later"), HasSubstr("eagle_aux_hidden_state_layer_ids")));
}

TEST(SelfTest, SaysWhichOtherReadingOfAHeadIsBetter) {
  Tested tested;
  const auto right = tested.head();
  EXPECT_THAT(tested.log_of(*right), AllOf(HasSubstr("info draft_self_test"), Not(HasSubstr("right with"))));
  EXPECT_THAT(tested.log_of_misread({1, 3, 5}),
              AllOf(HasSubstr("warning draft_self_test"), HasSubstr("are right with each layer one later")));
  EXPECT_THAT(tested.log_of_misread({6, 4, 2}),
              AllOf(HasSubstr("warning draft_self_test"), HasSubstr("are right with the states in reverse order")));
}

TEST(SelfTest, WarnsOfADrafterWhoseTokensAreNeverAccepted) {
  Tested tested;
  Mute drafter;
  EXPECT_THAT(tested.log_of(drafter), AllOf(HasSubstr("warning draft_self_test drafter=mute right=0 of=48"),
                                            HasSubstr("more than one in five")));
}

TEST(SelfTest, LayersNamedByTheirOutputAreTheSameLayers) {
  const HeadOfLayers head("[1, 3, 5]");
  EXPECT_EQ(start(as_json("eagle3", head.path())).agreement, start(R"({"method": "eagle3"})").agreement);
}

TEST(SelfTest, IsLeftOutWhereItIsNotWanted) {
  const HeadOfLayers head("[0, 2, 4]");
  const Started server = start(as_json("eagle3", head.path(), R"(, "self_test": false)"));
  EXPECT_LT(server.agreement, 0.0);
  EXPECT_THAT(server.log, Not(HasSubstr("draft_self_test")));
}

TEST(SelfTest, OfAHybridAsksItsHeadAlone) {
  EXPECT_EQ(start(R"({"method": "hybrid"})").agreement, start(R"({"method": "eagle3"})").agreement);
}

TEST(SelfTest, OfSeveralModelsAsksEachAndShowsTheWorst) {
  const std::string target = test::source_path("models/stories");
  const Started server = start(R"({"method": "specinfer", "model": [")" + target + R"(", ")" + target + "\"]}");
  EXPECT_GT(server.agreement, 0.9);  // its K and V are bf16, the target's may be too
  const std::string line = "draft_self_test drafter=draft_model";
  const std::size_t first = server.log.find(line);
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(server.log.find(line, first + 1), std::string::npos);
}

TEST(SelfTest, OfTriforceAsksTheSmallModel) {
  const Started server = start(as_json("triforce", test::source_path("models/stories")));
  EXPECT_THAT(server.log, HasSubstr("draft_self_test drafter=draft_model"));
}

TEST(SelfTest, SaysWhyAMethodIsNotTested) {
  for (const char* method : {"ngram", "suffix", "lookahead", "layer_skip", "draft_verify", "magicdec"}) {
    const Started server = start(R"({"method": ")" + std::string(method) + "\"}");
    EXPECT_LT(server.agreement, 0.0);
    EXPECT_THAT(server.log, HasSubstr("draft_self_test skipped: " + std::string(method))) << method;
  }
  EXPECT_THAT(start("").log, Not(HasSubstr("draft_self_test")));
}

TEST(SelfTest, IsAsLongAsSequencesMayBe) {
  EXPECT_THAT(start(R"({"method": "eagle3"})", 16).log, HasSubstr("draft_self_test"));
  EXPECT_THAT(start(R"({"method": "eagle3"})", 1).log,
              HasSubstr("draft_self_test skipped: the test needs longer sequences than 1 tokens"));
}

}  // namespace
}  // namespace quire::app::self_test_test
