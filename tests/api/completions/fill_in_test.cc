#include "api/completions/fill_in.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/api/generation/fake_engine.h"
#include "tests/core/text/small_tokenizer.h"

namespace quire::api::test {
namespace {

using Ids = std::vector<TokenId>;

// Letters with three added tokens: ids 8, 9 and 10.
std::shared_ptr<const text::Tokenizer> with_marks(const std::vector<std::string>& marks) {
  text::SmallTokenizer made = text::SmallTokenizer::letters();
  made.added_tokens = "[";
  for (std::size_t i = 0; i < marks.size(); ++i) {
    made.added_tokens +=
        (i == 0 ? "" : ", ") + std::string(R"({"id": )") + std::to_string(8 + i) + R"(, "content": ")" + marks[i] +
        R"(", "special": true, "single_word": false, "lstrip": false, "rstrip": false, )" + R"("normalized": false})";
  }
  made.added_tokens += "]";
  return made.load();
}

CompletionRequest with_suffix(const std::string& suffix) {
  CompletionRequest request;
  request.suffix = suffix;
  return request;
}

Result<Ids> filled(const Prompt& prompt, const CompletionRequest& request,
                   std::shared_ptr<const text::Tokenizer> tokenizer) {
  test::World world;
  Services services = world.services();
  services.tokenizer = std::move(tokenizer);
  Allowance patient;
  return fill_in(prompt, request, services, patient);
}

TEST(FillIn, ThePrefixComesFirstAndTheMiddleLast) {
  const auto tokenizer = with_marks({"<fim_prefix>", "<fim_suffix>", "<fim_middle>"});
  EXPECT_EQ(*filled(std::string("ab"), with_suffix("cd"), tokenizer), (Ids{8, 5, 9, 2, 3, 10}));
  EXPECT_EQ(*filled(Ids{0, 1}, with_suffix(""), tokenizer), (Ids{8, 0, 1, 9, 10}));
}

TEST(FillIn, KnowsTheSpellingsOfPublishedTokenizers) {
  for (const std::vector<std::string>& marks :
       {std::vector<std::string>{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
        std::vector<std::string>{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
        std::vector<std::string>{"▁<PRE>", "▁<SUF>", "▁<MID>"}}) {
    EXPECT_EQ(*filled(std::string("a"), with_suffix("b"), with_marks(marks)), (Ids{8, 0, 9, 1, 10})) << marks[0];
  }
}

TEST(FillIn, WithoutAMiddleTheSuffixComesFirst) {
  EXPECT_EQ(*filled(std::string("a"), with_suffix("b"), with_marks({"[PREFIX]", "[SUFFIX]"})), (Ids{9, 1, 8, 0}));
}

TEST(FillIn, ATokenizerWithoutTheTokensCannot) {
  for (const auto& tokenizer : {with_marks({}), with_marks({"<fim_prefix>", "<fim_suffix>"})}) {
    const Result<Ids> ids = filled(std::string("a"), with_suffix("b"), tokenizer);
    ASSERT_FALSE(ids.ok());
    EXPECT_EQ(ids.error().param, "suffix");
  }
}

}  // namespace
}  // namespace quire::api::test
