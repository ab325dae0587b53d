#include "api/chat/prompt.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace quire::api::chat {
namespace {

// Put behind the message that goes on, to find it again. A template that trims its messages takes the blank away.
constexpr std::string_view kMark = "QUIRE_GOES_ON_HERE ";
constexpr std::size_t kMaxTold = 200;  // bytes of what a template says when it refuses

constexpr std::string_view kOwn[] = {
    "messages",
    "tools",
    "documents",
    "add_generation_prompt",
    "continue_final_message",
    "chat_template",
    "tokenize",
    "loop",
    "raise_exception",
    "strftime_now",
    "range",
    "dict",
    "namespace",
    "lipsum",
    "cycler",
    "joiner",
};

std::string_view without_mark_s_blank() { return kMark.substr(0, kMark.size() - 1); }

void trim_end(std::string& text) {
  while (!text.empty() && is_space(text.back())) text.pop_back();
}

json::Object variables_of(const ChatModel& model, const ChatRequest& request) {
  json::Object variables = model.special_tokens;
  for (const auto& [name, value] : request.template_kwargs) variables[name] = value;
  if (!request.reasoning_effort.empty()) variables["reasoning_effort"] = request.reasoning_effort;
  if (request.reasoning_effort == "none") {  // what the templates that can think or not ask for
    for (const char* name : {"enable_thinking", "thinking"}) {
      if (!request.template_kwargs.contains(name)) variables[name] = false;
    }
  }
  variables["messages"] = request.messages;
  variables["tools"] = nullptr;
  if (request.offers_tools()) variables["tools"] = request.tools;
  variables["documents"] = nullptr;
  if (request.documents) variables["documents"] = *request.documents;
  variables["add_generation_prompt"] = request.add_generation_prompt;
  return variables;
}

Error refused(Error error, const ChatRequest& request) {
  error.param = request.prompt_field;
  if (error.message.size() > kMaxTold) {
    std::size_t end = kMaxTold;
    while (end > 0 && (static_cast<unsigned char>(error.message[end]) & 0xC0) == 0x80) --end;
    error.message.resize(end);
    error.message += " ...";
  }
  return error;
}

Error does_not_go_on(const char* why) {
  return invalid("continue_final_message", std::string("continue_final_message: ") + why);
}

// Behind the mark's beginning nothing is left; behind a trimmed message no white space either.
Result<Done> cut_at_mark(std::string& text) {
  const std::size_t at = text.rfind(without_mark_s_blank());
  if (at == text.npos) return does_not_go_on("the last message is not in what the chat template makes of it");
  const bool keeps_space = text.compare(at, kMark.size(), kMark) == 0;
  text.resize(at);
  if (!keeps_space) trim_end(text);
  return Done{};
}

// Whether `text` ends behind an open mark with nothing but white space between.
bool ends_open(std::string_view text, const Marks& marks) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text.ends_with(marks.begin);
}

// Whether a mark is open at the end of a message that goes on.
bool is_open(std::string_view message, const Marks& marks) {
  const std::size_t begin = message.rfind(marks.begin);
  return begin != message.npos && message.find(marks.end, begin) == message.npos;
}

}  // namespace

Result<ChatPrompt> render_prompt(const ChatModel* model, const ChatRequest& request, const std::tm& now,
                                 Allowance& allowance) {
  const bool with_tools = model != nullptr && request.offers_tools() && model->with_tools;
  if (model == nullptr || (!model->plain && !with_tools)) {
    return invalid(request.prompt_field,
                   "this model has no chat template: start the server with --chat-template FILE, or send a "
                   "prompt to /v1/completions");
  }
  const ChatTemplate& form = with_tools ? *model->with_tools : *model->plain;
  json::Object variables = variables_of(*model, request);
  std::string last;
  if (request.continue_final_message) {
    json::Object& message = variables["messages"].get_array().back().get_object();
    json::Value* content = message.if_contains("content");
    if (content == nullptr || !content->is_string()) return does_not_go_on("the last message has no content");
    last = content->get_string();
    content->get_string() += kMark;
  }

  Result<std::string> text = form.jinja.render(variables, now, {}, &allowance);
  if (!text && text.error().code == Code::kTimeout) return text.error();
  if (!text) return refused(text.error(), request);
  ChatPrompt prompt{std::move(*text)};
  if (request.continue_final_message) {
    if (Result<Done> cut = cut_at_mark(prompt.text); !cut) return cut.error();
  }
  if (const std::optional<Marks> marks = marks_of(model->reasoning)) {
    prompt.in_reasoning = ends_open(prompt.text, *marks) || is_open(last, *marks);
  }
  return prompt;
}

bool is_own_variable(const ChatModel& model, std::string_view name) {
  return std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn) || model.special_tokens.contains(name);
}

}  // namespace quire::api::chat
