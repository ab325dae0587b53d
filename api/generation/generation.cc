#include "api/generation/generation.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <span>
#include <utility>

#include "api/fields/read_body.h"
#include "api/sequences/deadline_check.h"
#include "api/wire/errors.h"
#include "api/wire/headers.h"
#include "api/wire/sse_writer.h"
#include "core/base/log.h"

namespace quire::api {
namespace {

std::uint64_t random_bits() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

constexpr std::size_t kMostOpened = 64;  // streams opened in one time slice, about 2 µs each

using GrammarPtr = std::shared_ptr<const grammar::Grammar>;

std::int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

void Formatter::append_error(std::string& events, const AnswerFacts&, const Error& error) {
  http::append_event(events, error_json(error));
  events += http::kSseDone;
}

Generation::Generation(const Services& services, http::Request request, std::unique_ptr<Formatter> formatter)
    : services_(services),
      http_(std::move(request)),
      formatter_(std::move(formatter)),
      tracked_(services.requests, http_) {
  facts_.created = unix_now();
  facts_.fingerprint = services.fingerprint;
}

// ---- before admission

// If the allowance of kQuick ends, the work starts again in kSlow, from the body on.
std::optional<Lane> Generation::work(Lane lane, Allowance& allowance) {
  const Result<Done> read_all = read(allowance);
  const bool late = !read_all && read_all.error().code == Code::kTimeout;
  if (late && lane == Lane::kQuick) return Lane::kSlow;
  http_.body = std::string();
  if (late && order_) {
    failure_ = Error{Code::kUnavailable, read_all.error().message + ", or try again later", read_all.error().param, 1};
  } else if (late) {
    failure_ = took_too_long();
  } else if (!read_all) {
    failure_ = read_all.error();
  }
  return std::nullopt;
}

Result<Done> Generation::read(Allowance& allowance) {
  order_.reset();
  Result<requests::SloHints> slo_hints = requests::slo_hints_of(http_.slo_hints, services_.limits);
  if (!slo_hints) return slo_hints.error();
  slo_hints_ = std::move(*slo_hints);
  if (Result<Done> read = formatter_->read(http_.body); !read) return read.error();
  facts_.id = request().request_id.empty() ? http_.id : request().request_id;
  facts_.model = request().model;
  // A random seed stays below 2^53, so that a client that reads JSON numbers as doubles can send it back.
  facts_.seed = request().seed ? *request().seed : static_cast<std::int64_t>(random_bits() >> 11);

  Result<std::vector<std::vector<TokenId>>> prompts = formatter_->prompts(allowance);
  if (!prompts) return prompts.error();
  order_ = request().grammar;  // the endpoint's own, or the body's
  if (!order_ && request().grammar_text) order_ = order_of(*request().grammar_text);
  if (!order_) return make_sequences(std::move(*prompts), nullptr);
  if (!services_.grammars) return invalid(order_->field, order_->field + " is not supported here: leave it out");
  Result<GrammarPtr> grammar = services_.grammars->make(*order_, allowance);
  if (!grammar) return grammar.error();
  return make_sequences(std::move(*prompts), *std::move(grammar));
}

Result<Done> Generation::make_sequences(std::vector<std::vector<TokenId>> prompts, GrammarPtr grammar) {
  SequenceFacts facts{
      .seed = facts_.seed, .arrival = http_.arrival, .grammar = std::move(grammar), .slo_hints = slo_hints_};
  if (http_.caller) {
    facts.tenant = http_.caller->tenant;
    facts.tenant_id = http_.caller->tenant_id;
    facts.weight = http_.caller->weight;
  } else {
    facts.tenant_id = requests::tenant_of(slo_hints_.fairness_id);
  }
  Result<Sequences> sequences = sequences_of(request(), std::move(prompts), std::move(facts), services_);
  if (!sequences) return sequences.error();
  sequences_ = std::move(sequences->sequences);
  buffers_ = std::move(sequences->buffers);
  prompts_ = std::move(sequences->prompts);
  const sample::Params& sampling = sequences_.front().sampling;
  if (sample::accepts_by_rejection(sampling)) facts_.fingerprint += "-" + std::string(name_of(sampling.accept));
  return Done{};
}

std::optional<http::Response> Generation::admit(const http::IoHandle& io_handle) {
  if (failure_) return error_response(*failure_, formatter_->error_shape());
  Result<Done> admitted =
      check_deadline(request(), slo_hints_, sequences_, prompts_, services_, std::chrono::steady_clock::now());
  const std::size_t num_sequences = sequences_.size();
  if (admitted) admitted = submit(io_handle);
  sequences_.clear();
  buffers_.clear();
  streams_.clear();
  if (admitted) return std::nullopt;
  choices_.clear();
  failure_ = admitted.error();
  if (failure_->code != Code::kInvalidArgument) count_refused(num_sequences);
  return error_response(*failure_, formatter_->error_shape());
}

void Generation::count_refused(std::size_t num_sequences) const {
  using enum observe::Metrics::Slo;
  services_.metrics.admission_rejections.add();
  const auto count = [&](observe::Metrics::Slo slo, bool asked) {
    if (asked) services_.metrics.slos[slo][observe::Metrics::kRefused].add(num_sequences);
  };
  count(kDeadline, deadline_of(request(), slo_hints_).has_value());
  count(kFirstToken, slo_hints_.first_token.has_value());
  count(kTokenTime, slo_hints_.token_time.has_value());
}

bool Generation::open(const http::IoHandle& io_handle) {
  const std::size_t num_choices = failure_ ? 0 : sequences_.size() * streams_per_sequence();
  choices_.reserve(num_choices);
  const std::size_t until = std::min(streams_.size() + kMostOpened, num_choices);
  while (streams_.size() < until) {
    const std::size_t i = streams_.size();
    OutputBuffers buffers =
        i % streams_per_sequence() == 0 ? std::exchange(buffers_[i / streams_per_sequence()], {}) : OutputBuffers();
    std::shared_ptr<bridge::TokenStream> stream = io_handle.hub->open(
        io_handle.on_events, request().logprobs.value_or(0), std::move(buffers.scores), std::move(buffers.embedding));
    if (!stream) return false;  // submit() returns the error
    choices_.emplace_back(stream, services_.tokenizer, request());
    streams_.push_back(std::move(stream));
  }
  return until < num_choices;
}

Result<Done> Generation::submit(const http::IoHandle& io_handle) {
  while (open(io_handle)) continue;
  if (choices_.size() < sequences_.size() * streams_per_sequence()) {
    return Error{Code::kQueueFull, "all token streams of this server are in use; try again later", "",
                 services_.queue.retry_after_s()};
  }
  std::vector<bridge::Submission> submissions;
  submissions.reserve(sequences_.size());
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (i % streams_per_sequence() == 0) {
      tracked_.add_sequence(streams_[i]);
      submissions.push_back({std::move(sequences_[submissions.size()]), std::move(streams_[i]), {}});
    } else {
      tracked_.add_stream(streams_[i]);
      submissions.back().more_streams.push_back(std::move(streams_[i]));
    }
  }
  emitted_.resize(choices_.size());
  if (Result<Done> taken = take_places(submissions); !taken) return taken.error();
  // Before it runs, so that it can be cancelled at any time.
  tracked_.enter(facts_.id, {request().model, request().stream, tally().prompt_tokens, prompts_.size()});
  Result<Done> admitted = services_.queue.admit(submissions);
  if (admitted) return admitted;
  tracked_.withdraw();
  reservation_ = bridge::Reservation();
  return admitted;
}

// Reserves tokens and sequences in the account of its API key. This comes before the server's own limits, so that a
// caller beyond its limits takes no room from others.
Result<Done> Generation::take_places(std::vector<bridge::Submission>& submissions) {
  if (!http_.caller) return Done{};
  const auto num_waiting = static_cast<std::uint32_t>(submissions.size());
  bridge::Account::Demand demand{num_waiting * running_per_sequence(), num_waiting, 0};
  for (const PromptRun& prompt : prompts_) demand.tokens += prompt.num_tokens;
  for (const bridge::Submission& submission : submissions) {
    demand.tokens += std::uint64_t{submission.request.max_tokens} * running_per_sequence();
  }
  Result<bridge::Account::Admitted> admitted = http_.caller->account->take(demand, std::chrono::steady_clock::now());
  if (!admitted) return admitted.error();
  for (std::size_t i = 0; i < submissions.size(); ++i) submissions[i].slot = std::move(admitted->slots[i]);
  reservation_ = std::move(admitted->reservation);
  return Done{};
}

void Generation::count() const {
  services_.metrics.request_n.observe(request().n);
  const auto longest = std::ranges::max_element(choices_, {}, &Choice::num_tokens);
  if (longest == choices_.end()) return;
  services_.metrics.request_longest_answer.observe(static_cast<double>(longest->num_tokens()));
}

void Generation::settle_reservation() {
  const Tally used = tally();
  std::uint64_t tokens_run = used.completion_tokens;
  if (request().use_beam_search) {  // each hypothesis counts as long as the longest one returned
    tokens_run = 0;
    for (std::size_t first = 0; first < choices_.size(); first += choices_per_prompt()) {
      const auto of_prompt = std::span(choices_).subspan(first, choices_per_prompt());
      const auto longest = std::ranges::max_element(of_prompt, {}, &Choice::num_tokens);
      tokens_run += longest->num_tokens() * running_per_sequence();
    }
  }
  reservation_.end(std::chrono::steady_clock::now(), used.prompt_tokens, tokens_run);
}

std::vector<http::Field> Generation::fields() const {
  std::vector<http::Field> fields = tracked_.fields();
  std::string warnings = warnings_of(request());
  if (!warnings.empty()) fields.push_back({http::kWarningsHeader, std::move(warnings)});
  return fields;
}

// ---- while the engine generates

http::Taken Generation::take() {
  std::size_t size = 0;
  bool more = false;
  while (next_taken_ < choices_.size() && !failure_ && !more) {
    const std::size_t max_tokens = (http::kSliceSize - size) / token_size() + 1;
    const std::size_t num_tokens = drain(next_taken_, max_tokens);
    if (num_tokens > 0) size += kEventSize + num_tokens * token_size();
    const bool all = num_tokens < max_tokens || choices_[next_taken_].finish_reason() != nullptr;
    if (all) ++next_taken_;
    more = !all || (size >= http::kSliceSize && next_taken_ < choices_.size());
  }
  if (!more || failure_) {
    next_taken_ = 0;
    const auto ended = [](const Choice& choice) { return choice.finish_reason() != nullptr; };
    finished_ = finished_ || std::ranges::all_of(choices_, ended);
    if (finished_) settle_reservation();
    if (finished_ && !std::exchange(counted_, true)) count();
  }
  return {size_of_events(), more && !failure_};
}

// Takes pending events of one choice, and returns the number of tokens taken.
std::size_t Generation::drain(std::size_t i, std::size_t max_tokens) {
  const std::uint64_t num_before = choices_[i].num_tokens();
  const flow::Finish fault = choices_[i].take(max_tokens);
  if (fault == flow::Finish::kCancelled && tracked_.cancelled()) {
    end_cancelled(choices_[i]);
  } else if (fault != flow::Finish::kNone) {
    give_up(fault);
  }
  if (i % choices_per_prompt() == 0) {
    PromptRun& prompt = prompts_[i / choices_per_prompt()];
    prompt.scores = choices_[i].scores();
    prompt.embedding = choices_[i].embedding();
  }
  return choices_[i].num_tokens() - num_before;
}

std::string Generation::events() {
  if (!request().stream) return {};
  writing_ = write_events();
  return next_part();
}

// Ends a choice whose request was cancelled: its text so far is the answer. A request that scores or embeds its prompt
// fails instead, since that result may be incomplete.
void Generation::end_cancelled(Choice& choice) {
  if (request().scores_prompt() || request().embeds())
    return give_up({Code::kCancelled, "the request was cancelled", "", 0});
  choice.abort();
}

void Generation::fail(Error error) {
  if (!finished_) give_up(std::move(error));
}

void Generation::give_up(flow::Finish why) {
  if (why == flow::Finish::kCancelled) {
    return give_up({Code::kTimeout, "the answer was cancelled because it was not read for too long", "", 0});
  }
  if (why == flow::Finish::kLate) {
    return give_up(
        too_late(request(), slo_hints_,
                 tally().completion_tokens == 0 ? "while the request waited" : "before the answer was complete"));
  }
  if (services_.engine.failed()) return give_up({Code::kUnavailable, "the engine has failed", "", 1});
  if (why == flow::Finish::kNoToken) {
    const std::string field = order_ ? order_->field : "allowed_token_ids";
    return give_up(invalid(field, field +
                                      ": the grammar allows no next token. Check that allowed_token_ids, bad_words, "
                                      "logit_bias and min_tokens do not exclude every token that it permits"));
  }
  return give_up({Code::kInternal, "the model's result for this request is NaN or infinite", "", 0});
}

void Generation::give_up(Error error) {
  failure_ = std::move(error);
  for (Choice& choice : choices_) choice.abort();
  finished_ = true;
}

// Indices of the answered choices in choices_, in the order of the answer.
std::vector<std::size_t> Generation::answered() const {
  std::vector<std::size_t> all;
  const std::span<const Choice> choices(choices_);
  for (std::size_t first = 0; first < choices.size(); first += choices_per_prompt()) {
    for (const std::size_t i : ranked(choices.subspan(first, choices_per_prompt()), request().n)) {
      all.push_back(first + i);
    }
  }
  return all;
}

Generation::Tally Generation::tally() const {
  Tally tally;
  for (const PromptRun& prompt : prompts_) tally.prompt_tokens += prompt.num_tokens;
  for (const Choice& choice : choices_) tally.completion_tokens += choice.num_tokens();
  return tally;
}

std::optional<tracing::Generated> Generation::generated() const {
  const GenerationRequest& asked = request();
  tracing::Generated reported{.model = log_safe(asked.model),
                              .id = facts_.id.empty() ? http_.id : facts_.id,
                              .n = asked.n,
                              .max_tokens = asked.max_tokens,
                              .temperature = asked.sampling.temperature,
                              .top_p = asked.sampling.top_p,
                              .top_k = asked.sampling.top_k,
                              .streams = asked.stream,
                              .num_sequences = static_cast<std::uint32_t>(choices_.size()),
                              .admitted = tracked_.entered()};
  if (failure_) reported.error_type = type_of(failure_->code);
  const Usage used = usage();
  reported.usage = {used.prompt_tokens, used.cached_tokens.value_or(0), used.completion_tokens};
  if (!reported.admitted) return reported;
  reported.phases = requests::phases_of(tracked_.timelines());
  for (const auto& timeline : tracked_.timelines()) {
    reported.num_preemptions += timeline->preemptions().num();
    for (const bridge::Timeline::Preemption& one : timeline->preemptions().kept()) {
      if (reported.preemptions.size() < tracing::Generated::kMaxPreemptions) reported.preemptions.push_back(one);
    }
  }
  for (const Choice& choice : choices_) {
    if (choice.finish_reason() != nullptr) reported.finish_reasons.emplace_back(choice.finish_reason());
  }
  return reported;
}

}  // namespace quire::api
