// A response as JSON: what was asked, how far the answer is, and its items.
// Shape   {id, object, created_at, status, ..., output: [reasoning | message | function_call], usage}; timings and seed are ours,
//         as in every answer.
// Owner   a view: what it is made of outlives it.
// Thread  any; const.
// Source  OpenAI's API reference for responses. Reasoning is told as vLLM tells it: as reasoning_text, without a summary.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/chat/answer/answer_items.h"
#include "api/chat/turn.h"
#include "api/openai/generation/form.h"
#include "api/openai/response_writer.h"
#include "api/responses/message_tokens.h"
#include "api/responses/responses_request.h"
#include "api/services.h"

namespace quire::api::responses {

struct ResponseUsage {
  openai::Usage tokens;
  std::uint64_t reasoning_tokens = 0;
};

// How far an answer has come.
struct Progress {
  std::string_view status = "in_progress";  // or completed, incomplete, cancelled, failed
  std::span<const chat::AnswerItem> items;
  const ResponseUsage* usage = nullptr;
  const Error* error = nullptr;
};

// The status of an answer, and of its last item, that ended for this reason.
std::string_view status_of(const char* finish_reason);

class ResponseObject {
 public:
  ResponseObject(const ResponsesRequest& request, const chat::Turn& turn, const MessageTokens& tokens,
                 const Services& services)
      : request_(request), turn_(turn), tokens_(tokens), services_(services) {}

  // Each as the next value.
  void append(openai::JsonWriter& json, const openai::AnswerFacts& facts, const Progress& progress) const;
  // With its text, or as it begins.
  void append_item(openai::JsonWriter& json, const openai::AnswerFacts& facts, const chat::AnswerItem& item,
                   std::string_view status) const;
  void append_part(openai::JsonWriter& json, const chat::AnswerItem& item, std::string_view text) const;
  // Of a message's text: an array, and empty where nobody asked.
  void append_logprobs(openai::JsonWriter& json, const openai::SaidTokens& tokens) const;

  static std::string item_id(const openai::AnswerFacts& facts, const chat::AnswerItem& item);

 private:
  void append_asked(openai::JsonWriter& json) const;

  const ResponsesRequest& request_;
  const chat::Turn& turn_;
  const MessageTokens& tokens_;
  const Services& services_;
};

}  // namespace quire::api::responses
