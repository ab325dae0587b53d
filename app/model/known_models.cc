#include "app/model/known_models.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/answer/calls/call_text.h"
#include "app/model/known_families.h"

namespace quire::app {
namespace {

using Calls = api::chat::CallFormat;
using Thinks = api::chat::ReasoningFormat;

std::string types_of(const KnownFamily& family, std::string_view quote) {
  std::string text = fmt::format("{0}{1}{0}", quote, family.model_type);
  if (!family.other_type.empty()) text += fmt::format(", {0}{1}{0}", quote, family.other_type);
  return text;
}

std::string calls_of(const KnownFamily& family) {
  std::string text;
  for (const Calls one : family.calls) {
    if (one == Calls::kNone) break;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", syntax_of(one).parser);
  }
  return text.empty() ? "-" : text;
}

std::string reasoning_of(const KnownFamily& family) {
  return family.reasoning == Thinks::kNone ? "-" : std::string(syntax_of(family.reasoning).parser);
}

std::string kv_of(const KnownFamily& family) {
  if (family.kv.layers == 0) return "-";
  return fmt::format("{} KiB ({})", family.kv.bytes_per_token() / 1024, family.kv.model);
}

// The text in lines of at most `width` columns, the later ones behind `indent` blanks.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (column > 0 && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = 0;
    }
    if (column > 0) out += ' ';
    column += word.size() + (column > 0 ? 1 : 0);
    out += word;
  }
  return out;
}

// A text with line breaks on one line of Markdown code.
std::string on_a_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '|') {
      out += "\\|";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string models_text() {
  constexpr std::size_t kIndent = 22;
  constexpr std::size_t kWidth = 80;
  std::string text = "Families of models that quire serves, by model_type in config.json\n";
  for (const KnownFamily& family : known_families()) {
    text += fmt::format("\n{:<{}}{}\n", types_of(family, ""), kIndent, wrapped(family.models, kWidth, kIndent));
    const auto add = [&](std::string_view name, const std::string& value) {
      if (value != "-") text += fmt::format("{:{}}{}: {}\n", "", kIndent, name, value);
    };
    add("tool calls", calls_of(family));
    add("reasoning", reasoning_of(family));
    add("KV cache a token, bf16", kv_of(family));
  }
  return text + "\nMore about each: docs/models.md\n";
}

std::string models_markdown() {
  std::string text =
      "| `model_type` | models on the hub, for example | differs from Llama in | tool calls | reasoning | "
      "KV cache a token, bf16 |\n| --- | --- | --- | --- | --- | --- |\n";
  for (const KnownFamily& family : known_families()) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", types_of(family, "`"), family.models,
                        family.differs.empty() ? "nothing" : family.differs, calls_of(family), reasoning_of(family),
                        kv_of(family));
  }
  return text;
}

std::string formats_markdown() {
  std::string text = "| `--tool-call-parser` | a call of `get_weather` |\n| --- | --- |\n";
  const api::chat::ToolCall call{"get_weather", "{\"city\": \"Oslo\"}"};
  for (const api::chat::CallSyntax& one : api::chat::call_syntaxes()) {
    if (one.format == Calls::kNone || one.format == Calls::kGeneric) continue;
    text += fmt::format("| {} | `` {} `` |\n", one.parser, on_a_line(text_of_calls(one.format, {&call, 1})));
  }
  text += "\n| `--reasoning-parser` | marks |\n| --- | --- |\n";
  for (const api::chat::ReasoningSyntax& one : api::chat::reasoning_syntaxes()) {
    if (one.format == Thinks::kNone) continue;
    text += fmt::format("| {} | `` {} `` … `` {} `` |\n", one.parser, on_a_line(std::string(one.marks.begin)),
                        on_a_line(std::string(one.marks.end)));
  }
  return text;
}

}  // namespace quire::app
