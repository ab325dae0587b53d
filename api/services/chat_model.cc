#include "api/services/chat_model.h"

#include <array>
#include <ctime>
#include <string>
#include <utility>

namespace quire::api::chat {
namespace {

bool holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

constexpr const char* kTool = "quire_probes_a_tool";
constexpr const char* kCity = "quire_probes_an_argument";
constexpr const char* kRule = "quire_probes_a_rule";

json::Object variables_of(json::Object special_tokens, json::Array messages) {
  special_tokens["messages"] = std::move(messages);
  special_tokens["tools"] = nullptr;
  special_tokens["documents"] = nullptr;
  special_tokens["add_generation_prompt"] = true;
  return special_tokens;
}

// A conversation that every template with tools can render: a question, a call, and its result.
json::Array conversation_with_call(const ChatTemplate& form) {
  json::Value arguments = json::Object{{"city", kCity}};
  if (!form.object_arguments) arguments = std::string("{\"city\": \"") + kCity + "\"}";
  json::Object call = {{"id", "abcdef123"}, {"type", "function"}};
  call["function"] = json::Object{{"name", kTool}, {"arguments", std::move(arguments)}};
  json::Object said = {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", json::Array{std::move(call)}}};
  return {json::Object{{"role", "user"}, {"content", "weather?"}}, std::move(said),
          json::Object{{"role", "tool"}, {"content", "sunny"}, {"tool_call_id", "abcdef123"}, {"name", kTool}}};
}

bool shows_system(const ChatTemplate& form, const json::Object& special_tokens) {
  json::Array messages = {json::Object{{"role", "system"}, {"content", kRule}},
                          json::Object{{"role", "user"}, {"content", "weather?"}}};
  const Result<std::string> text = form.jinja.render(variables_of(special_tokens, std::move(messages)), std::tm{});
  return text && holds(*text, kRule);
}

// Tries arguments as objects, as transformers passes them, then as text: the first form in which the template renders
// both the call and its arguments.
void find_call_format(ChatTemplate& found, const json::Object& special_tokens) {
  const std::tm now{};
  for (const bool objects : {true, false}) {
    found.object_arguments = objects;
    const Result<std::string> text =
        found.jinja.render(variables_of(special_tokens, conversation_with_call(found)), now);
    // An escaped quote behind the argument shows that the template encoded the arguments as JSON once more.
    if (text && holds(*text, kTool) && holds(*text, kCity) && !holds(*text, std::string(kCity) + "\\\"")) return;
  }
  found.object_arguments = true;
}

}  // namespace

Result<ChatTemplate> read_template(std::string_view source, const json::Object& special_tokens) {
  Result<quire::chat::Template> jinja = quire::chat::Template::parse(source);
  if (!jinja) return jinja.error();
  ChatTemplate found{std::move(*jinja)};
  found.knows_developer = holds(source, "developer");
  found.shows_system = shows_system(found, special_tokens);
  find_call_format(found, special_tokens);
  return found;
}

std::vector<std::string_view> marks_of(const ChatModel& model) {
  const std::span<const std::string_view> of_calls = marks_of(model.calls);
  std::vector<std::string_view> all(of_calls.begin(), of_calls.end());
  if (const std::optional<Marks> marks = marks_of(model.reasoning)) all.insert(all.end(), {marks->begin, marks->end});
  return all;
}

CallFormat call_format_of(std::string_view source) {
  if (holds(source, "[TOOL_CALLS]")) return CallFormat::kMistral;
  if (holds(source, "<tool_call>") && !holds(source, "<function=") && !holds(source, "<arg_key>")) {
    return CallFormat::kHermes;
  }
  if (holds(source, "{\"name\": function name, \"parameters\": dictionary")) return CallFormat::kLlamaJson;
  return CallFormat::kGeneric;
}

bool marks_arguments(std::string_view source) { return holds(source, "[ARGS]"); }

ReasoningFormat reasoning_format_of(std::string_view source) {
  if (holds(source, "</think>")) return ReasoningFormat::kThinkTags;
  if (holds(source, "[/THINK]")) return ReasoningFormat::kMistral;
  return ReasoningFormat::kNone;
}

}  // namespace quire::api::chat
