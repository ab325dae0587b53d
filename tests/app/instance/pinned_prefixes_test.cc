#include "app/instance/pinned_prefixes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "app/model/loaded_model.h"
#include "core/base/start_error.h"

namespace quire::app::pinned_prefixes_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint32_t kVocab = 4096;  // of "stories"

class PinnedPrefixes : public ::testing::Test {
 protected:
  PinnedPrefixes() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::temp_directory_path() /
                 ("quire_pinned_" + std::string(test->name()) + "_" + std::to_string(::getpid()));
    std::filesystem::create_directory(directory_);
  }
  ~PinnedPrefixes() override { std::filesystem::remove_all(directory_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return (directory_ / name).string();
  }
  std::string refusal(const std::vector<std::string>& files, std::uint32_t max_model_len,
                      std::uint32_t logits_width = kVocab) const {
    try {
      read_pinned_prefixes(files, *tokenizer_, logits_width, max_model_len);
    } catch (const StartError& error) {
      return error.what();
    }
    return "";
  }

  const ModelSource source_ = open_model("stories");
  const std::shared_ptr<const text::Tokenizer> tokenizer_ = load_tokenizer(*source_.files);
  std::filesystem::path directory_;
};

TEST_F(PinnedPrefixes, AreTheTokensOfAPromptOfTheSameBytes) {
  const std::string text = "Once upon a time, a fox\nlived in a wood.\n";
  const std::vector<std::string> files = {file("a", text)};
  const auto prefixes = read_pinned_prefixes(files, *tokenizer_, kVocab, 512);
  ASSERT_EQ(prefixes.size(), 1u);
  EXPECT_EQ(prefixes[0].file, files[0]);
  EXPECT_EQ(prefixes[0].tokens, tokenizer_->encode(text, true));
  EXPECT_NE(prefixes[0].tokens, tokenizer_->encode(text.substr(0, text.size() - 1), true));
}

TEST_F(PinnedPrefixes, LeaveRoomForAnAnswer) {
  const std::vector<std::string> files = {file("a", "Once upon a time there was a fox.")};
  const auto length =
      static_cast<std::uint32_t>(read_pinned_prefixes(files, *tokenizer_, kVocab, 512)[0].tokens.size());
  EXPECT_THAT(refusal(files, length + 2), IsEmpty());
  EXPECT_THAT(refusal(files, length + 1), IsEmpty());
  EXPECT_THAT(refusal(files, length), HasSubstr("a prefix may have at most " + std::to_string(length - 1)));
}

TEST_F(PinnedPrefixes, AreOfTokensThatTheModelHasARowFor) {
  const std::vector<std::string> files = {file("a", "a fox")};
  const auto tokens = read_pinned_prefixes(files, *tokenizer_, kVocab, 512)[0].tokens;
  const auto last = static_cast<std::uint32_t>(*std::max_element(tokens.begin(), tokens.end()));
  EXPECT_THAT(refusal(files, 512, last + 1), IsEmpty());
  EXPECT_THAT(refusal(files, 512, last), HasSubstr("a: has a token id outside the model's vocabulary"));
}

TEST_F(PinnedPrefixes, AllProblemsAreReportedTogether) {
  const std::string good = file("good", "a fox");
  const std::string told = refusal({good, (directory_ / "none").string(), directory_.string(), file("empty", ""),
                                    file("long", "one two three four five six seven eight nine ten")},
                                   6);
  EXPECT_THAT(told, HasSubstr("4 problems"));
  EXPECT_THAT(told, HasSubstr("none: no such file"));
  EXPECT_THAT(told, HasSubstr("--pin-prefix " + directory_.string() + ": not a regular file"));
  EXPECT_THAT(told, HasSubstr("empty: is empty"));
  EXPECT_THAT(told, HasSubstr("long: has "));
  EXPECT_THAT(told, Not(HasSubstr("good")));
}

TEST(PinnedBlocks, EachPrefixTakesWholeBlocks) {
  MemoryRequest request;
  request.block_tokens = 16;
  const auto blocks = [&](std::vector<std::size_t> lengths) {
    std::vector<PinnedPrefix> prefixes;
    for (const std::size_t length : lengths) prefixes.push_back({"", std::vector<TokenId>(length)});
    return with_pinned(request, prefixes);
  };
  EXPECT_EQ(blocks({}).pinned_blocks, 0u);
  EXPECT_EQ(blocks({15}).pinned_blocks, 1u);
  EXPECT_EQ(blocks({16}).pinned_blocks, 1u);
  EXPECT_EQ(blocks({17}).pinned_blocks, 2u);
  EXPECT_EQ(blocks({1, 33}).pinned_blocks, 4u);
  EXPECT_EQ(blocks({1, 33, 5}).longest_pinned, 33u);
}

}  // namespace
}  // namespace quire::app::pinned_prefixes_test
