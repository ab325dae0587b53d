// JSON of a response: the settings of its request, the progress of the answer, and its items.
// Shape   {id, object, created_at, status, ..., output: [reasoning | message | function_call], usage};
//         system_fingerprint, seed and timings are ours, as in every answer.
// Owner   a view: all that it refers to outlives it.
// Thread  any; const.
// Source  OpenAI's API reference for responses. Reasoning is written as in vLLM: as reasoning_text, without a summary.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/answer/answer_items.h"
#include "api/chat/assistant_message.h"
#include "api/generation/formatter.h"
#include "api/json/response_writer.h"
#include "api/responses/message_tokens.h"
#include "api/responses/responses_request.h"
#include "api/services/services.h"

namespace quire::api::responses {

struct ResponseUsage {
  Usage tokens;
  std::uint64_t reasoning_tokens = 0;
};

// Progress of an answer.
struct Progress {
  std::string_view status = "in_progress";  // or completed, incomplete, cancelled or failed
  std::span<const chat::AnswerItem> items;
  const ResponseUsage* usage = nullptr;
  const Error* error = nullptr;
};

// Status of an answer that ended for this reason: completed, incomplete or cancelled.
std::string_view status_of(const char* finish_reason);

class ResponseObject {
 public:
  ResponseObject(const ResponsesRequest& request, const chat::AssistantMessage& assistant, const MessageTokens& tokens,
                 const Services& services)
      : request_(request), assistant_(assistant), tokens_(tokens), services_(services) {}

  // Each of these writes the next JSON value.
  void append(JsonWriter& json, const AnswerFacts& facts, const Progress& progress) const;
  // Status in_progress: the item as it begins, without its text; else with it.
  void append_item(JsonWriter& json, const AnswerFacts& facts, const chat::AnswerItem& item,
                   std::string_view status) const;
  void append_part(JsonWriter& json, const chat::AnswerItem& item, std::string_view text) const;
  // Log probabilities of a message's text: an array, empty if the request does not ask for them.
  void append_logprobs(JsonWriter& json, const AnswerTokens& tokens) const;

  static std::string item_id(const AnswerFacts& facts, const chat::AnswerItem& item);

 private:
  void append_asked(JsonWriter& json) const;

  const ResponsesRequest& request_;
  const chat::AssistantMessage& assistant_;
  const MessageTokens& tokens_;
  const Services& services_;
};

}  // namespace quire::api::responses
