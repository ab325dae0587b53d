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
constexpr const char* kResult = "quire_probes_a_result";

// Variables with one tool; some templates render calls only where there are tools.
json::Object variables_of(json::Object special_tokens, json::Array messages) {
  json::Object city = {{"type", "string"}, {"description", "a city"}};
  json::Object parameters = {
      {"type", "object"}, {"properties", json::Object{{"city", std::move(city)}}}, {"required", json::Array{"city"}}};
  json::Object function = {{"name", kTool}, {"description", kTool}, {"parameters", std::move(parameters)}};
  special_tokens["tools"] = json::Array{json::Object{{"type", "function"}, {"function", std::move(function)}}};
  special_tokens["messages"] = std::move(messages);
  special_tokens["documents"] = nullptr;
  special_tokens["add_generation_prompt"] = true;
  return special_tokens;
}

json::Array question() { return {json::Object{{"role", "user"}, {"content", "weather?"}}}; }

// A conversation that every template with tools can render: a question, a call, and its result.
json::Array conversation_with_call(const ChatTemplate& form) {
  json::Value arguments = json::Object{{"city", kCity}};
  if (!form.object_arguments) arguments = std::string("{\"city\": \"") + kCity + "\"}";
  json::Object call = {{"id", "abcdef123"}, {"type", "function"}};
  call["function"] = json::Object{{"name", kTool}, {"arguments", std::move(arguments)}};
  json::Object said = {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", json::Array{std::move(call)}}};
  json::Array messages = question();
  messages.push_back(std::move(said));
  messages.push_back(
      json::Object{{"role", "tool"}, {"content", kResult}, {"tool_call_id", "abcdef123"}, {"name", kTool}});
  return messages;
}

bool shows_system(const ChatTemplate& form, const json::Object& special_tokens) {
  json::Array messages = question();
  messages.insert(messages.begin(), json::Object{{"role", "system"}, {"content", kRule}});
  json::Object variables = variables_of(special_tokens, std::move(messages));
  variables["tools"] = nullptr;
  const Result<std::string> text = form.jinja.render(variables, std::tm{});
  return text && holds(*text, kRule);
}

bool shows_tools(const ChatTemplate& form, const json::Object& special_tokens) {
  const Result<std::string> text = form.jinja.render(variables_of(special_tokens, question()), std::tm{});
  return text && holds(*text, kTool);
}

// Tries arguments as objects, as transformers passes them, then as text, with tools and without: the first form in
// which the template renders both the call and its arguments.
void find_call_format(ChatTemplate& found, const json::Object& special_tokens) {
  for (const bool has_tools : {true, false}) {
    for (const bool objects : {true, false}) {
      found.object_arguments = objects;
      json::Object variables = variables_of(special_tokens, conversation_with_call(found));
      if (!has_tools) variables["tools"] = nullptr;
      const Result<std::string> text = found.jinja.render(variables, std::tm{});
      found.shows_results = text && holds(*text, kResult);
      // An escaped quote behind the argument shows that the template encoded the arguments as JSON once more.
      found.shows_calls = text && holds(*text, kCity) && !holds(*text, std::string(kCity) + "\\\"");
      if (found.shows_calls) return;
    }
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
  found.shows_tools = shows_tools(found, special_tokens);
  return found;
}

std::vector<std::string_view> marks_of(const ChatModel& model) {
  const std::span<const std::string_view> of_calls = syntax_of(model.calls).marks;
  const std::span<const std::string_view> of_reasoning = syntax_of(model.reasoning).special;
  std::vector<std::string_view> all(of_calls.begin(), of_calls.end());
  all.insert(all.end(), of_reasoning.begin(), of_reasoning.end());
  if (model.content_marks) all.insert(all.end(), {model.content_marks->begin, model.content_marks->end});
  return all;
}

}  // namespace quire::api::chat
