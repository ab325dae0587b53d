// The model's turn in a conversation, for every endpoint that has one: the prompt that it goes on from, and how what it says
// is understood.
//   conversation → the template's text → token ids → ... → text → reasoning, content, calls
// Shape   begin() first, once. Each choice of an answer has a parser of its own.
// Owner   a Form; its parsers do not outlive it.
// Thread  begin(): a worker. All else: any, after that.
// Fails   begin(), prompt_of(): kInvalidArgument, what render_prompt() and answer_grammar() refuse, and a prompt without tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/chat/answer/answer_items.h"
#include "api/chat/answer/answer_parser.h"
#include "api/chat/answer/answer_parts.h"
#include "api/chat/answer/call_ids.h"
#include "api/chat/chat_request.h"
#include "api/openai/generation/form.h"
#include "api/services.h"
#include "core/base/allowance.h"

namespace quire::api::chat {

// A request's prompt, as text and as the token ids that the model gets.
struct TokenPrompt {
  std::string text;
  std::vector<TokenId> ids;
  bool in_reasoning = false;
};
// kYes: of a prompt that is only counted, and may be longer than the model takes.
enum class AnyLength : std::uint8_t { kNo, kYes };
// kTimeout: the allowance has ended.
Result<TokenPrompt> prompt_of(const ChatRequest& request, const Services& services, Allowance& allowance,
                              AnyLength any_length = AnyLength::kNo);

class Turn {
 public:
  // `services` outlives it.
  explicit Turn(const Services& services) : services_(services) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // The prompts for the Generation: one. What the conversation needs of a generation is put into `request`, and what is needed
  // no longer is dropped from it: messages and tools.
  Result<std::vector<std::vector<TokenId>>> begin(ChatRequest& request, Allowance& allowance);
  // The same for who has made the prompt already.
  Result<std::vector<std::vector<TokenId>>> begin(ChatRequest& request, TokenPrompt prompt);

  AnswerParser parser() const { return AnswerParser(form_); }
  AnswerParts parts_of(std::string_view text) const;  // of a whole answer
  std::vector<AnswerItem> items_of(std::string_view text) const;
  std::string call_id(const openai::AnswerFacts& facts, std::size_t choice, std::size_t call) const {
    return ids_.of(facts.seed, choice, call);
  }

 private:
  Deltas deltas_of(std::string_view text) const;
  void show_marks(ChatRequest& request) const;

  const Services& services_;
  std::vector<std::string> tool_names_;
  AnswerForm form_;  // its tools are tool_names_
  CallIds ids_;
};

}  // namespace quire::api::chat
