// The endpoint's part of a Generation: reads the body and writes the answer.
// Owner   the Generation; one per HTTP request.
// Thread  read(), prompts(): a worker. request(): that worker, too, once read() has returned. All else after those: the
//         io thread of the connection, or the worker that writes a long answer.
// Fails   read(), prompts(): kInvalidArgument naming the field; kNotFound if the model is not served.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/fields/generation_request.h"
#include "api/generation/choice.h"
#include "api/sequences/prompt_run.h"
#include "api/wire/errors.h"
#include "api/wire/writing.h"
#include "core/base/allowance.h"
#include "core/base/ids.h"
#include "core/base/result.h"

namespace quire::api {

// The facts that all deltas of one answer have in common.
struct AnswerFacts {
  std::string id;            // of the request; endpoints prepend "cmpl-" and the like
  std::int64_t created = 0;  // unix seconds
  std::int64_t seed = 0;     // the request's, or random
  std::string_view model;
  std::string
      fingerprint;  // of the numeric mode; with the acceptance rule if that is ratio or block (core/sample/accept.h)
  std::string timings;  // "timings":{…} in the last event of a stream and in a whole answer; else empty
};

struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::optional<std::uint64_t> cached_tokens;  // empty: not known
};

// The output of one choice: all of it, or in a stream the part since the previous delta.
struct ChoiceDelta {
  std::size_t index = 0;         // of the choice in the answer: prompt · n + i
  std::size_t prompt_index = 0;  // of its prompt
  bool first = true;             // the first delta of this choice
  std::string_view text;
  AnswerTokens tokens;                  // none unless request.keeps_tokens()
  const char* finish_reason = nullptr;  // "stop", "length" or "abort"; null: the choice has not ended
  const StopReason& stop_reason;
  const PromptRun& prompt;
  std::uint64_t num_tokens = 0;     // of this choice so far, including the one that ended it
  std::uint32_t cached_tokens = 0;  // of its prompt
};

class Formatter {
 public:
  virtual ~Formatter() = default;

  // read() and prompts() may be called again, with the same body, after an allowance has ended.
  // Reads the body into request(), which is then complete and range-checked.
  virtual Result<Done> read(const std::string& body) = 0;
  virtual const GenerationRequest& request() const = 0;
  // The token ids of one or more prompts. The Generation truncates them and checks their lengths. kTimeout: the
  // allowance has ended.
  virtual Result<std::vector<std::vector<TokenId>>> prompts(Allowance& allowance) = 0;

  // ---- a stream: server-sent events, appended to `events`
  // The number of times that the events at a stream's end repeat the whole answer: for their estimated size.
  virtual std::size_t num_repeats() const { return 0; }
  // Writes a delta, or holds it back for a later event.
  virtual void append_delta(std::string& events, const AnswerFacts& facts, const ChoiceDelta& delta) = 0;
  // The same in parts, for a delta that can be long. `facts` and everything that the delta refers to outlive the
  // Writing.
  virtual Writing write_delta(std::string& events, const AnswerFacts& facts, ChoiceDelta delta) {
    append_delta(events, facts, delta);
    return {};
  }
  virtual void append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) = 0;  // after all deltas
  virtual void append_error(std::string& events, const AnswerFacts& facts, const Error& error);    // instead of the end

  // ---- or one body, written in parts: every answered choice as one delta, by index. Everything referred to outlives
  // the Writing.
  virtual Writing write_whole(std::string& out, const AnswerFacts& facts, std::span<const ChoiceDelta> choice_deltas,
                              Usage usage) = 0;

  // The shape of refusals before the first byte, and of an error instead of a whole answer.
  virtual ErrorShape error_shape() const { return ErrorShape::kOpenAi; }
};

}  // namespace quire::api
