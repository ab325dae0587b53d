// What makes an endpoint of a Generation: how its body is read, and how its answer is written.
// Owner   the Generation; one for each HTTP request.
// Thread  read(), prompts(): a worker. All else: the io thread of its connection, after those.
// Fails   read(), prompts(): kInvalidArgument naming the field, kNotFound where the model is not served.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/openai/errors.h"
#include "api/openai/generation/choice.h"
#include "api/openai/generation/request.h"
#include "api/openai/generation/writing.h"
#include "core/base/allowance.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/bridge/prompt_embedding.h"
#include "core/bridge/prompt_scores.h"

namespace quire::api::openai {

// What all pieces of one answer have in common.
struct AnswerFacts {
  std::string id;            // of the request; endpoints put "cmpl-" and the like in front
  std::int64_t created = 0;  // unix seconds
  std::int64_t seed = 0;     // given or drawn
  std::string_view model;
  std::string fingerprint;  // of the numeric mode; where tokens are drawn by law (core/sample/accept.h) it says so
  std::string timings;      // "timings":{…}, for the last event of a stream and for a whole answer; empty before that
};

struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::optional<std::uint64_t> cached_tokens;  // once it is known
};

// One prompt as it was run.
struct PromptRun {
  std::uint32_t num_tokens = 0;
  std::vector<TokenId> ids;                      // where the answer tells of them (echo, return_token_ids, scores)
  const bridge::PromptScores* scores = nullptr;  // where it was scored
  const bridge::PromptEmbedding* embedding = nullptr;  // where it was pooled
};

// What one choice says: all of it, or, in a stream, what came since the piece before.
struct Piece {
  std::size_t index = 0;         // of the choice in the answer: prompt · n + i
  std::size_t prompt_index = 0;  // of its prompt
  bool first = true;             // nothing of this choice was told before
  std::string_view text;
  SaidTokens tokens;                    // those since the piece before; none unless request.keeps_tokens()
  const char* finish_reason = nullptr;  // "stop" or "length"; null: it goes on
  const StopReason& stop_reason;
  const PromptRun& prompt;
  std::uint64_t num_tokens = 0;     // of this choice so far, the one that ended it included
  std::uint32_t cached_tokens = 0;  // of its prompt
};

class Form {
 public:
  virtual ~Form() = default;

  // Both may be called again, from the body on, where an allowance has ended.
  // The body becomes request(), which is complete and range-checked then.
  virtual Result<Done> read(const std::string& body) = 0;
  virtual const GenerationRequest& request() const = 0;
  // What the model continues, one or more. How long they may be is the Generation's to check, and to truncate.
  // kTimeout: the allowance has ended.
  virtual Result<std::vector<std::vector<TokenId>>> prompts(Allowance& allowance) = 0;

  // ---- a stream: server-sent events, appended to `events`
  virtual std::size_t num_told_again() const { return 0; }  // how often its end tells all of the answer
  virtual void append_piece(std::string& events, const AnswerFacts& facts, const Piece& piece) = 0;  // may hold it back
  // The same, in parts: of a piece that can be long. `facts` and what the piece refers to outlive it.
  virtual Writing write_piece(std::string& events, const AnswerFacts& facts, Piece piece) {
    append_piece(events, facts, piece);
    return {};
  }
  virtual void append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) = 0;  // after all pieces
  virtual void append_error(std::string& events, const AnswerFacts& facts, const Error& error);    // instead of the end

  // ---- or one body: every answered choice as a whole piece, by index. In parts; all that is referred to outlives it.
  virtual Writing write_whole(std::string& out, const AnswerFacts& facts, std::span<const Piece> pieces,
                              Usage usage) = 0;

  // Of a refusal before the first byte, and of a fault instead of a whole answer.
  virtual ErrorShape error_shape() const { return ErrorShape::kOpenAi; }
};

}  // namespace quire::api::openai
