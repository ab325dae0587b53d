// A POST that generates: from a body to sequences in the engine, and from their tokens to an answer in its Form's
// words.
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
#include "api/openai/generation/choice.h"
#include "api/openai/generation/form.h"
#include "api/openai/generation/sequences.h"
#include "api/requests/slo_hints.h"
#include "api/requests/tracked_request.h"
#include "api/services.h"
#include "core/bridge/account.h"
#include "core/bridge/admission_queue.h"
#include "core/flow/request.h"

namespace quire::api::openai {

class Generation final : public http::Answer {
 public:
  // `services` outlives it.
  Generation(const Services& services, http::Request request, std::unique_ptr<Form> form);
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;
  ~Generation() override { end_reservation(); }

  std::size_t work_bytes() const override { return http_.body.size(); }
  std::optional<Lane> work(Lane lane, Allowance& allowance) override;
  bool open(const http::IoHandle& io_handle) override;
  std::optional<http::Response> admit(const http::IoHandle& io_handle) override;
  bool streams() const override { return form_->request().stream; }
  std::vector<http::Field> fields() const override;
  http::Taken take() override;
  std::string events() override;
  bool finished() const override { return finished_; }
  bool failed() const override { return failure_.has_value(); }
  http::Response whole() override;
  std::size_t whole_size() const override;
  bool has_more() const override { return !writing_.done(); }
  std::string more() override;
  void fail(Error error) override;
  http::Tally tally() const override;
  std::optional<tracing::Generated> generated() const override;

 private:
  // In units of a turn: what is around an event's tokens, and text that nothing else is told of.
  static constexpr std::size_t kEventSize = 8;
  static constexpr std::size_t kBytesPerUnit = 16;

  const GenerationRequest& request() const { return form_->request(); }
  Result<Done> read(Allowance& allowance);
  Result<Done> make_sequences(std::vector<std::vector<TokenId>> prompts,
                              std::shared_ptr<const grammar::Grammar> grammar);
  std::size_t choices_per_prompt() const { return request().use_beam_search ? request().n : request().best_of; }
  std::size_t streams_per_sequence() const { return request().use_beam_search ? request().n : 1; }
  std::uint32_t running_per_sequence() const { return request().use_beam_search ? request().best_of : 1; }
  std::size_t token_size() const { return 1 + request().logprobs.value_or(0); }  // in units of a turn
  const PromptRun& prompt_of(std::size_t choice) const { return prompts_[choice / choices_per_prompt()]; }

  Result<Done> submit(const http::IoHandle& io_handle);
  Result<Done> take_places(std::vector<bridge::Submission>& submissions);
  void count() const;  // in the metrics, once it has finished
  void end_reservation();
  std::size_t hear(std::size_t choice, std::size_t max_tokens);
  void give_up(flow::Finish why);
  void count_refused(std::size_t num_sequences) const;
  void end_cancelled(Choice& choice);
  void give_up(Error error);
  std::vector<std::size_t> answered() const;
  void note_timings();
  bool has_news(std::size_t choice) const;
  std::size_t size_of_news() const;
  std::size_t size_of(const PromptRun& prompt) const;

  Writing write_events();
  Writing write_answer();
  std::string next_part();
  Piece piece_of(std::size_t choice, std::size_t index) const;
  Usage usage() const;
  std::uint64_t cached_tokens() const;

  const Services& services_;
  http::Request http_;
  const std::unique_ptr<Form> form_;
  AnswerFacts facts_;
  requests::TrackedRequest tracked_;

  requests::SloHints slo_hints_;                               // of the headers
  std::optional<GrammarOrder> order_;                          // that the answer has to hold to
  std::vector<flow::Request> sequences_;                       // ready for admission; empty afterwards
  std::vector<Room> rooms_;                                    // [sequences_]
  std::vector<std::shared_ptr<bridge::TokenStream>> streams_;  // [choices_] until admission
  bridge::Reservation reservation_;                            // with its API key, where the server has keys
  std::vector<PromptRun> prompts_;
  std::optional<Error> failure_;
  std::vector<Choice> choices_;
  struct Told {
    bool any = false;  // an event of it is out
    bool end = false;  // the one with its finish_reason is
  };
  std::vector<Told> told_;      // [choices]
  std::size_t next_taken_ = 0;  // of choices_: where the next turn begins
  std::string part_;            // of what is being written
  bool finished_ = false;
  bool counted_ = false;
  bool ended_ = false;  // the stream's last events are out
  Writing writing_;     // last: it refers to all of the above
};

}  // namespace quire::api::openai
