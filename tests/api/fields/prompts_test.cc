#include "api/fields/prompts.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/api/generation/fake_engine.h"

namespace quire::api::prompts_test {
namespace {

class PromptsTest : public ::testing::Test {
 protected:
  Result<std::vector<Prompt>> read(const std::string& json, const std::string& name = "words") {
    return prompts_of(name, parser_.parse(json).value_unsafe(), services_, services_.limits.max_prompts);
  }

  test::World world_;
  Services services_ = world_.services();
  simdjson::dom::parser parser_;
};

TEST_F(PromptsTest, AreTextsOrTokensOneOrMany) {
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(*read(R"("a b")"), (std::vector<Prompt>{std::string("a b")}));
  EXPECT_EQ(*read(R"("")"), (std::vector<Prompt>{std::string()}));
  EXPECT_EQ(*read(R"(["a",""])"), (std::vector<Prompt>{std::string("a"), std::string()}));
  EXPECT_EQ(*read("[0,4095]"), (std::vector<Prompt>{Ids{0, 4095}}));
  EXPECT_EQ(*read("[[1],[2,3]]"), (std::vector<Prompt>{Ids{1}, Ids{2, 3}}));
}

TEST_F(PromptsTest, ErrorsNameTheField) {
  for (const char* json : {"1", "true", "{}", "[]", "[[]]", "[[1],[]]", "[true]", "[null]", R"(["a",1])", R"([1,"a"])",
                           R"([[1],2])", "[1.5]", "[4096]", "[-1]", "[18446744073709551615]", "[[[1]]]"}) {
    for (const std::string name : {"prompt", "input"}) {
      const Result<std::vector<Prompt>> prompts = read(json, name);
      ASSERT_FALSE(prompts) << json;
      EXPECT_EQ(prompts.error().param, name) << json;
      EXPECT_EQ(prompts.error().message.find(name), 0u) << prompts.error().message;
    }
  }
}

TEST_F(PromptsTest, AreAtMostSoMany) {
  services_.limits.max_prompts = 2;
  for (const std::string one : {R"("a")", "[1]"}) {
    EXPECT_EQ(read("[" + one + "]")->size(), 1u);
    EXPECT_EQ(read("[" + one + "," + one + "]")->size(), 2u);
    EXPECT_FALSE(read("[" + one + "," + one + "," + one + "]"));
  }
  EXPECT_TRUE(read("[1,2,3]")) << "the tokens of one";
}

}  // namespace
}  // namespace quire::api::prompts_test
