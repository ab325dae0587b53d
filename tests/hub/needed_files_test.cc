#include "hub/needed_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace quire::hub {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<NeededFiles> needed(std::vector<std::string> files, const std::string& quant = "") {
  std::ranges::sort(files);
  return needed_files({.repo = "a/b", .quant = quant}, files);
}

TEST(NeededFiles, AreOneFileOfWeightsOrThoseOfTheIndex) {
  const auto whole =
      needed({"config.json", "model.safetensors", "consolidated.safetensors", "pytorch_model.bin"}).value();
  EXPECT_THAT(whole.settings, ElementsAre("config.json"));
  EXPECT_THAT(whole.weights, ElementsAre("model.safetensors"));
  const auto sharded = needed({"config.json", "model-00001-of-00001.safetensors", std::string(kIndexFile)}).value();
  EXPECT_THAT(sharded.settings, ElementsAre("config.json", std::string(kIndexFile)));
  EXPECT_THAT(sharded.weights, IsEmpty());
  const auto both = needed({"config.json", "model.safetensors", std::string(kIndexFile)}).value();
  EXPECT_THAT(both.settings, ElementsAre("config.json"));
  EXPECT_THAT(both.weights, ElementsAre("model.safetensors"));
}

TEST(NeededFiles, AreSettingsThatAreThere) {
  const auto files = needed({"additional_chat_templates/tool_use.jinja", "chat_template.jinja", "config.json",
                             "merges.txt", "model.safetensors", "tokenizer.json", "vocab.json"})
                         .value();
  EXPECT_THAT(files.settings, ElementsAre("config.json", "tokenizer.json", "chat_template.jinja",
                                          "additional_chat_templates/tool_use.jinja"));
}

TEST(NeededFiles, OfAQuantisationAreAllItsParts) {
  const std::vector<std::string> files = {"a-Q4_0.gguf", "b/c-Q4_K_M-00001-of-00002.gguf",
                                          "b/c-Q4_K_M-00002-of-00002.gguf", "b/c-Q4_K_S.gguf", "mmproj-Q8_0.gguf"};
  EXPECT_THAT(needed(files, "q4_0").value().weights, ElementsAre("a-Q4_0.gguf"));
  EXPECT_THAT(needed(files, "Q4_K_M").value().weights,
              ElementsAre("b/c-Q4_K_M-00001-of-00002.gguf", "b/c-Q4_K_M-00002-of-00002.gguf"));
  EXPECT_THAT(needed(files, "Q8_0").error().message, HasSubstr("has no GGUF file of Q8_0: it has a-Q4_0.gguf"));
  EXPECT_THAT(needed(files, "Q4").error().message, HasSubstr("has no GGUF file of Q4"));
  EXPECT_THAT(needed({"config.json"}, "Q4").error().message, HasSubstr("has no GGUF files: leave :Q4 out"));
}

TEST(NeededFiles, PartsAreCountedFromTheName) {
  EXPECT_EQ(num_parts("x-00001-of-00003.gguf"), 3u);
  EXPECT_EQ(num_parts("b/x-00003-of-00003.gguf"), 3u);
  for (const char* whole :
       {"x.gguf", "mixture-of-experts.gguf", "x-00001-of-0003.gguf", "-of-00003.gguf", "x-0000a-of-00003.gguf"}) {
    EXPECT_EQ(num_parts(whole), 1u) << whole;
  }
}

TEST(NeededFiles, SayWhatIsThereInsteadOfSafetensors) {
  const auto said = [](std::vector<std::string> files) { return needed(std::move(files)).error().message; };
  EXPECT_THAT(said({"config.json", "pytorch_model.bin"}), HasSubstr("pickles (pytorch_model.bin)"));
  EXPECT_THAT(said({"config.json", "x-Q4_0.gguf"}), HasSubstr("GGUF files (x-Q4_0.gguf): name one of them, a/b:QUANT"));
  EXPECT_THAT(said({"adapter_config.json", "adapter_model.safetensors"}), HasSubstr("an adapter"));
  EXPECT_THAT(said({"consolidated.safetensors", "params.json"}),
              HasSubstr("another layout (consolidated.safetensors)"));
  EXPECT_THAT(said({"model-00001-of-00002.safetensors", "config.json"}), HasSubstr("another layout"));
  EXPECT_THAT(said({"a", "b", "c", "d", "e", "f", "g"}), HasSubstr("it has a, b, c, d, e and 2 more"));
  EXPECT_THAT(said({}), HasSubstr("it is empty"));
  EXPECT_THAT(said({"model.safetensors"}), HasSubstr("no config.json"));
}

TEST(Shards, AreTheFilesOfTheIndexOnce) {
  EXPECT_THAT(
      shards_of(
          R"({"metadata": {"total_size": 1e400}, "weight_map": {"a": "y.safetensors", "b": "x.safetensors", "c": "y.safetensors"}})")
          .value(),
      ElementsAre("x.safetensors", "y.safetensors"));
  for (const char* bad : {"", "[]", "{}", R"({"weight_map": []})", R"({"weight_map": {}})",
                          R"({"weight_map": {"a": 1}})", R"({"weight_map": {"a": "../x.safetensors"}})",
                          R"({"weight_map": {"a": "/x.safetensors"}})", R"({"weight_map": {"a": "x.bin"}})"}) {
    EXPECT_FALSE(shards_of(bad)) << bad;
  }
}

}  // namespace
}  // namespace quire::hub
