#include "api/chat/answer_grammar.h"

#include "core/grammar/matcher.h"
#include "tests/api/chat/chat_world.h"

namespace quire::api::chat::test {
namespace {

class AnswerGrammar : public ChatBodies {
 protected:
  AnswerGrammar() {
    services_.grammars =
        std::make_shared<Grammars>(vocabulary_of(*services_.tokenizer, services_.logits_width, services_.eos));
    services_.chat = model_of(kPlain, CallFormat::kHermes);
  }
  void reason() { services_.chat = model_of(kPlain, CallFormat::kHermes, ReasoningFormat::kThinkTags); }

  static std::string tool(const std::string& name, const std::string& parameters, bool strict = false) {
    return R"({"type":"function","function":{"name":")" + name + R"(","parameters":)" + parameters +
           (strict ? R"(,"strict":true}})" : "}}");
  }
  static constexpr const char* kDigit = R"({"properties":{"n":{"enum":[1,2]}},"required":["n"]})";
  static std::string tools(const std::string& more = "", bool strict = false) {
    return with(R"("tools":[)" + tool("f", kDigit, strict) + "," + tool("g", "{}") + "]" +
                (more.empty() ? "" : "," + more));
  }

  std::shared_ptr<const grammar::Grammar> grammar_of(const std::string& body, bool in_reasoning = false) {
    const ChatRequest request = good(body);
    const auto grammar = made(request, in_reasoning);
    EXPECT_TRUE(grammar.ok()) << (grammar.ok() ? "" : grammar.error().message);
    return grammar.ok() ? *grammar : nullptr;
  }
  Result<std::shared_ptr<const grammar::Grammar>> made(const ChatRequest& request, bool in_reasoning = false) {
    const auto order = answer_grammar(request, in_reasoning, *services_.chat);
    if (!order) return order.error();
    if (!*order) return {nullptr};
    return services_.grammars->make(**order);
  }
  std::string refused(const std::string& body) {
    const ChatRequest request = good(body);
    const auto grammar = made(request);
    if (grammar.ok()) return "";
    EXPECT_EQ(grammar.error().code, Code::kInvalidArgument);
    return grammar.error().param + " | " + grammar.error().message;
  }
  bool allows(const std::shared_ptr<const grammar::Grammar>& grammar, const std::string& answer) {
    grammar::Matcher matcher(grammar);
    for (const TokenId id : services_.tokenizer->encode(answer, false)) {
      if (!matcher.accept(id)) return false;
    }
    return matcher.complete();
  }
  static std::string call(const std::string& name, const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}\n</tool_call>";
  }
};

TEST_F(AnswerGrammar, IsNoneWhereNothingIsAskedFor) {
  EXPECT_EQ(grammar_of(with("")), nullptr);
  EXPECT_EQ(grammar_of(tools()), nullptr);
  EXPECT_EQ(grammar_of(tools(R"("tool_choice":"none")", true)), nullptr);
  EXPECT_EQ(grammar_of(with(R"("response_format":{"type":"json_object"})")), nullptr);  // its own says it all
}

TEST_F(AnswerGrammar, OfForcedCallsHasSixteenAtMostAndOfOneAloneOne) {
  const auto calls = [](std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += (i == 0 ? "" : "\n") + call("g", "{}");
    return text;
  };
  const std::pair<const char*, std::size_t> choices[] = {
      {R"("tool_choice":"required")", 16},
      {R"("tool_choice":"required","parallel_tool_calls":false)", 1},
      {R"("tool_choice":{"type":"function","function":{"name":"g"}})", 1},
      {R"("tool_choice":{"type":"allowed_tools","mode":"required",)"
       R"("tools":[{"type":"function","function":{"name":"g"}}]})",
       16}};
  for (const CallFormat form : {CallFormat::kHermes, CallFormat::kGeneric}) {
    services_.chat = model_of(kPlain, form);
    for (const auto& [choice, most] : choices) {
      const auto grammar = grammar_of(tools(choice));
      EXPECT_TRUE(allows(grammar, calls(most))) << choice;
      EXPECT_FALSE(allows(grammar, calls(most + 1))) << choice;
      EXPECT_EQ(allows(grammar, calls(most - 1)), most > 1) << choice;
    }
  }
}

TEST_F(AnswerGrammar, OfAModelThatWasTaughtByUsTakesTextAndThenCalls) {
  services_.chat = model_of(kPlain, CallFormat::kGeneric);
  const auto grammar = grammar_of(tools());
  EXPECT_TRUE(allows(grammar, "Hello!"));
  EXPECT_TRUE(allows(grammar, "Let me see.\n" + call("f", R"({"n": "any"})") + "\n" + call("g", "{}")));
  EXPECT_FALSE(allows(grammar, call("g", "{}") + "\n<tool_response>"));
  EXPECT_FALSE(allows(grammar, call("h", "{}")));
  EXPECT_FALSE(allows(grammar, "<tool_call>"));
  EXPECT_EQ(grammar_of(tools(R"("use_beam_search":true,"best_of":2,"temperature":0)")), nullptr)
      << "a search has no grammar";
}

TEST_F(AnswerGrammar, OfARequiredCallTakesCallsOfEveryTool) {
  const auto grammar = grammar_of(tools(R"("tool_choice":"required")"));
  EXPECT_TRUE(allows(grammar, call("f", R"({"n": 2})")));
  EXPECT_TRUE(allows(grammar, call("g", R"({"a": [true]})")));
  EXPECT_TRUE(allows(grammar, call("g", "{}") + "\n" + call("f", R"({"n": 1})")));
  for (const std::string bad : {"", "Hello", "h", "{}"}) EXPECT_FALSE(allows(grammar, bad)) << bad;
  EXPECT_FALSE(allows(grammar, call("f", R"({"n": 3})")));
  EXPECT_FALSE(allows(grammar, call("f", "{}")));
  EXPECT_FALSE(allows(grammar, "So: " + call("g", "{}")));
}

TEST_F(AnswerGrammar, OfANamedCallTakesThatOneOnce) {
  const auto grammar = grammar_of(tools(R"("tool_choice":{"type":"function","function":{"name":"g"}})"));
  EXPECT_TRUE(allows(grammar, call("g", "{}")));
  EXPECT_FALSE(allows(grammar, call("g", "{}") + "\n" + call("g", "{}")));
  EXPECT_FALSE(allows(grammar, call("f", R"({"n": 1})")));
}

// Templates read `tools`, which go once the prompt is made; what may be called are the functions.
TEST_F(AnswerGrammar, OfAForcedCallNeedsTheFunctionsAlone) {
  for (const bool reasons : {false, true}) {
    if (reasons) reason();
    for (const std::string choice : {R"("required")", R"({"type":"function","function":{"name":"g"}})"}) {
      ChatRequest request = good(tools("\"tool_choice\":" + choice));
      request.tools.clear();
      EXPECT_TRUE(request.offers_tools());
      const auto grammar = made(request);
      ASSERT_TRUE(grammar.ok()) << grammar.error().message;
      EXPECT_TRUE(allows(*grammar, call("g", "{}"))) << choice;
      EXPECT_FALSE(allows(*grammar, "Hello")) << choice;
    }
  }
}

TEST_F(AnswerGrammar, WithoutFunctionsHoldsNoCallHoweverForced) {
  for (const bool reasons : {false, true}) {
    if (reasons) reason();
    for (const std::string content : {"", R"("response_format":{"type":"json_object"},)"}) {
      ChatRequest request = good(with(content + R"("tools":[)" + tool("g", "{}") + R"(],"tool_choice":"required")"));
      request.tools.clear();
      request.functions.clear();
      EXPECT_FALSE(request.offers_tools());
      const auto grammar = made(request);
      ASSERT_TRUE(grammar.ok()) << grammar.error().message;
      EXPECT_EQ(*grammar == nullptr, content.empty() || !reasons);
      EXPECT_TRUE(*grammar == nullptr || allows(*grammar, "{}"));
    }
  }
}

TEST_F(AnswerGrammar, OfOneCallAtMostTakesNoSecondOne) {
  const auto grammar = grammar_of(tools(R"("tool_choice":"required","parallel_tool_calls":false)"));
  EXPECT_TRUE(allows(grammar, call("f", R"({"n": 1})")));
  EXPECT_FALSE(allows(grammar, call("g", "{}") + "\n" + call("g", "{}")));
}

TEST_F(AnswerGrammar, OfAStrictToolHoldsItsArgumentsAndLeavesTextFree) {
  const auto grammar = grammar_of(tools("", true));
  EXPECT_TRUE(allows(grammar, "Hello, <b>world</b>!"));
  EXPECT_TRUE(allows(grammar, "Look: " + call("f", R"({"n": 1})")));
  EXPECT_TRUE(allows(grammar, call("g", R"({"n": 3})")));  // not strict
  EXPECT_FALSE(allows(grammar, "Look: " + call("f", R"({"n": 3})")));
  EXPECT_FALSE(allows(grammar, call("h", "{}")));
}

TEST_F(AnswerGrammar, OfContentBesideToolsIsTheContentOrCalls) {
  const auto grammar = grammar_of(tools(R"("response_format":{"type":"json_object"})"));
  EXPECT_TRUE(allows(grammar, R"({"yes": 1})"));
  EXPECT_TRUE(allows(grammar, call("f", "{}")));
  EXPECT_FALSE(allows(grammar, "yes"));
  EXPECT_FALSE(allows(grammar, R"({"yes": 1})" + call("f", "{}")));
}

TEST_F(AnswerGrammar, LetsAModelReasonBefore) {
  reason();
  const std::string object = R"("response_format":{"type":"json_object"})";
  const auto begins = grammar_of(with(object));
  EXPECT_TRUE(allows(begins, "{}"));
  EXPECT_TRUE(allows(begins, "<think>\nIt is {, I think.\n</think>\n\n{}"));
  EXPECT_FALSE(allows(begins, "I think\n</think>\n\n{}"));
  EXPECT_FALSE(allows(begins, "<think>a</think>b</think>{}"));
  const auto inside = grammar_of(with(object), true);
  EXPECT_TRUE(allows(inside, "I think\n</think>\n\n{}"));
  EXPECT_FALSE(allows(inside, "{}"));
  const auto forced = grammar_of(tools(R"("tool_choice":"required")"), true);
  EXPECT_TRUE(allows(forced, "Hm.</think>" + call("g", "{}")));
  EXPECT_FALSE(allows(forced, "Hm." + call("g", "{}")));
}

TEST_F(AnswerGrammar, OfSolarOpenHasATurnBehindReasoningAndAMarkBeforeContent) {
  services_.chat = model_of(kPlain, CallFormat::kSolarOpen, ReasoningFormat::kSolarOpen);
  const std::string reasoning = "<|think|>Hm.<|end|>", turn = "<|begin|>assistant";
  const auto object = grammar_of(with(R"("response_format":{"type":"json_object"})"));
  EXPECT_TRUE(allows(object, "<|content|>{}"));
  EXPECT_TRUE(allows(object, reasoning + turn + "<|content|>{}"));
  EXPECT_FALSE(allows(object, "{}"));
  EXPECT_FALSE(allows(object, reasoning + "<|content|>{}"));
  const auto forced = grammar_of(tools(R"("tool_choice":"required")"));
  const auto g = [](const std::string& id) {
    return "<|tool_calls|><|tool_call:begin|>" + id + "<|tool_call:name|>g<|tool_call:args|>{}<|tool_call:end|>";
  };
  EXPECT_TRUE(allows(forced, g("a1b2c3d4e5")));
  EXPECT_TRUE(allows(forced, reasoning + turn + g("0123456789")));
  EXPECT_FALSE(allows(forced, reasoning + turn + g("012345678")));
  EXPECT_FALSE(allows(forced, reasoning + turn + g("01234567890")));
  EXPECT_FALSE(allows(forced, reasoning + turn + g("A1B2C3D4E5")));
  EXPECT_FALSE(allows(forced, reasoning + g("a1b2c3d4e5")));
}

TEST_F(AnswerGrammar, IsKeptForTheNextRequestAndApartFromOthers) {
  const auto one = grammar_of(tools(R"("tool_choice":"required")"));
  EXPECT_EQ(grammar_of(tools(R"("tool_choice":"required")")), one);
  EXPECT_NE(grammar_of(tools(R"("tool_choice":"required")", true)), nullptr);
  EXPECT_NE(grammar_of(tools(R"("tool_choice":"required","parallel_tool_calls":false)")), one);
  reason();
  EXPECT_NE(grammar_of(tools(R"("tool_choice":"required")")), one);
}

TEST_F(AnswerGrammar, IsRefusedWithTheSchemaAtFault) {
  const auto of = [&](const std::string& parameters) {
    return refused(with(R"("tool_choice":"required","tools":[)" + tool("g", "{}") + "," + tool("f", parameters) + "]"));
  };
  EXPECT_EQ(of(R"({"type":"object"})"), "");
  EXPECT_EQ(of(R"({"type":["null","object"]})"), "");
  EXPECT_TRUE(of(R"({"type":"string"})").starts_with("tools[1].function.parameters | ")) << of(R"({"type":"string"})");
  EXPECT_TRUE(
      of(R"({"$dynamicRef":"x"})").starts_with("tools[1].function.parameters | tools[1].function.parameters: schema"));
  EXPECT_TRUE(
      refused(with(R"("tools":[)" + tool("f", R"({"$dynamicRef":"x"})", true) + "]")).starts_with("tools[0].function"));
  EXPECT_EQ(refused(with(R"("tools":[)" + tool("f", R"({"$dynamicRef":"x"})") + "]")), "");  // held to by nobody
}

TEST_F(AnswerGrammar, OfManyStrictToolsIsChargedToOneBudget) {
  const auto written = [&](int num_tools, std::uint64_t max_steps) {
    std::string list;
    for (int i = 0; i < num_tools; ++i) list += (i == 0 ? "" : ",") + tool("f" + std::to_string(i), kDigit, true);
    const ChatRequest request = good(with(R"("tools":[)" + list + "]"));
    const auto order = answer_grammar(request, false, *services_.chat);
    grammar::Rules rules;
    grammar::WriteBudget budget(max_steps);
    const Result<Done> done = (**order).write(rules, budget);
    return done.ok() ? std::string("written") : done.error().param + ": " + done.error().message;
  };
  std::uint64_t steps = 1;  // of one tool
  while (written(1, steps) != "written") ++steps;
  EXPECT_EQ(written(3, 3 * steps), "written");
  const std::string message = written(3, 3 * steps - 1);
  EXPECT_TRUE(message.starts_with("tools[2].function")) << message;
  EXPECT_NE(message.find("takes more than " + std::to_string(3 * steps - 1) + " steps"), std::string::npos) << message;
}

TEST_F(AnswerGrammar, HasNoPlaceInASearch) {
  EXPECT_TRUE(refused(tools(R"("tool_choice":"required","use_beam_search":true,"temperature":0)"))
                  .starts_with("tool_choice | "));
  EXPECT_TRUE(refused(tools(R"("use_beam_search":true,"temperature":0)", true)).starts_with("tools | "));
}

}  // namespace
}  // namespace quire::api::chat::test
