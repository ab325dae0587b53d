#include "hub/model_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::hub {
namespace {

using ::testing::HasSubstr;

TEST(ModelName, HasARevisionAndAQuantisationInEitherOrder) {
  EXPECT_EQ(parse_model_name("Qwen/Qwen3-0.6B").value(), (ModelName{"Qwen/Qwen3-0.6B", "main", ""}));
  EXPECT_EQ(parse_model_name("a/b@v1.0").value(), (ModelName{"a/b", "v1.0", ""}));
  EXPECT_EQ(parse_model_name("a/b@refs/pr/12").value(), (ModelName{"a/b", "refs/pr/12", ""}));
  EXPECT_EQ(parse_model_name("a/b:Q4_K_M").value(), (ModelName{"a/b", "main", "Q4_K_M"}));
  EXPECT_EQ(parse_model_name("a/b:UD-Q4_K_XL@v1").value(), (ModelName{"a/b", "v1", "UD-Q4_K_XL"}));
  EXPECT_EQ(parse_model_name("a/b@v1:UD-Q4_K_XL").value(), (ModelName{"a/b", "v1", "UD-Q4_K_XL"}));
  EXPECT_EQ(parse_model_name("a/b@main").value().text(), "a/b");
  EXPECT_EQ(parse_model_name("a/b@v1:Q8_0").value().text(), "a/b:Q8_0@v1");
}

TEST(ModelName, RefusesWhatIsNoneAndSaysWhatIsExpected) {
  for (const char* text :
       {"", "a", "a/", "/a", "a/b/c", "../b", "a/..", "a/b--c", "-a/b", "a/b.", "a/b.git", "a b/c"}) {
    const auto name = parse_model_name(text);
    ASSERT_FALSE(name) << text;
    EXPECT_THAT(name.error().message, HasSubstr("ORG/NAME@REVISION")) << text;
  }
  EXPECT_THAT(parse_model_name("a/b@").error().message, HasSubstr("a branch, a tag or a commit after '@'"));
  EXPECT_THAT(parse_model_name("a/b:").error().message, HasSubstr("a quantisation, for example Q4_K_M, after ':'"));
  EXPECT_THAT(parse_model_name("a/b@x@y").error().message, HasSubstr("only one part after '@'"));
  EXPECT_THAT(parse_model_name("a/b:x:y").error().message, HasSubstr("only one part after ':'"));
}

TEST(ModelName, HasAtMostNinetySixCharacters) {
  for (const std::size_t length : {95u, 96u, 97u}) {
    EXPECT_EQ(is_repo("org/" + std::string(length - 4, 'n')), length <= 96) << length;
  }
}

TEST(ModelName, APathIsNone) {
  for (const char* text : {"./a", "/a/b", "~/a", "../a", "a/b/c", "model.gguf"}) {
    EXPECT_FALSE(looks_like_model_name(text)) << text;
  }
  for (const char* text : {"a/b", "a/b@v1", "a/b:Q4_0"}) EXPECT_TRUE(looks_like_model_name(text)) << text;
}

TEST(Revision, IsABranchATagOrACommit) {
  for (const char* text : {"main", "v1.0", "refs/pr/1", "feature/x_y", "0123456789abcdef0123456789abcdef01234567"}) {
    EXPECT_TRUE(is_revision(text)) << text;
  }
  for (const char* text :
       {"", ".", "..", "a..b", "a//b", "/a", "a/", "../a", "a/../b", "-a", "a b", "a\\b", "a:b", "a.lock"}) {
    EXPECT_FALSE(is_revision(text)) << text;
  }
  EXPECT_TRUE(is_revision(std::string(255, 'a')));
  EXPECT_FALSE(is_revision(std::string(256, 'a')));
  EXPECT_TRUE(is_commit("0123456789abcdef0123456789abcdef01234567"));
  EXPECT_FALSE(is_commit("0123456789ABCDEF0123456789abcdef01234567"));
  EXPECT_FALSE(is_commit("0123456789abcdef0123456789abcdef0123456"));
}

TEST(SafePath, StaysBelowItsDirectory) {
  for (const char* path : {"config.json", "a/b.json", "...", "a b", "onnx/model.onnx", "\xc3\xa4"}) {
    EXPECT_TRUE(is_safe_path(path)) << path;
  }
  using namespace std::string_view_literals;
  for (const std::string_view path :
       {""sv, "."sv, ".."sv, "/a"sv, "a/"sv, "a//b"sv, "a/../b"sv, "a/./b"sv, "a\\b"sv, "a\nb"sv, "a\0b"sv, "\x7f"sv}) {
    EXPECT_FALSE(is_safe_path(path)) << path;
  }
  EXPECT_TRUE(is_safe_path(std::string(255, 'a')));
  EXPECT_FALSE(is_safe_path(std::string(256, 'a')));
}

}  // namespace
}  // namespace quire::hub
