#include "core/chat/template.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "core/base/allowance.h"
#include "tests/core/chat/rendering.h"

namespace quire::chat {
namespace {

TEST(Template, RendersAConversation) {
  const char* source =
      "{{ bos_token }}{% for m in messages %}\n<|{{ m.role }}|>{{ m['content'] | trim }}\n{% endfor %}\n"
      "{%- if add_generation_prompt %}<|assistant|>{% endif %}";
  const char* variables = R"({"bos_token": "<s>", "add_generation_prompt": true,
                              "messages": [{"role": "user", "content": " hi "}, {"role": "assistant", "content": "yo"}]})";
  EXPECT_EQ(rendered(source, variables), "<s><|user|>hi\n<|assistant|>yo\n<|assistant|>");
}

TEST(Template, RemovesWhiteSpaceAroundTagsAsTrimBlocksAndLstripBlocksDo) {
  EXPECT_EQ(rendered("a\n  {% if true %}\n  b\n  {% endif %}\nc"), "a\n  b\nc");
  EXPECT_EQ(rendered("a  {{- 1 -}}  b"), "a1b");
  EXPECT_EQ(rendered("a\n  {%+ if true %}b{% endif +%}\nc\n"), "a\n  b\nc");
  EXPECT_EQ(rendered("{% raw %}{{ x }}{% endraw %}{# no #}\r\ny"), "{{ x }}y");
}

TEST(Template, PrintsValuesAsPythonDoes) {
  EXPECT_EQ(rendered("{{ [none, true, 1.0, 1e16, 1e-5, 'a\\'b', {'k': (1,)}] }}"),
            "[None, True, 1.0, 1e+16, 1e-05, \"a'b\", {'k': (1,)}]");
  EXPECT_EQ(rendered("{{ x }}{{ x.y is defined }}", R"({"x": {"z": null}})"), "{'z': None}False");
}

TEST(Template, WritesJsonAsTransformersDoes) {
  const char* variables = R"({"x": {"b": [1, 2.5, null], "a": "<é>"}})";
  EXPECT_EQ(rendered("{{ x | tojson }}", variables), R"({"b": [1, 2.5, null], "a": "<é>"})");
  EXPECT_EQ(rendered("{{ x | tojson(ensure_ascii=true, sort_keys=true, separators=(',', ':')) }}", variables),
            R"({"a":"<\u00e9>","b":[1,2.5,null]})");
  EXPECT_EQ(rendered("{{ [1, {}] | tojson(indent=2) }}"), "[\n  1,\n  {}\n]");
}

TEST(Template, KeepsALoopsVariablesInsideIt) {
  EXPECT_EQ(rendered("{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}"), "231");
  EXPECT_EQ(rendered("{% set n = namespace(x=1) %}{% for i in [1, 2] %}{% set n.x = n.x + i %}{% endfor %}{{ n.x }}"),
            "4");
  EXPECT_EQ(rendered("{% if true %}{% set x = 1 %}{% endif %}{{ x }}"), "1");
}

TEST(Template, AsksALoopsConditionLate) {
  EXPECT_EQ(rendered("{% set n = namespace(s=false) %}{% for i in [1, 2, 3] if not n.s %}{{ i }}{% set n.s = i == 2 "
                     "%}{% endfor %}"),
            "12");
}

TEST(Template, ReportsALoopWhereItIs) {
  EXPECT_EQ(
      rendered("{% for i in 'abc' %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{{ loop.nextitem }} {% endfor %}"),
      "1TrueFalseb 2FalseFalsec 3FalseTrue ");
  EXPECT_EQ(rendered("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% elif i == 3 %}{% break %}{% endif %}{{ i "
                     "}}{% endfor %}"),
            "02");
  EXPECT_EQ(rendered("{% for i in [1, [2, [3]]] recursive %}{{ loop(i) if i is iterable else i }}{% endfor %}"), "123");
}

TEST(Template, CallsMacrosWithTheScopeTheyWereDefinedIn) {
  EXPECT_EQ(
      rendered("{% macro f(a, b=a) %}{{ a }}{{ b }}{{ y }}{% endmacro %}{% set y = 3 %}{{ f(1) }}{{ f(b=2, a=0) }}"),
      "113023");
  EXPECT_EQ(rendered("{% macro f() %}<{{ caller(1) }}>{% endmacro %}{% call(x) f() %}{{ x }}{% endcall %}"), "<1>");
  EXPECT_EQ(rendered("{% set n = namespace() %}{% for i in [1, 2] %}{% macro f() %}{{ i }}{% endmacro %}{% set n.f = f "
                     "%}{% endfor %}"
                     "{{ n.f() }}"),
            "2");
}

TEST(Template, EscapesWhatIsJoinedWithASafeText) {
  EXPECT_EQ(rendered("{{ '<'|safe + '<' }}{{ '<' ~ '<'|safe }}"), "<&lt;<<");
}

TEST(Template, PrintsTheDayItIsGiven) { EXPECT_EQ(rendered("{{ strftime_now('%d %b %Y') }}"), "26 Jul 2024"); }

TEST(Template, GivesOnWhatRaiseExceptionSays) {
  const Result<Template> parsed = Template::parse("a\n{{ raise_exception('roles must alternate') }}");
  const Result<std::string> text = parsed->render({}, some_day());
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, Code::kInvalidArgument);
  EXPECT_EQ(text.error().message, "chat template, line 2: roles must alternate");
}

TEST(Template, FailsForAnAttributeOfWhatIsUndefined) {
  EXPECT_EQ(rendered("{{ x }}{{ x.y }}"), "chat template, line 1: 'x' is undefined");
  EXPECT_EQ(rendered("{{ m.x.y }}", R"({"m": {}})"), "chat template, line 1: 'x' of a dict is undefined");
}

TEST(Template, TakesANullContentForNoneAndNeverWritesTheWord) {
  const auto of = [](const std::string& source) {
    return rendered("{% set c = messages[0].content %}" + source, R"({"messages": [{"content": null}], "n": null})");
  };
  EXPECT_EQ(of("{{ c is none }} {{ c == none }} {{ c is string }} {{ c is defined }} {{ 'content' in messages[0] }}"),
            "True True False True True");
  EXPECT_EQ(of("{{ c or 'x' }} {{ c | tojson }} {{ c == '' }} {{ c | default('y', true) }}"), "x null False y");
  EXPECT_EQ(of("[{{ c }}{{ c ~ c }}{{ c | trim }}{{ c | string }}{{ [c] | join }}{{ c | indent }}]"), "[]");
  EXPECT_EQ(of("[{{ 'a' + c + 'b' }}{{ c.strip() }}{{ c.split('x')[0] }}{{ c[:2] }}{{ c | length }}]"), "[ab0]");
  EXPECT_EQ(of("{{ 'x' in c }}{% for part in c %}{{ part }}{% endfor %} {{ '%s' % c }}|{{ messages[0] }}"),
            "False |{'content': ''}");
  EXPECT_EQ(of("{{ n }} {{ [n] }}"), "None [None]");  // any other null is Python's
}

TEST(Template, ChangesNoListOrDict) {
  for (const char* change : {"x.l.append(1)", "x.l.pop()", "x.update({})", "x.pop('l')", "x['clear']()"}) {
    EXPECT_NE(rendered(std::string("{{ ") + change + " }}", R"({"x": {"l": [1]}})").find("is undefined"),
              std::string::npos);
  }
}

TEST(Template, KnowsNoAttributeOfAMethod) {  // as where `d.items` means a key that d lacks
  const std::string with_dict = R"({"d": {"a": 1}, "t": "x"})";
  EXPECT_EQ(rendered("{{ d.items.type }}|{{ d.items.type is defined }}|{{ t.upper['b'] }}", with_dict), "|False|");
  EXPECT_NE(rendered("{{ d.items.type.x }}", with_dict).find("is undefined"), std::string::npos);
}

TEST(Template, RefusesWhatItDoesNotKnowNamingLineAndConstruct) {
  EXPECT_EQ(rendered("\n{% include 'x' %}"), "chat template, line 2: {% include %} is not supported here");
  EXPECT_EQ(rendered("{{ x | from_json }}"), "chat template, line 1: filter 'from_json' is not supported");
  EXPECT_EQ(rendered("{{ x is odder }}"), "chat template, line 1: test 'odder' is not supported");
  EXPECT_EQ(rendered("{{ 'é' | upper }}"), "chat template, line 1: upper case of 'é' is not supported");
  EXPECT_EQ(rendered("{{ 'a'.zfill(3) }}"), "chat template, line 1: 'zfill' of a str is not supported");
  EXPECT_EQ(rendered("{% if false %}{{ x | from_json }}{% endif %}{{ x | from_json if false }}"), "");
}

TEST(Template, RefusesWhatIsNoTemplate) {
  for (const char* source : {"{{", "{% if x %}", "{{ 'a }}", "{# a", "{% raw %}", "{{ (1 }}", "{{ 1 + }}",
                             "{% endif %}", "\xff", "{{ }}", "{% break %}", "{{ a b }}", "{% set 1 = 2 %}",
                             "{% set true = 1 %}", "{{ 99999999999999999999 }}", "{{ \"\\ud800\" }}"}) {
    EXPECT_FALSE(Template::parse(source).ok()) << source;
  }
}

// What a template may use up, at the limit and one past it.

TEST(TemplateLimits, HoldTheOutput) {
  Limits limits;
  limits.max_output_bytes = 10;
  EXPECT_EQ(rendered("{{ 'x' * 4 }}12345", "{}", limits), "xxxx12345");
  EXPECT_EQ(rendered("{{ 'x' * 5 }}12345", "{}", limits), "xxxxx12345");
  EXPECT_EQ(rendered("{{ 'x' * 6 }}12345", "{}", limits), "chat template, line 1: a text is larger than 10 bytes");
  EXPECT_EQ(rendered("{{ ('x' * 11)[:1] }}", "{}", limits), "chat template, line 1: a text is larger than 10 bytes");
}

TEST(TemplateLimits, HoldTheSteps) {
  Limits limits;
  limits.max_steps = 1000;
  std::size_t most = 0;
  while (rendered("{% for i in range(" + std::to_string(most + 1) + ") %}{{ i }}{% endfor %}", "{}", limits).front() !=
         'c')
    ++most;
  EXPECT_GT(most, 100u);
  limits.max_steps = 2000;
  EXPECT_NE(rendered("{% for i in range(" + std::to_string(most + 1) + ") %}{{ i }}{% endfor %}", "{}", limits).front(),
            'c');
  EXPECT_EQ(rendered("{% for i in range(99999) %}{% endfor %}", "{}", limits),
            "chat template, line 1: rendering takes more than 2000 steps");
  EXPECT_EQ(rendered("{{ range(100001) | length }}"), "chat template, line 1: a range is longer than 100000");
}

TEST(TemplateLimits, HoldTheDepthOfCalls) {
  const char* source = "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(depth) }}";
  EXPECT_EQ(rendered(source, R"({"depth": 50})"), "");
  EXPECT_EQ(rendered(source, R"({"depth": 100000})"), "chat template, line 1: rendering is nested more than 300 deep");
}

TEST(TemplateLimits, HoldTheDepthOfTheTree) {
  const auto sum = [](int num_terms) {
    std::string source = "{{ 1";
    for (int i = 1; i < num_terms; ++i) source += "+1";
    return rendered(source + " }}");
  };
  EXPECT_EQ(sum(148), "148");
  EXPECT_EQ(sum(149), "149");
  EXPECT_EQ(sum(150), "chat template, line 1: an expression of more than 150 steps");
  EXPECT_EQ(rendered("{{ " + std::string(100000, '(') + std::string(100000, ')') + " }}"),
            "chat template, line 1: nested more than 150 deep");
  EXPECT_EQ(rendered("{{ " + std::string(100000, '-') + "1 }}"), "chat template, line 1: nested more than 150 deep");
}

TEST(TemplateLimits, HoldTheDepthOfValues) {
  const auto nest = [](int times) {
    return rendered("{% set n = namespace(x=1) %}{% for i in range(" + std::to_string(times) +
                    ") %}{% set n.x = [n.x] %}{% endfor %}{{ n.x is iterable }}");
  };
  EXPECT_EQ(nest(63), "True");
  EXPECT_EQ(nest(64), "True");
  EXPECT_EQ(nest(65), "chat template, line 1: a value is nested more than 64 deep");
}

// A text is counted as it grows: what it would become is never there.
TEST(Template, ALongTextEndsWhileItIsMade) {
  std::string list = "[";
  for (int i = 0; i < 1000; ++i) list += i > 0 ? ",{\"a\":[[[1]]]}" : "{}";
  list += "]";
  const std::string variables = "{\"x\":" + list + ",\"t\":\"" + std::string(2000, 'a') + "\"}";
  const Limits limits{.max_output_bytes = 3000};
  for (const char* source : {"{{ x | tojson(indent=4) }}", "{{ x | tojson }}", "{{ x }}", "{{ x | string }}",
                             "{{ '%s' | format(x) }}", "{{ x ~ t }}", "{{ x | join(t) }}"}) {
    EXPECT_NE(rendered(source, variables, limits).find("a text is larger than 3000 bytes"), std::string::npos)
        << source;
  }
  EXPECT_NE(rendered("{% for c in t %}{% endfor %}", variables, {.max_steps = 1000}).find("1000 steps"),
            std::string::npos);
  EXPECT_NE(rendered("{{ t | list | length }}", variables, {.max_steps = 1000}).find("1000 steps"), std::string::npos);
  EXPECT_NE(rendered("{{ t | first }}", variables, {.max_steps = 1000}).find("1000 steps"), std::string::npos);
}

TEST(Template, EndsWithItsAllowance) {
  const auto parsed =
      Template::parse("{% for i in range(1000) %}{% for j in range(1000) %}{{ j }}{% endfor %}{% endfor %}");
  ASSERT_TRUE(parsed.ok());
  Allowance dropped(std::chrono::hours(1), [] { return true; });
  const auto text = parsed->render({}, some_day(), {}, &dropped);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, Code::kTimeout);
}

}  // namespace
}  // namespace quire::chat
