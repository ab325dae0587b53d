// POST /v1/completions: from a body to sequences in the engine, and from their tokens to an answer.
// Owner   the session that read the request. Destruction cancels every sequence that still runs.
// Thread  as http::Answer says.
// Fails   every fault of the request is a response from admit(), before any byte of an answer; a fault of the engine ends
//         the whole request, all its choices.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http/exchange.h"
#include "api/openai/completion_request.h"
#include "api/services.h"
#include "core/bridge/token_stream.h"
#include "core/flow/request.h"
#include "core/text/detokenizer.h"
#include "core/text/stop_matcher.h"

namespace quire::api::openai {

class Completion final : public http::Answer {
 public:
  // `services` outlives it.
  Completion(const Services& services, http::Request request);
  ~Completion() override;
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  std::size_t work_bytes() const override { return http_.body.size(); }
  void work() override;
  std::optional<http::Response> admit(const std::shared_ptr<bridge::StreamHub>& hub,
                                      std::function<void()> on_news) override;
  bool streams() const override { return request_.stream; }
  std::string take_events() override;
  bool finished() const override { return finished_; }
  bool failed() const override { return failure_.has_value(); }
  http::Response whole() override;
  void fail(Error error) override;
  http::Tally tally() const override { return tally_; }

 private:
  struct Choice {
    std::shared_ptr<bridge::TokenStream> stream;  // null once ended
    text::Detokenizer detokenizer;
    text::StopMatcher matcher;
    std::string text;                     // not sent yet; the whole answer where nothing is streamed
    const char* finish_reason = nullptr;  // set once ended
    std::optional<std::string> stop_reason;
    bool told = false;  // the event with the finish_reason is out
  };

  Result<Done> prepare();
  Result<std::vector<TokenId>> ids_of(const Prompt& prompt) const;
  Result<std::uint32_t> max_tokens_for(std::size_t prompt_tokens) const;
  void take(Choice& choice);
  void end(Choice& choice, const char* reason);
  void give_up(Error error);

  void append_events(std::string& events);
  void append_head(std::string& json) const;
  void append_choice(std::string& json, std::size_t index) const;
  void append_usage(std::string& json) const;

  const Services& services_;
  http::Request http_;
  const std::int64_t created_;

  CompletionRequest request_;
  std::vector<flow::Request> sequences_;  // ready for admission; empty afterwards
  std::optional<Error> failure_;
  std::vector<Choice> choices_;
  std::size_t num_open_ = 0;  // choices without a finish_reason
  bool finished_ = false;
  bool ended_ = false;  // the stream's last events are out
  http::Tally tally_;
  std::uint64_t cached_tokens_ = 0;  // prompt tokens that came from the prefix cache, of the choices that have ended
};

}  // namespace quire::api::openai
