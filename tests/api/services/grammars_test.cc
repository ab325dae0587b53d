#include "api/services/grammars.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "core/grammar/matcher.h"
#include "tests/api/generation/completion_rig.h"

namespace quire::api::test {
namespace {

using Kind = GrammarText::Kind;

class GrammarsTest : public test::CompletionRig {
 protected:
  GrammarsTest() {
    services_.grammars =
        std::make_shared<Grammars>(vocabulary_of(*services_.tokenizer, services_.logits_width, services_.eos));
  }
  std::unique_ptr<Generation> asked(const std::string& body) {
    http::Request request;
    request.method = "POST";
    request.body = body;
    return open(std::move(request));
  }
  bool takes(const GrammarText& text, const std::string& answer) {
    const auto grammar = services_.grammars->make(order_of(text));
    EXPECT_TRUE(grammar.ok()) << (grammar.ok() ? "" : grammar.error().message);
    if (!grammar) return false;
    grammar::Matcher matcher(*grammar);
    for (const TokenId id : services_.tokenizer->encode(answer, false)) {
      if (!matcher.accept(id)) return false;
    }
    return matcher.complete();
  }
};

TEST_F(GrammarsTest, EveryKindOfTextBecomesAGrammar) {
  EXPECT_TRUE(takes({Kind::kRegex, "[a-c]+", "f"}, "abc"));
  EXPECT_FALSE(takes({Kind::kRegex, "[a-c]+", "f"}, "abd"));
  EXPECT_TRUE(takes({Kind::kChoice, R"(["yes","no"])", "f"}, "no"));
  EXPECT_FALSE(takes({Kind::kChoice, R"(["yes","no"])", "f"}, "n"));
  EXPECT_TRUE(takes({Kind::kEbnf, R"(root ::= "a" | "b")", "f"}, "b"));
  EXPECT_TRUE(takes({Kind::kJsonSchema, R"({"type":"integer"})", "f"}, "17"));
  EXPECT_FALSE(takes({Kind::kJsonSchema, R"({"type":"integer"})", "f"}, "x"));
  EXPECT_TRUE(takes({Kind::kJsonObject, "", "f"}, R"({"a":1})"));
}

TEST_F(GrammarsTest, TheSameTextIsCompiledOnce) {
  const auto first = services_.grammars->make(order_of({Kind::kRegex, "a+", "f"}));
  EXPECT_EQ(*first, *services_.grammars->make(order_of({Kind::kRegex, "a+", "g"})));
  EXPECT_NE(*first, *services_.grammars->make(order_of({Kind::kRegex, "a*b", "f"})));
  EXPECT_NE(*first, *services_.grammars->make(order_of({Kind::kChoice, R"(["a+"])", "f"})));
}

TEST_F(GrammarsTest, ARefusalNamesItsField) {
  for (const GrammarText& text :
       {GrammarText{Kind::kRegex, "(a", "f"}, GrammarText{Kind::kJsonSchema, "{", "f"},
        GrammarText{Kind::kEbnf, "x ::= \"a\"", "f"}, GrammarText{Kind::kChoice, R"([""])", "f"}}) {
    const auto grammar = services_.grammars->make(order_of(text));
    ASSERT_FALSE(grammar.ok()) << text.text;
    EXPECT_EQ(grammar.error().param, "f");
    EXPECT_TRUE(grammar.error().message.starts_with("f: ")) << grammar.error().message;
  }
}

TEST_F(GrammarsTest, SequencesShareTheirGrammar) {
  const auto completion = start(R"({"prompt":["a","b"],"n":2,"guided_regex":"a+"})");
  ASSERT_EQ(submissions_.size(), 4u);
  ASSERT_TRUE(submissions_[0].request.grammar);
  for (const bridge::Submission& one : submissions_) EXPECT_EQ(one.request.grammar, submissions_[0].request.grammar);
  EXPECT_EQ(refusal(R"({"prompt":"a","guided_regex":"(a"})", 400).at("param"), "guided_regex");
}

TEST_F(GrammarsTest, WithoutThemWhateverAsksForOneIsRefused) {
  services_.grammars = nullptr;
  EXPECT_EQ(refusal(R"({"prompt":"a","guided_regex":"a+"})", 400).at("param"), "guided_regex");
}

// Some 130,000 states: it takes long on any machine, and its rules are written at once.
const GrammarText kCostly{Kind::kRegex, "[ab]*a[ab]{16}", "f"};

TEST_F(GrammarsTest, OneThatTakesLongEndsWithItsAllowance) {
  const auto within = [this](const GrammarText& text, std::chrono::milliseconds time) {
    return services_.grammars->make(order_of(text), Allowance(time));
  };
  const auto late = within(kCostly, std::chrono::milliseconds(20));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::kTimeout);
  EXPECT_EQ(late.error().param, "f");
  EXPECT_TRUE(within({Kind::kRegex, "a+", "f"}, std::chrono::seconds(100)).ok());
  EXPECT_EQ(within({Kind::kRegex, "(a", "f"}, std::chrono::seconds(100)).error().code, Code::kInvalidArgument);
}

TEST_F(GrammarsTest, OneThatNobodyWaitsForEnds) {
  const auto dropped =
      services_.grammars->make(order_of(kCostly), Allowance(std::chrono::seconds(100), [] { return true; }));
  ASSERT_FALSE(dropped.ok());
  EXPECT_EQ(dropped.error().code, Code::kTimeout);
}

TEST_F(GrammarsTest, WhatTakesThisMachineTooLongIsNamedAndMayBeTriedAgain) {
  const auto costly = asked(R"({"prompt":"a","guided_regex":"[ab]*a[ab]{16}"})");
  Allowance quick(std::chrono::milliseconds(20));
  EXPECT_EQ(costly->work(Lane::kQuick, quick), Lane::kSlow);
  Allowance slow(std::chrono::milliseconds(20));
  EXPECT_EQ(costly->work(Lane::kSlow, slow), std::nullopt);
  const std::optional<http::Response> refused = costly->admit({hub_, [] {}, {}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503);
  EXPECT_NE(refused->body.find("or try again later"), std::string::npos) << refused->body;
  EXPECT_NE(refused->body.find("\"param\":\"guided_regex\""), std::string::npos) << refused->body;
  EXPECT_TRUE(std::ranges::any_of(refused->fields, [](const auto& one) { return one.name == "Retry-After"; }));
}

TEST_F(GrammarsTest, TimeThatWritingTookIsNotThereForCompiling) {
  GrammarOrder order = order_of({Kind::kRegex, "[ab]*a[ab]{10}", "f"});
  order.write = [write = order.write](grammar::Rules& rules, grammar::WriteBudget& budget) {
    EXPECT_GT(budget.time_left(), std::chrono::seconds(0));
    while (budget.time_left() > std::chrono::seconds(0)) {
    }
    return write(rules, budget);
  };
  EXPECT_EQ(services_.grammars->make(order, Allowance(std::chrono::milliseconds(20))).error().code, Code::kTimeout);
}

TEST_F(GrammarsTest, IsMadeWithTheRequestAndKept) {
  Allowance patient;
  EXPECT_EQ(asked(R"({"prompt":"a","guided_regex":"a{3}b"})")->work(Lane::kQuick, patient), std::nullopt);
  EXPECT_NE(services_.grammars->find(order_of({Kind::kRegex, "a{3}b", "guided_regex"})), nullptr);
}

TEST_F(GrammarsTest, SpecialTokensAreNoPartOfAnAnswer) {
  const auto vocabulary = vocabulary_of(*services_.tokenizer, services_.logits_width, services_.eos);
  EXPECT_EQ(vocabulary->size(), 4096u);
  EXPECT_TRUE(vocabulary->piece(0).empty());
  EXPECT_EQ(vocabulary->piece(services_.tokenizer->encode(" king", false).at(0)), " king");
}

}  // namespace
}  // namespace quire::api::test
