// POST /v1/completions: from a body to sequences in the engine, and from their tokens to an answer.
// Shape   each prompt has the same number of choices, one after the other in choices_: its best_of sequences, or the n
//         hypotheses that its search tells. Of them n are answered, as indices prompt · n + rank.
// Owner   the session that read the request. Destruction cancels every sequence that still runs.
// Thread  as http::Answer says.
// Fails   every fault of the request is a response from admit(), before any byte of an answer; a fault of the engine
//         ends the whole request, all its choices.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http/exchange.h"
#include "api/openai/choices.h"
#include "api/openai/completion_request.h"
#include "api/services.h"
#include "core/bridge/admission_queue.h"
#include "core/flow/request.h"

namespace quire::api::openai {

class Completion final : public http::Answer {
 public:
  // `services` outlives it.
  Completion(const Services& services, http::Request request);
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  std::size_t work_bytes() const override { return http_.body.size(); }
  void work() override;
  std::optional<http::Response> admit(const http::IoDoor& door) override;
  bool streams() const override { return request_.stream; }
  std::string take_events() override;
  bool finished() const override { return finished_; }
  bool failed() const override { return failure_.has_value(); }
  http::Response whole() override;
  void fail(Error error) override;
  http::Tally tally() const override;

 private:
  Result<Done> prepare();
  flow::Request sequence_for_all() const;
  std::optional<CacheRoot> root_of_prompt() const;
  Result<std::vector<TokenId>> ids_of(const Prompt& prompt) const;
  Result<std::uint32_t> max_tokens_for(std::size_t prompt_tokens) const;
  std::size_t choices_per_prompt() const { return request_.use_beam_search ? request_.n : request_.best_of; }

  Result<Done> submit(const http::IoDoor& door);
  Result<std::shared_ptr<bridge::TokenStream>> open_choice(const http::IoDoor& door);
  void give_up(flow::Finish why);
  void give_up(Error error);
  std::vector<std::size_t> answered() const;

  void append_events(std::string& events);
  void append_head(std::string& json) const;
  void append_choice(std::string& json, std::size_t index, const Choice& choice) const;
  void append_usage(std::string& json) const;
  std::uint64_t cached_tokens() const;

  const Services& services_;
  http::Request http_;
  const std::int64_t created_;

  CompletionRequest request_;
  std::vector<flow::Request> sequences_;  // ready for admission; empty afterwards
  std::uint64_t prompt_tokens_ = 0;       // of each prompt once
  std::optional<Error> failure_;
  std::vector<Choice> choices_;
  std::vector<bool> told_;  // [choices] the event with the finish_reason is out
  bool finished_ = false;
  bool ended_ = false;  // the stream's last events are out
};

}  // namespace quire::api::openai
