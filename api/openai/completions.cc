#include "api/openai/completions.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "api/http/sse_writer.h"
#include "api/openai/errors.h"
#include "api/openai/response_writer.h"

namespace quire::api::openai {
namespace {

constexpr std::uint32_t kDefaultMaxTokens = 16;  // OpenAI's
constexpr int kRetryStreams_s = 1;

std::uint64_t random_bits() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

std::int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Completion::Completion(const Services& services, http::Request request)
    : services_(services), http_(std::move(request)), created_(unix_now()) {}

Completion::~Completion() {
  for (Choice& choice : choices_) {
    if (choice.stream) choice.stream->cancel();
  }
}

// ---- before admission

void Completion::work() {
  if (Result<Done> prepared = prepare(); !prepared) failure_ = prepared.error();
  http_.body = std::string();
  request_.prompts.clear();
}

Result<Done> Completion::prepare() {
  Result<CompletionRequest> parsed = parse_completion_request(http_.body, services_);
  if (!parsed) return parsed.error();
  request_ = std::move(*parsed);
  // Kept below 2^53, so that a client that reads JSON numbers as doubles can send it back.
  if (!request_.seed) request_.seed = static_cast<std::int64_t>(random_bits() >> 11);

  flow::Request sequence;
  sequence.arrival = http_.arrival;
  sequence.sampling = request_.sampling;
  sequence.sampling.seed = static_cast<std::uint64_t>(*request_.seed);
  sequence.sampling.choice_index = 0;  // each prompt is answered as if it had come alone
  if (!request_.ignore_eos) sequence.stop_tokens = services_.eos;
  for (const Prompt& prompt : request_.prompts) {
    Result<std::vector<TokenId>> ids = ids_of(prompt);
    if (!ids) return ids.error();
    const Result<std::uint32_t> max_tokens = max_tokens_for(ids->size());
    if (!max_tokens) return max_tokens.error();
    tally_.prompt_tokens += ids->size();
    sequence.prompt = std::move(*ids);
    sequence.max_tokens = *max_tokens;
    sequences_.push_back(sequence);
  }
  return Done{};
}

Result<std::vector<TokenId>> Completion::ids_of(const Prompt& prompt) const {
  if (const auto* given = std::get_if<std::vector<TokenId>>(&prompt)) return *given;
  std::vector<TokenId> ids = services_.tokenizer->encode(std::get<std::string>(prompt), true);
  if (ids.empty()) {
    if (!services_.bos) return invalid("prompt", "prompt is empty, and this model has no token that begins a text");
    ids.push_back(*services_.bos);
  }
  const auto fits = [&](TokenId id) { return id >= 0 && static_cast<std::uint32_t>(id) < services_.logits_width; };
  if (!std::all_of(ids.begin(), ids.end(), fits)) {
    return invalid("prompt", "prompt spells a token that this model has no row for");
  }
  return ids;
}

Result<std::uint32_t> Completion::max_tokens_for(std::size_t prompt_tokens) const {
  const std::size_t limit = services_.max_model_len;
  const std::string ends =
      " the model takes at most " + std::to_string(limit) + " (max_model_len), prompt and answer together: ";
  if (prompt_tokens >= limit) {
    return invalid("prompt", "prompt has " + std::to_string(prompt_tokens) + " tokens;" + ends + "shorten the prompt");
  }
  const std::size_t room = limit - prompt_tokens;
  if (!request_.max_tokens) return static_cast<std::uint32_t>(std::min<std::size_t>(kDefaultMaxTokens, room));
  if (*request_.max_tokens > room) {
    return invalid("max_tokens", "max_tokens is " + std::to_string(*request_.max_tokens) + " and the prompt has " +
                                     std::to_string(prompt_tokens) + " tokens;" + ends +
                                     "shorten the prompt or ask for at most " + std::to_string(room));
  }
  return *request_.max_tokens;
}

std::optional<http::Response> Completion::admit(const std::shared_ptr<bridge::StreamHub>& hub,
                                                std::function<void()> on_news) {
  if (failure_) return error_response(*failure_);
  std::vector<bridge::Submission> submissions;
  submissions.reserve(sequences_.size());
  Result<Done> admitted = Done{};
  for (flow::Request& sequence : sequences_) {
    std::shared_ptr<bridge::TokenStream> stream = hub->open(on_news);
    if (!stream) {
      admitted =
          Error{Code::kQueueFull, "every token stream of this server is taken; try again later", "", kRetryStreams_s};
      break;
    }
    choices_.push_back({stream,
                        text::Detokenizer(services_.tokenizer, true),
                        text::StopMatcher(request_.stop),
                        {},
                        nullptr,
                        {},
                        false});
    submissions.push_back({std::move(sequence), std::move(stream), {}});
  }
  if (admitted) admitted = services_.queue.admit(submissions);
  sequences_.clear();
  if (!admitted) {
    choices_.clear();
    failure_ = admitted.error();
    if (failure_->code != Code::kInvalidArgument) services_.metrics.admission_rejections.add();
    return error_response(*failure_);
  }
  num_open_ = choices_.size();
  return std::nullopt;
}

// ---- while the engine generates

std::string Completion::take_events() {
  std::string events;
  for (Choice& choice : choices_) {
    if (choice.finish_reason == nullptr && !failure_) take(choice);
  }
  if (num_open_ == 0) finished_ = true;
  if (request_.stream) append_events(events);
  return events;
}

void Completion::take(Choice& choice) {
  while (choice.finish_reason == nullptr) {
    const std::optional<flow::TokenEvent> event = choice.stream->pop();
    if (!event) return;
    switch (event->finish) {
      case flow::Finish::kCancelled:
        return give_up({Code::kTimeout, "the answer was not read for too long and was cancelled", "", 0});
      case flow::Finish::kFailed:
        if (services_.engine.failed()) return give_up({Code::kUnavailable, "the engine has failed", "", 1});
        return give_up({Code::kInternal, "the model gave no finite result for this request", "", 0});
      case flow::Finish::kNone:
      case flow::Finish::kStop:
      case flow::Finish::kLength:
        break;
    }
    ++tally_.completion_tokens;
    const bool last = event->finish != flow::Finish::kNone;
    std::string piece;
    if (event->finish != flow::Finish::kStop) piece = choice.detokenizer.push(event->token);
    if (last) piece += choice.detokenizer.finish();
    text::StopMatcher::Step step = choice.matcher.push(piece);
    choice.text += step.text;
    if (step.stopped) {
      choice.stop_reason = std::move(step.stop);
      if (!last) choice.stream->satisfy();
      end(choice, "stop");
    } else if (last) {
      choice.text += choice.matcher.finish();
      end(choice, event->finish == flow::Finish::kStop ? "stop" : "length");
    }
  }
}

void Completion::end(Choice& choice, const char* reason) {
  choice.finish_reason = reason;
  cached_tokens_ += choice.stream->cached_tokens();
  choice.stream.reset();
  --num_open_;
}

void Completion::fail(Error error) {
  if (!finished_) give_up(std::move(error));
}

void Completion::give_up(Error error) {
  failure_ = std::move(error);
  for (Choice& choice : choices_) {
    if (!choice.stream) continue;
    choice.stream->cancel();
    end(choice, "abort");
  }
  finished_ = true;
}

// ---- what is written

void Completion::append_events(std::string& events) {
  if (ended_) return;
  std::string json;
  for (std::size_t i = 0; i < choices_.size() && !failure_; ++i) {
    Choice& choice = choices_[i];
    const bool ends = choice.finish_reason != nullptr && !choice.told;
    if (choice.text.empty() && !ends) continue;
    json.clear();
    append_head(json);
    append_choice(json, i);
    json += request_.include_usage ? "],\"usage\":null}" : "]}";
    http::append_event(events, json);
    choice.text.clear();
    choice.told = choice.finish_reason != nullptr;
  }
  if (!finished_) return;
  ended_ = true;
  if (failure_) {
    http::append_event(events, error_json(*failure_));
  } else if (request_.include_usage) {
    json.clear();
    append_head(json);
    json += "],";
    append_usage(json);
    json += '}';
    http::append_event(events, json);
  }
  events += http::kSseDone;
}

http::Response Completion::whole() {
  if (failure_) return error_response(*failure_);
  http::Response response;
  append_head(response.body);
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (i != 0) response.body += ',';
    append_choice(response.body, i);
  }
  response.body += "],";
  append_usage(response.body);
  response.body += '}';
  return response;
}

// What every body and event begins with, up to and with the bracket of its choices.
void Completion::append_head(std::string& json) const {
  JsonWriter writer(json);
  writer.begin_object();
  writer.key("id").text("cmpl-" + http_.id).key("object").text("text_completion");
  writer.key("created").number(created_).key("model").text(request_.model);
  writer.key("system_fingerprint").text(services_.fingerprint).key("seed").number(*request_.seed);
  writer.key("choices").begin_array();
}

void Completion::append_choice(std::string& json, std::size_t index) const {
  const Choice& choice = choices_[index];
  JsonWriter writer(json);
  writer.begin_object();
  writer.key("index").number(std::uint64_t{index}).key("text").text(choice.text).key("logprobs").null();
  writer.key("finish_reason");
  if (choice.finish_reason == nullptr) {
    writer.null().end_object();
    return;
  }
  writer.text(choice.finish_reason).key("stop_reason");
  if (choice.stop_reason) {
    writer.text(*choice.stop_reason);
  } else {
    writer.null();
  }
  writer.end_object();
}

void Completion::append_usage(std::string& json) const {
  json += "\"usage\":";
  JsonWriter writer(json);
  writer.begin_object();
  writer.key("prompt_tokens").number(tally_.prompt_tokens).key("completion_tokens").number(tally_.completion_tokens);
  writer.key("total_tokens").number(tally_.prompt_tokens + tally_.completion_tokens);
  writer.key("prompt_tokens_details").begin_object().key("cached_tokens").number(cached_tokens_).end_object();
  writer.end_object();
}

}  // namespace quire::api::openai
