// One answer in the making: what the engine says on a stream becomes text, an end and a score.
// Owner   the Completion. Destruction cancels a sequence that still runs.
// Thread  the io thread of its stream.
// Fails   take(): says how the engine gave the sequence up, if it did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/bridge/token_stream.h"
#include "core/flow/token_event.h"
#include "core/text/detokenizer.h"
#include "core/text/stop_matcher.h"

namespace quire::api::openai {

class Choice {
 public:
  Choice(std::shared_ptr<bridge::TokenStream> stream, std::shared_ptr<const text::Tokenizer> tokenizer,
         const std::vector<std::string>& stop);
  Choice(Choice&&) = default;
  Choice& operator=(Choice&&) = delete;
  ~Choice();

  // Takes what the stream has, up to the answer's end. kCancelled or kFailed: the engine gave it up. Else kNone.
  flow::Finish take();
  void abort();  // unless it has ended

  const char* finish_reason() const { return finish_reason_; }  // null until it has ended
  const std::optional<std::string>& stop_reason() const { return stop_reason_; }
  const std::string& text() const { return text_; }  // since drop_text(); the whole answer where nothing is streamed
  void drop_text() { text_.clear(); }

  std::uint64_t num_tokens() const { return num_tokens_; }  // the one that ended it included
  double mean_logprob() const { return logprob_sum_ / static_cast<double>(num_tokens_); }
  std::uint32_t cached_tokens() const { return cached_tokens_; }  // once ended

 private:
  void take_token(const flow::TokenEvent& event);
  void end(const char* reason);

  std::shared_ptr<bridge::TokenStream> stream_;  // null once ended
  text::Detokenizer detokenizer_;
  text::StopMatcher matcher_;
  std::string text_;
  const char* finish_reason_ = nullptr;
  std::optional<std::string> stop_reason_;
  std::uint64_t num_tokens_ = 0;
  double logprob_sum_ = 0.0;  // of those tokens, where the request asked for it
  std::uint32_t cached_tokens_ = 0;
};

// Which `n` of one prompt's choices are answered, as indices, best first: by mean log probability, ties in their order.
std::vector<std::size_t> ranked(std::span<const Choice> choices, std::size_t n);

}  // namespace quire::api::openai
