#include "api/chat/prompt.h"

#include "api/chat/plain_conversation.h"
#include "tests/api/chat/chat_world.h"

namespace quire::api::chat::test {
namespace {

class Prompts : public ChatBodies {
 protected:
  Result<ChatPrompt> render(const std::string& body) {
    Allowance patient;
    return render_prompt(services_.chat.get(), good(body), std::tm{}, patient);
  }
  std::string text(const std::string& body) {
    const Result<ChatPrompt> prompt = render(body);
    return prompt ? prompt->text : prompt.error().param + ": " + prompt.error().message;
  }
};

constexpr const char* kTurns = R"([{"role":"user","content":"hi"},{"role":"assistant","content":" so  "}])";

TEST_F(Prompts, AreWhatTheTemplateMakesOfTheConversation) {
  EXPECT_EQ(text(with("")), "<user>hi\n<assistant>");
  EXPECT_EQ(text(with(R"("add_generation_prompt":false)")), "<user>hi\n");
}

TEST_F(Prompts, HaveTheVariablesOfTheRequest) {
  services_.chat = model_of(
      "{{ bos_token }}|{{ tools is none }}|{{ documents is none }}|{{ mood }}|{{ reasoning_effort }}|{{ "
      "enable_thinking }}");
  EXPECT_EQ(text(with("")), "<s>|True|True|||");
  EXPECT_EQ(text(with(R"("chat_template_kwargs":{"mood":"sad"},"reasoning_effort":"low","documents":[{}])")),
            "<s>|True|False|sad|low|");
  EXPECT_EQ(text(with(R"("reasoning_effort":"none")")), "<s>|True|True||none|False");
  EXPECT_EQ(text(with(R"("reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":true})")),
            "<s>|True|True||none|True");
}

TEST_F(Prompts, NeverHoldTheWordNoneForAnEmptyAssistantMessage) {
  const std::string silent = R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null},)"
                             R"({"role":"assistant","tool_calls":[{"function":{"name":"now"}}]}]})";
  services_.chat = model_of("{% for m in messages %}[{{ m.content }}]{% endfor %}");
  EXPECT_EQ(text(silent), "[hi][][]");
  services_.chat = model_of("{% for m in messages %}[{{ m.content + '!' }}]{% endfor %}");
  EXPECT_EQ(text(silent), "[hi!][!][!]");
  services_.chat = model_of("{% for m in messages %}[{{ 'calls' if m.content is none else m.content }}]{% endfor %}");
  EXPECT_EQ(text(silent), "[hi][calls][calls]");
}

TEST_F(Prompts, ShowToolsThatMayBeCalled) {
  auto model = std::make_shared<ChatModel>(*model_of("plain {{ tools is none }}", CallFormat::kHermes));
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}])";
  services_.chat = model;
  EXPECT_EQ(text(with(tools)), "plain False");
  EXPECT_EQ(text(with(tools + R"(,"tool_choice":"none")")), "plain True");
  model->with_tools = *read_template("with {{ tools[0].function.name }}", {});
  EXPECT_EQ(text(with(tools)), "with f");
  EXPECT_EQ(text(with(tools + R"(,"tool_choice":"none")")), "plain True");
  model->plain.reset();  // a model that has a template for tools alone
  EXPECT_EQ(text(with(tools)), "with f");
  EXPECT_NE(text(with("")).find("--chat-template"), std::string::npos);
}

TEST_F(Prompts, GoOnWhereTheLastMessageEnds) {
  EXPECT_EQ(text(R"({"continue_final_message":true,"messages":)" + std::string(kTurns) + "}"),
            "<user>hi\n<assistant> so  ");
  services_.chat = model_of("{% for m in messages %}[{{ m.content | trim }}]{% endfor %}");
  EXPECT_EQ(text(R"({"continue_final_message":true,"messages":)" + std::string(kTurns) + "}"), "[hi][so");
  services_.chat = model_of("{{ messages[0].content }}");
  EXPECT_EQ(text(R"({"continue_final_message":true,"messages":)" + std::string(kTurns) + "}").substr(0, 23),
            "continue_final_message:");
}

TEST_F(Prompts, MayEndInsideReasoning) {
  services_.chat = model_of(
      "{{ messages[-1].content }}{% if add_generation_prompt %}<think>\n{% if no %}</think>{% endif %}{% endif %}",
      CallFormat::kNone, ReasoningFormat::kThinkTags);
  EXPECT_TRUE(render(with(""))->in_reasoning);
  EXPECT_FALSE(render(with(R"("chat_template_kwargs":{"no":true})"))->in_reasoning);
  EXPECT_FALSE(render(with(R"("add_generation_prompt":false)"))->in_reasoning);
  const auto goes_on = [&](const std::string& content) {
    return render(R"({"continue_final_message":true,"messages":[{"role":"assistant","content":")" + content + "\"}]}")
        ->in_reasoning;
  };
  EXPECT_TRUE(goes_on("<think>so far"));
  EXPECT_FALSE(goes_on("<think>so far</think>and"));
  EXPECT_FALSE(goes_on("and"));
}

TEST_F(Prompts, AreRefusedInTheTemplatesOwnWords) {
  services_.chat = model_of("{{ raise_exception('roles must alternate') }}");
  EXPECT_EQ(text(with("")), "messages: chat template, line 1: roles must alternate");
  services_.chat = model_of("{{ raise_exception(messages[0].content) }}");
  const std::string reported = text(of_messages(R"([{"role":"user","content":")" + std::string(10'000, 'x') + "\"}]"));
  EXPECT_LT(reported.size(), 250u);
}

// ---- what a template does not know

constexpr const char* kTurnsOnly =
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}{% "
    "endif %}"
    "{% if m.role == 'tool' or m.tool_calls %}{{ raise_exception('calls') }}{% endif %}[{{ m.content }}]{% endfor %}";
constexpr const char* kFirstSystem =
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('system') }}{% endif %}"
    "{{ m.role }}[{{ m.content }}]{% endfor %}";
constexpr const char* kManySystems = R"([{"role":"system","content":"A"},{"role":"developer","content":"B"},)"
                                     R"({"role":"user","content":"C"},{"role":"assistant","content":"D"},)"
                                     R"({"role":"system","content":"E"},{"role":"user","content":"F"}])";

TEST_F(Prompts, AreGivenInAnotherFormWhereTheTemplateRefusesTheRoles) {
  services_.chat = model_of(kFirstSystem);
  EXPECT_EQ(text(of_messages(kManySystems)), "system[A\n\nB]user[C]assistant[D]user[E\n\nF]");
  services_.chat = model_of(kTurnsOnly);
  EXPECT_EQ(text(of_messages(kManySystems)), "[A\n\nB\n\nC][D][E\n\nF]");
  const char* calls = R"([{"role":"user","content":"C"},{"role":"assistant","content":null,"tool_calls":[{"id":"1",)"
                      R"("function":{"name":"now","arguments":"{\"a\":1}"}}]},)"
                      R"({"role":"tool","tool_call_id":"1","content":"R"},{"role":"user","content":"F"}])";
  EXPECT_EQ(text(of_messages(calls)),
            "[C][<tool_call>\n{\"name\": \"now\", \"arguments\": {\"a\":1}}\n</tool_call>]"
            "[<tool_response>\nR\n</tool_response>\n\nF]");
  services_.chat = model_of("{% for m in messages %}{{ m.role }}[{{ m.content }}]{% endfor %}");
  EXPECT_EQ(text(of_messages(kManySystems)), "system[A]system[B]user[C]assistant[D]system[E]user[F]");
}

TEST_F(Prompts, AreRefusedInTheWordsOfTheFirstRefusalWhereNoFormHelps) {
  services_.chat = model_of("{{ raise_exception('the ' + messages | length | string) }}");
  EXPECT_EQ(text(of_messages(kManySystems)), "messages: chat template, line 1: the 6");
}

TEST_F(Prompts, TeachToolsWhereTheTemplateDoesNot) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}])";
  const std::string reported =
      text_of_tools({*quire::json::parse(R"({"type":"function","function":{"name":"f"}})", 8)}, CallFormat::kGeneric);
  EXPECT_NE(reported.find("\n{\"type\":\"function\",\"function\":{\"name\":\"f\"}}\n"), std::string::npos);
  services_.chat = model_of(kFirstSystem, CallFormat::kGeneric);
  EXPECT_EQ(text(with(tools)), "system[" + reported + "]user[hi]");
  EXPECT_EQ(text(with(tools + R"(,"tool_choice":"none")")), "user[hi]");
  services_.chat = model_of("{{ tools is none }}" + std::string(kTurnsOnly), CallFormat::kGeneric);  // and no system
  EXPECT_EQ(text(with(tools)), "True[" + reported + "\n\nhi]");
  services_.chat =
      model_of("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}", CallFormat::kGeneric);
  EXPECT_EQ(text(with(tools)), reported + "\n\nhi") << "a system that is dropped without a word";
  auto two = std::make_shared<ChatModel>(*model_of(kFirstSystem, CallFormat::kGeneric));
  two->with_tools = *read_template("{% for tool in tools %}{% endfor %}", {});
  services_.chat = two;
  EXPECT_EQ(text(with(tools)), "system[" + reported + "]user[hi]") << "one for tools of a form that we do not know";
}

TEST_F(Prompts, TeachToolsInTheModelsOwnFormatWhereTheTemplateShowsCallsAlone) {
  auto model = std::make_shared<ChatModel>(*model_of(kPlain, CallFormat::kDeepSeekV31));
  model->describes_tools = true;
  services_.chat = model;
  const std::string prompt = text(with(R"("tools":[{"type":"function","function":{"name":"f"}}])"));
  EXPECT_NE(prompt.find("<｜tool▁call▁begin｜>its_name<｜tool▁sep｜>{\"an_argument\": \"its value\"}"), prompt.npos)
      << prompt;
  EXPECT_EQ(prompt.find("<tool_call>"), prompt.npos) << prompt;
}

TEST_F(Prompts, ShowCallsAndResultsThatTheTemplateWouldDrop) {
  const char* calls = R"([{"role":"user","content":"C"},{"role":"assistant","content":null,"tool_calls":[{"id":"1",)"
                      R"("function":{"name":"now","arguments":"{\"a\":1}"}}]},)"
                      R"({"role":"tool","tool_call_id":"1","content":"R"}])";
  services_.chat = model_of("{% for m in messages %}{{ m.role }}[{{ m.content }}]{% endfor %}", CallFormat::kLfm2);
  EXPECT_EQ(text(of_messages(calls)), "user[C]assistant[<|tool_call_start|>[now(a=1)]<|tool_call_end|>]tool[R]");
  services_.chat =
      model_of("{% for m in messages if m.role != 'tool' %}[{{ m.content }}]{% endfor %}", CallFormat::kMistralArgs);
  EXPECT_EQ(text(of_messages(calls)), "[C][[TOOL_CALLS]now[ARGS]{\"a\":1}][<tool_response>\nR\n</tool_response>]");
}

TEST_F(Prompts, NeedATemplate) {
  services_.chat = std::make_shared<ChatModel>();
  EXPECT_NE(text(with("")).find("--chat-template"), std::string::npos);
  services_.chat = nullptr;
  EXPECT_NE(text(with("")).find("--chat-template"), std::string::npos);
}

TEST(ChatModel, KnowsTheFormOfCallsByTheMarksInATemplate) {
  EXPECT_EQ(call_format_of("...<tool_call>..."), CallFormat::kHermes);
  EXPECT_EQ(call_format_of("<tool_call><function=x>"), CallFormat::kQwen3Coder);
  EXPECT_EQ(call_format_of("<function=x>{}</function>"), CallFormat::kFunctionTag);
  EXPECT_EQ(call_format_of("<tool_call>f<arg_key>k</arg_key><arg_value>"), CallFormat::kGlm47);
  EXPECT_EQ(call_format_of("[TOOL_CALLS]"), CallFormat::kMistral);
  EXPECT_EQ(call_format_of("[TOOL_CALLS]f[ARGS]"), CallFormat::kMistralArgs);
  EXPECT_EQ(call_format_of("<|tool_call|>"), CallFormat::kGranite);
  EXPECT_EQ(call_format_of("<|tool_call|><|/tool_call|>"), CallFormat::kPhi4Mini);
  EXPECT_EQ(call_format_of(R"({"name": function name, "parameters": dictionary of)"), CallFormat::kLlamaJson);
  EXPECT_EQ(call_format_of("plain"), CallFormat::kGeneric);
  EXPECT_EQ(reasoning_format_of("x</think>"), ReasoningFormat::kThinkTags);
  EXPECT_EQ(reasoning_format_of("[/THINK]"), ReasoningFormat::kMistral);
  EXPECT_EQ(reasoning_format_of("</seed:think>"), ReasoningFormat::kSeedOss);
  EXPECT_EQ(reasoning_format_of("<|channel|>analysis"), ReasoningFormat::kHarmony);
  EXPECT_EQ(reasoning_format_of("plain"), ReasoningFormat::kNone);
  EXPECT_EQ(content_marks_of("</think><response>x</response>")->end, "</response>");
  EXPECT_FALSE(content_marks_of("<minimax:tool_call></think><response>x</response>"));
  EXPECT_FALSE(content_marks_of("plain"));
}

TEST(ChatModel, FindsOutHowATemplateTakesCalls) {
  const char* const null_content =
      "{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].function.name + "
      "m.tool_calls[0].function.arguments }}"
      "{% endif %}{% endfor %}";
  const Result<ChatTemplate> found = read_template(null_content, {});
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->object_arguments);
  EXPECT_TRUE(read_template("{% for m in messages %}{{ m.content + ';' }}{% endfor %}", {})->object_arguments);
  EXPECT_TRUE(read_template(kPlain, {})->object_arguments);
}

TEST(ChatModel, FindsOutWhatATemplateShows) {
  const Result<ChatTemplate> plain = read_template(kPlain, {});
  EXPECT_TRUE(plain->shows_calls && plain->shows_results && plain->shows_system && !plain->shows_tools);
  const Result<ChatTemplate> tools = read_template(
      "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages if m.role == 'user' %}"
      "{{ m.content }}{% endfor %}",
      {});
  EXPECT_TRUE(!tools->shows_calls && !tools->shows_results && !tools->shows_system && tools->shows_tools);
}

TEST(ChatModel, NamesTheLineOfATemplateThatIsWrong) {
  const Result<ChatTemplate> read = read_template("a\n{% if %}", {});
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("line 2"), std::string::npos) << read.error().message;
}

}  // namespace
}  // namespace quire::api::chat::test
