#include "api/openai/generation/grammars.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/grammar/matcher.h"
#include "tests/api/completion_rig.h"

namespace quire::api::openai {
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

TEST_F(GrammarsTest, OneThatTakesLongIsNoErrorWhereItMayTakeLittle) {
  const auto quick = services_.grammars->make_quickly(order_of(kCostly));
  ASSERT_TRUE(quick.ok());
  EXPECT_EQ(*quick, nullptr);
  const auto simple = services_.grammars->make_quickly(order_of({Kind::kRegex, "a+", "f"}));
  ASSERT_TRUE(simple.ok());
  EXPECT_NE(*simple, nullptr);
  EXPECT_EQ(services_.grammars->make_quickly(order_of({Kind::kRegex, "(a", "f"})).error().param, "f");
}

TEST_F(GrammarsTest, WhatTakesThisMachineTooLongIsNamedAndMayBeTriedAgain) {
  GrammarOrder order = order_of({Kind::kRegex, "a", "f"});
  order.write = [](grammar::Rules&, grammar::WriteBudget&) -> Result<Done> {
    return fault_of("f", {Code::kTimeout, "schema: takes longer than 2000 ms", "", 0});
  };
  EXPECT_EQ(*services_.grammars->make_quickly(order), nullptr);  // the slow lane's
  const auto grammar = services_.grammars->make(order);
  ASSERT_FALSE(grammar.ok());
  EXPECT_EQ(grammar.error().code, Code::kUnavailable);
  EXPECT_EQ(grammar.error().param, "f");
  EXPECT_GT(grammar.error().retry_after_s, 0);
  EXPECT_EQ(grammar.error().message, "f: schema: takes longer than 2000 ms, or try again later");
}

TEST_F(GrammarsTest, TimeThatWritingTookIsNotThereForCompiling) {
  GrammarOrder order = order_of({Kind::kRegex, "[ab]*a[ab]{10}", "f"});
  order.write = [write = order.write](grammar::Rules& rules, grammar::WriteBudget& budget) {
    EXPECT_GT(budget.time_left(), std::chrono::seconds(0));
    EXPECT_LE(budget.time_left(), Grammars::kQuickTime);
    while (budget.time_left() > std::chrono::seconds(0)) {
    }
    return write(rules, budget);
  };
  EXPECT_EQ(*services_.grammars->make_quickly(order), nullptr);
}

TEST_F(GrammarsTest, IsMadeInALaneOfItsOwnAndFoundWithoutOne) {
  const auto first = asked(R"({"prompt":"a","guided_regex":"a{3}b"})");
  EXPECT_EQ(first->work(), Lane::kQuickGrammar);
  EXPECT_EQ(first->work(), std::nullopt);
  EXPECT_EQ(asked(R"({"prompt":"a","guided_regex":"a{3}b"})")->work(), std::nullopt);  // kept
  EXPECT_EQ(asked(R"({"prompt":"a"})")->work(), std::nullopt);
}

TEST_F(GrammarsTest, ACostlyOneGoesToTheSlowLane) {
  const auto costly = asked(R"({"prompt":"a","guided_regex":"[ab]*a[ab]{16}"})");
  EXPECT_EQ(costly->work(), Lane::kQuickGrammar);
  EXPECT_EQ(costly->work(), Lane::kSlowGrammar);
  EXPECT_EQ(costly->work(), std::nullopt);
}

TEST_F(GrammarsTest, SpecialTokensAreNoPartOfAnAnswer) {
  const auto vocabulary = vocabulary_of(*services_.tokenizer, services_.logits_width, services_.eos);
  EXPECT_EQ(vocabulary->size(), 4096u);
  EXPECT_TRUE(vocabulary->piece(0).empty());
  EXPECT_EQ(vocabulary->piece(services_.tokenizer->encode(" king", false).at(0)), " king");
}

}  // namespace
}  // namespace quire::api::openai
