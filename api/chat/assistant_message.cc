#include "api/chat/assistant_message.h"

#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "api/chat/answer_grammar.h"
#include "api/chat/prompt.h"
#include "api/sequences/encode.h"

namespace quire::api::chat {
namespace {

std::tm local_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  localtime_r(&now, &parts);
  return parts;
}

// Discards the events of an answer that is not streamed.
class IgnoredEvents final : public ItemEvents {
 public:
  void begin(const AnswerItem&) override {}
  void more(const AnswerItem&, std::string_view) override {}
  void end(const AnswerItem&) override {}
};

std::size_t num_calls(const json::Array& messages) {
  std::size_t count = 0;
  for (const json::Value& message : messages) {
    const json::Value* calls = message.get_object().if_contains("tool_calls");
    if (calls != nullptr && calls->is_array()) count += calls->get_array().size();
  }
  return count;
}

}  // namespace

Result<TokenPrompt> prompt_of(const ChatRequest& request, const Services& services, Allowance& allowance,
                              AnyLength any_length) {
  Result<ChatPrompt> rendered = render_prompt(services.chat.get(), request, local_now(), allowance);
  if (!rendered) return rendered.error();
  TokenPrompt prompt{std::move(rendered->text), {}, rendered->in_reasoning};
  Result<std::vector<TokenId>> ids = any_length == AnyLength::kYes
                                         ? encode_all(prompt.text, request, services, allowance)
                                         : encode_prompt(prompt.text, request, services, allowance);
  if (!ids) return ids.error();
  prompt.ids = std::move(*ids);
  if (prompt.ids.empty() && services.bos) prompt.ids.push_back(*services.bos);
  if (prompt.ids.empty()) {
    const std::string field = request.prompt_field;
    return invalid(field, field + ": the prompt is empty, and this model has no BOS token");
  }
  return prompt;
}

Result<std::vector<std::vector<TokenId>>> AssistantMessage::begin(ChatRequest& request, Allowance& allowance) {
  Result<TokenPrompt> prompt = prompt_of(request, services_, allowance);
  if (!prompt) return prompt.error();
  return begin(request, std::move(*prompt));
}

Result<std::vector<std::vector<TokenId>>> AssistantMessage::begin(ChatRequest& request, TokenPrompt prompt) {
  Result<std::optional<GrammarOrder>> grammar = answer_grammar(request, prompt.in_reasoning, *services_.chat);
  if (!grammar) return grammar.error();
  request.grammar = std::move(*grammar);
  const CallFormat calls = services_.chat->calls;
  const bool reads_types = syntax_of(calls).style == CallStyle::kTagged;
  tools_.clear();
  for (const ToolFunction& function : request.functions) {
    tools_.push_back(callable_tool(function.name, reads_types ? function.parameters : ""));
  }
  form_.reasoning = services_.chat->reasoning;
  form_.in_reasoning = prompt.in_reasoning;
  form_.include_reasoning = request.include_reasoning;
  form_.content_marks = services_.chat->content_marks;
  if (request.offers_tools()) form_.calls = calls;
  form_.only_calls = request.offers_tools() && request.forces_call();
  if (const std::optional<Marks> marks = marks_of(form_.reasoning)) {
    request.hidden = {{std::string(marks->begin), std::string(marks->end), form_.in_reasoning}};
  }
  form_.tools = tools_;
  if (!request.parallel_tool_calls) form_.max_calls = 1;
  show_marks(request);
  ids_ = CallIds(calls, prompt.ids, num_calls(request.messages));
  request.messages = {};
  request.tools = {};
  std::vector<std::vector<TokenId>> all;
  all.push_back(std::move(prompt.ids));
  return all;
}

// Keeps special tokens in the answer's text if a mark of calls or reasoning is one: the parser needs to see it. Other
// special tokens are then shown, too; a model emits few besides those that end an answer.
void AssistantMessage::show_marks(ChatRequest& request) const {
  const auto show = [&](std::string_view mark) {
    const std::optional<TokenId> id = services_.tokenizer->id_of(mark);
    if (id && services_.tokenizer->is_special(*id)) request.skip_special_tokens = false;
  };
  for (const std::string_view mark : syntax_of(form_.calls).marks) show(mark);
  for (const std::string_view mark : syntax_of(form_.reasoning).special) show(mark);
  if (form_.content_marks) {
    show(form_.content_marks->begin);
    show(form_.content_marks->end);
  }
}

Deltas AssistantMessage::deltas_of(std::string_view text) const {
  AnswerParser whole = parser();
  Deltas deltas;
  whole.push(text, deltas);
  whole.finish(deltas);
  return deltas;
}

AnswerParts AssistantMessage::parts_of(std::string_view text) const {
  AnswerParts parts;
  parts.take(deltas_of(text));
  return parts;
}

std::vector<AnswerItem> AssistantMessage::items_of(std::string_view text) const {
  IgnoredEvents nobody;
  AnswerItems items;
  items.take(deltas_of(text), nobody);
  items.finish(nobody);
  return items.all();
}

}  // namespace quire::api::chat
