// What grammar_bench measures: grammars as requests send them, and some that were written to be slow.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "core/grammar/json_schema.h"
#include "core/grammar/rules/rules.h"
#include "core/grammar/text/choice.h"
#include "core/grammar/text/ebnf.h"
#include "core/grammar/text/regex.h"

namespace quire::grammar::bench {

enum class Form { kSchema, kRegex, kChoice, kEbnf };

struct Case {
  const char* name;
  Form form;
  std::string text;  // kChoice: a text a line
};

inline Rules rules_of(const Case& one) {
  Rules rules;
  if (one.form == Form::kSchema) {
    CHECK(json_schema(rules, *parse_schema(one.text)).ok());
  } else if (one.form == Form::kEbnf) {
    CHECK(ebnf(rules, one.text).ok());
  } else if (one.form == Form::kRegex) {
    const RuleId root = rules.declare("root");
    rules.define(root, *regex(rules, one.text, RegexUse::kWhole));
  } else {
    std::vector<std::string> texts{""};
    for (const char c : one.text) {
      if (c == '\n') {
        texts.emplace_back();
      } else {
        texts.back() += c;
      }
    }
    CHECK(choice(rules, texts).ok());
  }
  return rules;
}

inline std::string lines(int count, const char* begin) {
  std::string all;
  for (int i = 0; i < count; ++i) all += (i == 0 ? "" : "\n") + std::string(begin) + " " + std::to_string(i * 7919);
  return all;
}

inline const char* const kAnyJson = R"x(
root   ::= value
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (pair ("," ws pair)*)? ws "}"
pair   ::= string ":" ws value
array  ::= "[" ws (value ("," ws value)*)? ws "]"
string ::= "\"" char* "\""
char   ::= [^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws     ::= [ \n\t]{0,20}
)x";

inline std::vector<Case> usual_cases() {
  return {
      {"json object", Form::kSchema, R"({"type": "object"})"},
      {"schema: person", Form::kSchema,
       R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0},
           "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
           "address": {"type": "object", "properties": {"street": {"type": "string"},
             "zip": {"type": "string", "pattern": "^[0-9]{5}$"}, "kind": {"enum": ["home", "work"]}},
             "required": ["street", "zip", "kind"]}, "note": {"type": "string", "maxLength": 200}},
           "required": ["name", "age", "tags", "address"]})"},
      {"schema: tool call", Form::kSchema,
       R"({"type": "object", "properties": {"location": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]},
           "days": {"type": "integer", "minimum": 1, "maximum": 14}}, "required": ["location"]})"},
      {"schema: steps of reasoning", Form::kSchema,
       R"({"type": "object", "properties": {"steps": {"type": "array", "minItems": 1, "items": {"type": "object",
           "properties": {"explanation": {"type": "string"}, "output": {"type": "string"}},
           "required": ["explanation", "output"], "additionalProperties": false}},
           "final_answer": {"type": "string"}}, "required": ["steps", "final_answer"], "additionalProperties": false})"},
      {"schema: tree of nodes", Form::kSchema,
       R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"value": {"type": "number"},
           "label": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
           "required": ["value", "children"]}}})"},
      {"schema: formats", Form::kSchema,
       R"({"type": "object", "properties": {"id": {"type": "string", "format": "uuid"},
           "at": {"type": "string", "format": "date-time"}, "mail": {"type": "string", "format": "email"},
           "page": {"type": "string", "format": "uri"}, "host": {"type": "string", "format": "ipv6"}},
           "required": ["id", "at", "mail", "page", "host"]})"},
      {"schema: one of four shapes", Form::kSchema,
       R"({"type": "array", "minItems": 3, "items": {"anyOf": [
           {"type": "object", "properties": {"type": {"const": "circle"}, "r": {"type": "number"}}, "required": ["type", "r"]},
           {"type": "object", "properties": {"type": {"const": "box"}, "w": {"type": "number"}, "h": {"type": "number"}},
            "required": ["type", "w", "h"]},
           {"type": "object", "properties": {"type": {"const": "text"}, "text": {"type": "string"},
            "size": {"enum": [8, 10, 12]}}, "required": ["type", "text"]},
           {"type": "object", "properties": {"type": {"const": "group"}, "names": {"type": "array",
            "items": {"type": "string", "maxLength": 40}}}, "required": ["type", "names"]}]}})"},
      {"schema: any other properties", Form::kSchema,
       R"({"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": ["string", "null"]}},
           "required": ["id"], "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"},
           {"type": "array", "items": {"type": "string"}}]}})"},
      {"schema: words of a pattern", Form::kSchema,
       R"({"type": "array", "minItems": 2, "items": {"type": "string", "pattern": "^[A-Z][a-z]+( [A-Z][a-z]+){0,3}$"}})"},
      {"schema: strings of limited length", Form::kSchema,
       R"({"type": "object", "properties": {"title": {"type": "string", "minLength": 3, "maxLength": 80},
           "body": {"type": "string", "maxLength": 2000}, "keys": {"type": "array", "items": {"type": "string",
           "maxLength": 12}, "maxItems": 8}}, "required": ["title", "body", "keys"]})"},
      {"regex: date and time", Form::kRegex, R"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z)"},
      {"regex: any text", Form::kRegex, R"([^\x00]{1,4000})"},
      {"regex: words and marks", Form::kRegex, R"(([A-Za-z]+[,;]? ){3,60}[A-Za-z]+[.!?])"},
      {"regex: sql", Form::kRegex,
       R"(SELECT [a-z_]+(, [a-z_]+){0,9} FROM [a-z_]+( WHERE [a-z_]+ (=|<|>|LIKE) ('[^']{0,60}'|[0-9]{1,9}))?;)"},
      {"regex: lines of a list", Form::kRegex, R"((- [^\n]{1,120}\n){1,20})"},
      {"choice: yes or no", Form::kChoice, "yes\nno\nmaybe"},
      {"choice: 1,000 labels", Form::kChoice, lines(1000, "label")},
      {"ebnf: any JSON", Form::kEbnf, kAnyJson},
      {"ebnf: arithmetic", Form::kEbnf, R"x(
root ::= sum
sum  ::= product (" "? [-+] " "? product)*
product ::= atom (" "? [*/] " "? atom)*
atom ::= [0-9]{1,9} ("." [0-9]{1,9})? | [a-z] [a-z0-9_]* ("(" (sum (", " sum)*)? ")")? | "(" sum ")" | "-" atom
)x"},
      {"ebnf: statements", Form::kEbnf, R"x(
root  ::= line+
line  ::= "let " name " = " value ";\n" | "print(" value ("," " " value)* ");\n" | "if " value " {\n" line+ "}\n"
value ::= name | text | [0-9]+ | name "(" value? ")" | value2
value2 ::= "[" (value (", " value)*)? "]"
name  ::= [a-zA-Z_] [a-zA-Z0-9_]*
text  ::= "'" [^'\n]* "'"
)x"},
  };
}

// Many rules that all read the same text, each another way: `count` readings at once of whatever is written.
inline std::string many_readings(int count) {
  std::string text = "root ::= any any\nany ::= r0";
  for (int i = 1; i < count; ++i) text += " | r" + std::to_string(i);
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    text += "\nr" + n + " ::= [^\\x00]* \"" + n + "\" (r" + n + " \"-" + n + "\")?";
  }
  return text + "\n";
}

inline std::vector<Case> slow_cases() {
  return {
      {"10 readings", Form::kEbnf, many_readings(10)},
      {"100 readings", Form::kEbnf, many_readings(100)},
      {"1,000 readings", Form::kEbnf, many_readings(1000)},
      {"nested or not", Form::kEbnf, "root ::= [^<] root more? | [^<]\nmore ::= [^<]+\n"},
      {"splits anywhere", Form::kEbnf, "root ::= part root | part\npart ::= [^<]+ part2?\npart2 ::= [^<]+ part?\n"},
      {"two ways at every character", Form::kEbnf,
       "root ::= one | two\none ::= [^<] root \"1\" | [^<]\ntwo ::= [^<] root \"2\" | [^<]\n"},
      {"arrays of anything", Form::kEbnf, "root ::= \"[\" (item item*)? \"]\"\nitem ::= [^\\x00] item? | root\n"},
      {"schema of schemas", Form::kSchema,
       R"({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/a"}},
           {"type": "array", "items": {"$ref": "#/$defs/b"}}, {"type": "string"}]},
           "b": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/a"}}, {"type": "object", "properties":
           {"x": {"$ref": "#/$defs/b"}, "y": {"$ref": "#/$defs/a"}}}, {"type": "string", "maxLength": 50}]}}})"},
  };
}

}  // namespace quire::grammar::bench
