#include "api/chat/prompt.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "api/chat/plain_conversation.h"

namespace quire::api::chat {
namespace {

// Appended to the message to continue, to find its end in the rendered text. A template that trims messages removes the
// blank at the mark's end.
constexpr std::string_view kMark = "QUIRE_GOES_ON_HERE ";
constexpr const char* kGoesOn = "continue_final_message";
constexpr std::size_t kMaxShown = 200;  // bytes of a template's error message that are returned

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
  if (request.reasoning_effort == "none") {  // by these variables templates switch reasoning off
    for (const char* name : {"enable_thinking", "thinking"}) {
      if (!request.template_kwargs.contains(name)) variables[name] = false;
    }
  }
  variables["tools"] = nullptr;
  if (request.offers_tools() && !model.describes_tools) variables["tools"] = request.tools;
  variables["documents"] = nullptr;
  if (request.documents) variables["documents"] = *request.documents;
  variables["add_generation_prompt"] = request.add_generation_prompt;
  return variables;
}

Error refused(Error error, const ChatRequest& request) {
  if (error.param == kGoesOn) return error;
  error.param = request.prompt_field;
  if (error.message.size() > kMaxShown) {
    std::size_t end = kMaxShown;
    while (end > 0 && (static_cast<unsigned char>(error.message[end]) & 0xC0) == 0x80) --end;
    error.message.resize(end);
    error.message += " ...";
  }
  return error;
}

Error does_not_go_on(const char* why) { return invalid(kGoesOn, std::string(kGoesOn) + ": " + why); }

// Removes the mark and all text after it; if the template trimmed the message, also white space before the mark.
Result<Done> cut_at_mark(std::string& text) {
  const std::size_t at = text.rfind(without_mark_s_blank());
  if (at == text.npos) return does_not_go_on("the chat template's output does not contain the last message");
  const bool keeps_space = text.compare(at, kMark.size(), kMark) == 0;
  text.resize(at);
  if (!keeps_space) trim_end(text);
  return Done{};
}

// True if `text` ends with the begin mark, apart from white space after it.
bool ends_open(std::string_view text, const Marks& marks) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text.ends_with(marks.begin);
}

// True if the message to continue begins reasoning and does not end it.
bool is_open(std::string_view message, const Marks& marks) {
  const std::size_t begin = message.rfind(marks.begin);
  return begin != message.npos && message.find(marks.end, begin) == message.npos;
}

bool is_of(const json::Value& message, std::string_view role) {
  const json::Value* said = message.get_object().if_contains("role");
  return said != nullptr && said->is_text(role);
}

class Rendering {
 public:
  Rendering(const ChatTemplate& form, CallFormat calls, const ChatRequest& request, json::Object variables,
            const std::tm& now, Allowance& allowance)
      : form_(form),
        calls_(calls),
        request_(request),
        variables_(std::move(variables)),
        now_(now),
        allowance_(allowance) {}

  // Text of the last message if the request continues it, else empty.
  const std::string& last() const { return last_; }

  Result<std::string> text_of(json::Array messages) {
    if (request_.continue_final_message) {
      json::Value* content = messages.back().get_object().if_contains("content");
      if (content == nullptr || !content->is_string()) return does_not_go_on("the last message has no text content");
      last_ = content->get_string();
      content->get_string() += kMark;
    }
    variables_["messages"] = std::move(messages);
    Result<std::string> text = form_.jinja.render(variables_, now_, {}, &allowance_);
    if (!text || !request_.continue_final_message) return text;
    if (Result<Done> cut = cut_at_mark(*text); !cut) return cut.error();
    return text;
  }

  // Renders the messages as given. If the template refuses them and there are system or tool messages, tries calls as
  // text with one system message at the beginning, then calls as text without system messages. If the template refuses
  // all three, the first error is returned.
  Result<std::string> text_in_any_way(const json::Array& messages) {
    Result<std::string> text = text_of(messages);
    if (text || text.error().code == Code::kTimeout || !may_differ(messages)) return text;
    const json::Array plain = with_results_as_text(with_calls_as_text(messages, calls_));
    for (const SystemPlace place : {SystemPlace::kFirst, SystemPlace::kNowhere}) {
      Result<std::string> other = text_of(with_system(place, plain));
      if (other || other.error().code == Code::kTimeout) return other;
    }
    return text;
  }

 private:
  static bool may_differ(const json::Array& messages) {
    return std::ranges::any_of(messages, [](const json::Value& message) {
      return is_of(message, "system") || is_of(message, "developer") || is_of(message, "tool");
    });
  }

  const ChatTemplate& form_;
  CallFormat calls_;
  const ChatRequest& request_;
  json::Object variables_;
  const std::tm& now_;
  Allowance& allowance_;
  std::string last_;
};

// The format in which the server writes calls into a conversation.
CallFormat written_format(const ChatModel& model) {
  return model.calls == CallFormat::kNone ? CallFormat::kGeneric : model.calls;
}

// The conversation with calls and results as text, where the template would drop them.
json::Array shown(const ChatTemplate& form, const ChatModel& model, const json::Array& messages) {
  const bool has_own = model.calls != CallFormat::kNone && model.calls != CallFormat::kGeneric;
  const bool keeps_calls = model.calls == CallFormat::kNone || (has_own && form.shows_calls);
  const bool keeps_results = model.calls == CallFormat::kNone || (has_own && form.shows_results);
  json::Array out = keeps_calls ? messages : with_calls_as_text(messages, written_format(model));
  return keeps_results ? out : with_results_as_text(out);
}

// The conversation with the tools described in its system text.
json::Array taught(const ChatTemplate& form, const ChatModel& model, const ChatRequest& request) {
  json::Array messages = shown(form, model, request.messages);
  add_to_system(messages, text_of_tools(request.tools, written_format(model)));
  return form.shows_system ? std::move(messages) : with_system(SystemPlace::kNowhere, messages);
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
  const bool teaches = request.offers_tools() && model->describes_tools;
  // Tools that the server describes are not passed as `tools`, which the template for tools would need: the plain one
  // is used, if there is one.
  const ChatTemplate& form = with_tools && !(teaches && model->plain) ? *model->with_tools : *model->plain;
  Rendering rendering(form, written_format(*model), request, variables_of(*model, request), now, allowance);
  Result<std::string> text =
      rendering.text_in_any_way(teaches ? taught(form, *model, request) : shown(form, *model, request.messages));
  if (!text && text.error().code == Code::kTimeout) return text.error();
  if (!text) return refused(text.error(), request);
  ChatPrompt prompt{std::move(*text)};
  if (const std::optional<Marks> marks = marks_of(model->reasoning)) {
    prompt.in_reasoning = ends_open(prompt.text, *marks) || is_open(rendering.last(), *marks);
  }
  return prompt;
}

bool is_own_variable(const ChatModel& model, std::string_view name) {
  return std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn) || model.special_tokens.contains(name);
}

}  // namespace quire::api::chat
