// The Answer of a POST that generates: turns a body into sequences of the engine, and their tokens into an answer that
// the endpoint's Formatter writes.
// Shape   each prompt has the same number of choices, adjacent in choices_: its best_of sequences, or the n hypotheses
//         that its beam search returns. n of them are answered, with the indices prompt · n + rank.
// Owner   the http::Session that read the request. Destruction cancels every running sequence.
// Thread  work(): a worker. events(), whole(), more(): a worker if they write much, else the io thread of the
//         connection. All else, destruction included: that io thread.
// Fails   an error of the request is the response of admit(), before any byte of an answer; a fault of the engine ends
//         the whole request with all its choices.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/generation/choice.h"
#include "api/generation/formatter.h"
#include "api/limits/tracked_request.h"
#include "api/sequences/sequences.h"
#include "api/services/services.h"
#include "api/services/slo_hints.h"
#include "api/wire/exchange.h"
#include "core/bridge/account.h"
#include "core/bridge/admission_queue.h"
#include "core/flow/request.h"

namespace quire::api {

class Generation final : public http::Answer {
 public:
  // `services` outlives it.
  Generation(const Services& services, http::Request request, std::unique_ptr<Formatter> formatter);
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;
  ~Generation() override { settle_reservation(); }

  std::size_t work_bytes() const override { return http_.body.size(); }
  std::optional<Lane> work(Lane lane, Allowance& allowance) override;
  bool open(const http::IoHandle& io_handle) override;
  std::optional<http::Response> admit(const http::IoHandle& io_handle) override;
  bool streams() const override { return formatter_->request().stream; }
  std::vector<http::Field> fields() const override;
  http::Taken take() override;
  std::string events() override;
  bool finished() const override { return finished_; }
  const Error* failure() const override { return failure_ ? &*failure_ : nullptr; }
  http::Response whole() override;
  std::size_t whole_size() const override;
  bool has_more() const override { return !writing_.done(); }
  std::string more() override;
  void fail(Error error) override;
  std::optional<tracing::Generated> generated() const override;

  struct Tally {
    std::uint64_t prompt_tokens = 0;
    std::uint64_t completion_tokens = 0;
  };
  Tally tally() const;  // so far

 private:
  // Sizes in the units of http::kSliceSize: an event has this size besides its tokens, and text without tokens one unit
  // per kBytesPerUnit bytes.
  static constexpr std::size_t kEventSize = 8;
  static constexpr std::size_t kBytesPerUnit = 16;

  const GenerationRequest& request() const { return formatter_->request(); }
  Result<Done> read(Allowance& allowance);
  Result<Done> make_sequences(std::vector<std::vector<TokenId>> prompts,
                              std::shared_ptr<const grammar::Grammar> grammar);
  std::size_t choices_per_prompt() const { return request().use_beam_search ? request().n : request().best_of; }
  std::size_t streams_per_sequence() const { return request().use_beam_search ? request().n : 1; }
  std::uint32_t running_per_sequence() const { return request().use_beam_search ? request().best_of : 1; }
  std::size_t token_size() const { return 1 + request().logprobs.value_or(0); }  // in the units of http::kSliceSize
  const PromptRun& prompt_of(std::size_t choice) const { return prompts_[choice / choices_per_prompt()]; }

  Result<Done> submit(const http::IoHandle& io_handle);
  Result<Done> take_places(std::vector<bridge::Submission>& submissions);
  void count() const;  // updates metrics, once it has finished
  // Charges the API key with the tokens used and refunds the rest: before the last bytes are sent, so that a client
  // that has them can send its next request at once, or when destroyed. Only the first call counts; nothing without a
  // key.
  void settle_reservation();
  std::size_t drain(std::size_t choice, std::size_t max_tokens);
  void give_up(flow::Finish why);
  void count_refused(std::size_t num_sequences) const;
  void end_cancelled(Choice& choice);
  void give_up(Error error);
  std::vector<std::size_t> answered() const;
  void note_timings();
  bool has_events(std::size_t choice) const;
  std::size_t size_of_events() const;
  std::size_t size_of(const PromptRun& prompt) const;

  Writing write_events();
  Writing write_answer();
  std::string next_part();
  ChoiceDelta delta_of(std::size_t choice, std::size_t index) const;
  Usage usage() const;
  std::uint64_t cached_tokens() const;

  const Services& services_;
  http::Request http_;
  const std::unique_ptr<Formatter> formatter_;
  AnswerFacts facts_;
  requests::TrackedRequest tracked_;

  requests::SloHints slo_hints_;                               // from the headers
  std::optional<GrammarOrder> order_;                          // of the grammar that the answer must match
  std::vector<flow::Request> sequences_;                       // to be admitted; empty afterwards
  std::vector<OutputBuffers> buffers_;                         // [sequences_]
  std::vector<std::shared_ptr<bridge::TokenStream>> streams_;  // [choices_], until admission
  bridge::Reservation reservation_;                            // in its API key's account, if the server has keys
  std::vector<PromptRun> prompts_;
  std::optional<Error> failure_;
  std::vector<Choice> choices_;
  struct Emitted {
    bool any = false;  // a delta of it was written
    bool end = false;  // the delta with its finish_reason was written
  };
  std::vector<Emitted> emitted_;  // [choices]
  std::size_t next_taken_ = 0;    // index in choices_ where the next time slice continues
  std::string part_;              // the part that is being written
  bool finished_ = false;
  bool counted_ = false;
  bool ended_ = false;  // the stream's last events were written
  Writing writing_;     // last member: it refers to all others
};

}  // namespace quire::api
