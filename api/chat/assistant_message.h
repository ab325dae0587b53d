// The assistant's message in a conversation, for every endpoint that has one: makes its prompt, parses its text.
//   conversation → the template's text → token ids → ... → text → reasoning, content, calls
// Shape   begin() comes before all other calls; it may run again after its allowance has ended. Each choice of an
//         answer has a parser of its own.
// Owner   a Formatter. The parsers borrow the tools from this object, which outlives them.
// Thread  begin(): a worker. All else: any thread, after begin().
// Fails   begin(), prompt_of(): as render_prompt(), encode_prompt() and answer_grammar(), and kInvalidArgument for a
//         prompt without tokens. kTimeout: the allowance has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/answer_items.h"
#include "api/answer/answer_parser.h"
#include "api/answer/call_ids.h"
#include "api/answer/calls/callable_tool.h"
#include "api/answer/parts/answer_parts.h"
#include "api/chat/chat_request.h"
#include "api/generation/formatter.h"
#include "api/services/services.h"
#include "core/base/allowance.h"

namespace quire::api::chat {

// A request's prompt, as text and as token ids.
struct TokenPrompt {
  std::string text;
  std::vector<TokenId> ids;
  bool in_reasoning = false;  // the text ends inside reasoning
};
// kYes: the prompt is only counted, and may be longer than the model takes.
enum class AnyLength : std::uint8_t { kNo, kYes };
Result<TokenPrompt> prompt_of(const ChatRequest& request, const Services& services, Allowance& allowance,
                              AnyLength any_length = AnyLength::kNo);

class AssistantMessage {
 public:
  // `services` outlives this object.
  explicit AssistantMessage(const Services& services) : services_(services) {}
  AssistantMessage(const AssistantMessage&) = delete;
  AssistantMessage& operator=(const AssistantMessage&) = delete;

  // Returns the prompts for the Generation: exactly one. Sets the fields of `request` that depend on the conversation
  // (grammar, hidden, skip_special_tokens), and empties messages and tools, which are not needed any more.
  Result<std::vector<std::vector<TokenId>>> begin(ChatRequest& request, Allowance& allowance);
  // The same, for a prompt that prompt_of() has made.
  Result<std::vector<std::vector<TokenId>>> begin(ChatRequest& request, TokenPrompt prompt);

  AnswerParser parser() const { return AnswerParser(form_); }
  // Parts and items of a whole answer.
  AnswerParts parts_of(std::string_view text) const;
  std::vector<AnswerItem> items_of(std::string_view text) const;
  std::string call_id(const AnswerFacts& facts, std::size_t choice, std::size_t call, std::string_view name) const {
    return ids_.of(facts.seed, choice, call, name);
  }

 private:
  Deltas deltas_of(std::string_view text) const;
  void show_marks(ChatRequest& request) const;

  const Services& services_;
  std::vector<CallableTool> tools_;
  AnswerFormat form_;  // borrows tools_
  CallIds ids_;
};

}  // namespace quire::api::chat
