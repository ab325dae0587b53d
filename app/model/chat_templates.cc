#include "app/model/chat_templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/answer/calls/call_format.h"
#include "api/answer/reasoning_format.h"
#include "core/base/readable_json.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

using api::chat::CallFormat;
using api::chat::ChatModel;
using api::chat::ChatTemplate;
using api::chat::ReasoningFormat;

constexpr const char* kSpecialTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token"};

struct Sources {
  std::string where;  // for errors
  std::optional<std::string> plain;
  std::optional<std::string> tool_use;
};

std::string text_of(model::FileBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

constexpr std::size_t kMaxFileDepth = 64;

json::Object json_of(const model::ModelFiles& files, std::string_view name) {
  const auto bytes = files.find(name);
  if (!bytes) return {};
  Result<json::Value> value = json::parse(readable_json(text_of(*bytes)), kMaxFileDepth);
  if (!value || !value->is_object()) throw StartError(files.describe(name) + ": this is not a JSON object");
  return std::move(value->get_object());
}

Sources from_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw StartError(fmt::format("--chat-template {}: no such file", path));
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (!stream) throw StartError(fmt::format("--chat-template {}: cannot be read", path));
  return {path, std::move(text), std::nullopt};
}

// Sources from the value of `chat_template`: a text, or a list of {"name", "template"}.
Sources from_json(std::string where, const json::Object& object) {
  Sources sources{std::move(where), std::nullopt, std::nullopt};
  const json::Value* given = object.if_contains("chat_template");
  if (given == nullptr || given->is_null()) return sources;
  if (given->is_string()) {
    sources.plain = given->get_string();
    return sources;
  }
  const auto refuse = [&] {
    throw StartError(sources.where + ": chat_template must be a string or a list of objects with name and template");
  };
  if (!given->is_array()) refuse();
  for (const json::Value& one : given->get_array()) {
    const json::Object* named = one.if_object();
    const json::Value* name = named != nullptr ? named->if_contains("name") : nullptr;
    const json::Value* text = named != nullptr ? named->if_contains("template") : nullptr;
    if (name == nullptr || text == nullptr || !name->is_string() || !text->is_string()) refuse();
    if (name->get_string() == "default") sources.plain = text->get_string();
    if (name->get_string() == "tool_use") sources.tool_use = text->get_string();
  }
  return sources;
}

Sources find_sources(const Config& config, const model::ModelFiles& files, const json::Object& tokenizer) {
  if (!config.chat_template.empty()) return from_file(config.chat_template);
  constexpr std::string_view kTools = "additional_chat_templates/tool_use.jinja";
  const auto jinja = files.find("chat_template.jinja");
  const auto with_tools = files.find(kTools);
  if (jinja || with_tools) {
    return {files.describe(jinja ? "chat_template.jinja" : kTools),
            jinja ? std::optional(text_of(*jinja)) : std::nullopt,
            with_tools ? std::optional(text_of(*with_tools)) : std::nullopt};
  }
  if (files.find("chat_template.json")) {
    return from_json(files.describe("chat_template.json"), json_of(files, "chat_template.json"));
  }
  return from_json(files.describe("tokenizer_config.json"), tokenizer);
}

// Adds special tokens, given as texts or as objects with the text as content ({"content": "<s>", ...}).
void add_special_tokens(const json::Object& object, json::Object& tokens) {
  for (const char* name : kSpecialTokens) {
    const json::Value* token = object.if_contains(name);
    if (token != nullptr && token->is_object()) token = token->get_object().if_contains("content");
    if (token != nullptr && token->is_string() && !tokens.contains(name)) tokens[name] = *token;
  }
}

// Replaces {"content": "<s>", "lstrip": ...} by "<s>" at any depth.
void put_texts_for_tokens(json::Value& value) {
  if (value.is_array()) {
    for (json::Value& one : value.get_array()) put_texts_for_tokens(one);
  }
  if (!value.is_object()) return;
  const json::Value* content = value.get_object().if_contains("content");
  if (content != nullptr && content->is_string()) {
    value = json::Value(std::string(content->get_string()));
    return;
  }
  std::vector<std::string> names;
  for (const auto& [name, member] : value.get_object()) names.emplace_back(name);
  for (const std::string& name : names) put_texts_for_tokens(value.get_object()[name]);
}

ChatTemplate read(const Sources& sources, const std::string& text, const json::Object& special_tokens) {
  Result<ChatTemplate> read = api::chat::read_template(text, special_tokens);
  if (read) return std::move(*read);
  throw StartError(
      fmt::format("{}: {}; use another template with --chat-template FILE", sources.where, read.error().message));
}

// The format that the flag names, else the one that the template shows.
CallFormat call_format(const Config& config, std::string_view source) {
  for (const api::chat::CallSyntax& one : api::chat::call_syntaxes()) {
    if (config.tool_call_parser == one.parser) return one.format;
  }
  return api::chat::call_format_of(source);
}

ReasoningFormat reasoning_format(const Config& config, std::string_view source) {
  for (const api::chat::ReasoningSyntax& one : api::chat::reasoning_syntaxes()) {
    if (config.reasoning_parser == one.parser) return one.format;
  }
  return api::chat::reasoning_format_of(source);
}

}  // namespace

std::shared_ptr<const ChatModel> load_chat_model(const Config& config, const model::ModelFiles& files) {
  const json::Object tokenizer = json_of(files, "tokenizer_config.json");
  const Sources sources = find_sources(config, files, tokenizer);
  auto chat = std::make_shared<ChatModel>();
  const json::Object map = json_of(files, "special_tokens_map.json");
  // The same rule as the tokenizer's.
  const bool map_is_later = tokenizer.if_contains("added_tokens_decoder") == nullptr;
  add_special_tokens(map_is_later ? map : tokenizer, chat->special_tokens);
  add_special_tokens(map_is_later ? tokenizer : map, chat->special_tokens);
  if (sources.plain) chat->plain = read(sources, *sources.plain, chat->special_tokens);
  if (sources.tool_use) chat->with_tools = read(sources, *sources.tool_use, chat->special_tokens);
  const std::string of_tools = sources.tool_use.value_or(sources.plain.value_or(""));
  chat->calls = call_format(config, of_tools);
  const std::optional<ChatTemplate>& for_tools = chat->with_tools ? chat->with_tools : chat->plain;
  const bool is_own_choice = config.tool_call_parser != "auto";  // a format that the model knows without a description
  chat->describes_tools =
      chat->calls == CallFormat::kGeneric || (!is_own_choice && for_tools && !for_tools->shows_tools);
  const std::string of_answers = sources.plain.value_or(of_tools);
  chat->reasoning = reasoning_format(config, of_answers);
  if (config.reasoning_parser != "none") chat->content_marks = api::chat::content_marks_of(of_answers);
  return chat;
}

ChatSummary summary_of(const ChatModel& chat) {
  const auto name_in = [](const auto& syntaxes, auto format) {
    const auto found = std::ranges::find_if(syntaxes, [&](const auto& one) { return one.format == format; });
    return found == syntaxes.end() || found->parser == "none" ? std::string() : std::string(found->parser);
  };
  return {chat.plain.has_value(), chat.with_tools.has_value(), name_in(api::chat::call_syntaxes(), chat.calls),
          name_in(api::chat::reasoning_syntaxes(), chat.reasoning)};
}

std::string chat_line(const ChatModel& chat) {
  const ChatSummary summary = summary_of(chat);
  if (!summary.has_template) return "chat: no template, so that chat requests get 400; --chat-template FILE gives one";
  const auto form = [](const std::string& parser) { return parser.empty() ? "off" : "as " + parser; };
  return fmt::format("chat: {}, tool calls {}, reasoning {}",
                     summary.has_tool_template ? "one template, and one for tools" : "one template",
                     form(summary.tool_calls), form(summary.reasoning));
}

std::string tokenizer_info(const Config& config, const model::ModelFiles& files) {
  json::Object info = json_of(files, "tokenizer_config.json");
  const Sources sources = find_sources(config, files, info);
  for (const char* file :
       {"vocab_file", "merges_file", "tokenizer_file", "special_tokens_map_file", "added_tokens_file",
        "tokenizer_config_file", "chat_template_file", "name_or_path", "_name_or_path"}) {
    info.erase(file);
  }
  json::Value reported = std::move(info);
  put_texts_for_tokens(reported);
  json::Object& object = reported.get_object();
  if (!object.contains("tokenizer_class")) object["tokenizer_class"] = "PreTrainedTokenizerFast";
  if (sources.plain) object["chat_template"] = *sources.plain;
  return json::serialize(reported);
}

}  // namespace quire::app
