#include "api/openai/completions.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <span>
#include <utility>

#include "api/http/sse_writer.h"
#include "api/openai/cache_root.h"
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

  flow::Request sequence = sequence_for_all();
  const std::uint32_t copies = request_.use_beam_search ? 1 : request_.best_of;
  const std::uint64_t most = services_.queue.limits().max_tokens;
  for (const Prompt& prompt : request_.prompts) {
    Result<std::vector<TokenId>> ids = ids_of(prompt);
    if (!ids) return ids.error();
    const Result<std::uint32_t> max_tokens = max_tokens_for(ids->size());
    if (!max_tokens) return max_tokens.error();
    prompt_tokens_ += ids->size();
    if (prompt_tokens_ * copies > most) {  // before the copies are made
      return invalid("prompt", "prompt: its sequences have more than the " + std::to_string(most) +
                                   " prompt tokens in all that may wait here: send several requests");
    }
    sequence.prompt = std::move(*ids);
    sequence.max_tokens = *max_tokens;
    sequence.cache_root = root_of_prompt();
    for (std::uint32_t i = 0; i < copies; ++i) {
      sequence.sampling.choice_index = i;
      sequences_.push_back(sequence);
    }
  }
  return Done{};
}

// What the sequences of all prompts have in common.
flow::Request Completion::sequence_for_all() const {
  flow::Request sequence;
  sequence.arrival = http_.arrival;
  sequence.sampling = request_.sampling;
  sequence.sampling.seed = static_cast<std::uint64_t>(*request_.seed);
  if (!request_.ignore_eos) sequence.stop_tokens = services_.eos;
  sequence.priority = request_.priority;
  if (request_.deadline_ms) sequence.deadline = http_.arrival + std::chrono::milliseconds(*request_.deadline_ms);
  sequence.kv_policy = request_.kv_policy;
  if (request_.use_beam_search) {
    sequence.beam = flow::BeamSearch{request_.best_of, request_.n, request_.length_penalty};
  }
  return sequence;
}

std::optional<CacheRoot> Completion::root_of_prompt() const {
  if (request_.kv_policy.kind != flow::KvPolicy::Kind::kFull) return std::nullopt;
  if (services_.prefix_caching) {
    return root_of_tenant(services_.fingerprint, flow::Request{}.tenant, request_.cache_salt);
  }
  if (request_.best_of > 1) return unique_cache_root();
  return std::nullopt;
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

std::optional<http::Response> Completion::admit(const http::IoDoor& door) {
  if (failure_) return error_response(*failure_);
  const Result<Done> admitted = submit(door);
  sequences_.clear();
  if (admitted) return std::nullopt;
  choices_.clear();
  failure_ = admitted.error();
  if (failure_->code != Code::kInvalidArgument) services_.metrics.admission_rejections.add();
  return error_response(*failure_);
}

Result<Done> Completion::submit(const http::IoDoor& door) {
  std::vector<bridge::Submission> submissions;
  submissions.reserve(sequences_.size());
  choices_.reserve(sequences_.size() * (request_.use_beam_search ? request_.n : 1));
  for (flow::Request& sequence : sequences_) {
    const std::uint32_t num_streams = sequence.beam ? sequence.beam->num_best : 1;
    bridge::Submission submission{std::move(sequence), nullptr, {}};
    for (std::uint32_t i = 0; i < num_streams; ++i) {
      Result<std::shared_ptr<bridge::TokenStream>> stream = open_choice(door);
      if (!stream) return stream.error();
      if (i == 0) {
        submission.stream = std::move(*stream);
      } else {
        submission.more_streams.push_back(std::move(*stream));
      }
    }
    submissions.push_back(std::move(submission));
  }
  told_.resize(choices_.size());
  return services_.queue.admit(submissions);
}

Result<std::shared_ptr<bridge::TokenStream>> Completion::open_choice(const http::IoDoor& door) {
  std::shared_ptr<bridge::TokenStream> stream = door.hub->open(door.on_news);
  if (!stream) {
    return Error{Code::kQueueFull, "every token stream of this server is taken; try again later", "", kRetryStreams_s};
  }
  choices_.emplace_back(stream, services_.tokenizer, request_.stop);
  return stream;
}

// ---- while the engine generates

std::string Completion::take_events() {
  std::string events;
  bool open = false;
  for (Choice& choice : choices_) {
    if (failure_) break;
    const flow::Finish fault = choice.take();
    if (fault != flow::Finish::kNone) give_up(fault);
    open = open || choice.finish_reason() == nullptr;
  }
  if (!open) finished_ = true;
  if (request_.stream) append_events(events);
  return events;
}

void Completion::fail(Error error) {
  if (!finished_) give_up(std::move(error));
}

void Completion::give_up(flow::Finish why) {
  if (why == flow::Finish::kCancelled) {
    return give_up({Code::kTimeout, "the answer was not read for too long and was cancelled", "", 0});
  }
  if (services_.engine.failed()) return give_up({Code::kUnavailable, "the engine has failed", "", 1});
  return give_up({Code::kInternal, "the model gave no finite result for this request", "", 0});
}

void Completion::give_up(Error error) {
  failure_ = std::move(error);
  for (Choice& choice : choices_) choice.abort();
  finished_ = true;
}

// Indices into choices_, in the order of the answer.
std::vector<std::size_t> Completion::answered() const {
  std::vector<std::size_t> all;
  const std::span<const Choice> choices(choices_);
  for (std::size_t first = 0; first < choices.size(); first += choices_per_prompt()) {
    for (const std::size_t i : ranked(choices.subspan(first, choices_per_prompt()), request_.n)) {
      all.push_back(first + i);
    }
  }
  return all;
}

http::Tally Completion::tally() const {
  http::Tally tally{prompt_tokens_, 0};
  for (const Choice& choice : choices_) tally.completion_tokens += choice.num_tokens();
  return tally;
}

// ---- what is written

void Completion::append_events(std::string& events) {
  if (ended_) return;
  std::string json;
  for (std::size_t i = 0; i < choices_.size() && !failure_; ++i) {
    Choice& choice = choices_[i];
    const bool ends = choice.finish_reason() != nullptr && !told_[i];
    if (choice.text().empty() && !ends) continue;
    json.clear();
    append_head(json);
    append_choice(json, i, choice);  // a stream answers every choice: best_of is n
    json += request_.include_usage ? "],\"usage\":null}" : "]}";
    http::append_event(events, json);
    choice.drop_text();
    told_[i] = ends || told_[i];
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
  std::size_t index = 0;
  for (const std::size_t i : answered()) {
    if (index != 0) response.body += ',';
    append_choice(response.body, index++, choices_[i]);
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

void Completion::append_choice(std::string& json, std::size_t index, const Choice& choice) const {
  JsonWriter writer(json);
  writer.begin_object();
  writer.key("index").number(std::uint64_t{index}).key("text").text(choice.text()).key("logprobs").null();
  writer.key("finish_reason");
  if (choice.finish_reason() == nullptr) {
    writer.null().end_object();
    return;
  }
  writer.text(choice.finish_reason()).key("stop_reason");
  if (choice.stop_reason()) {
    writer.text(*choice.stop_reason());
  } else {
    writer.null();
  }
  writer.end_object();
}

void Completion::append_usage(std::string& json) const {
  const http::Tally used = tally();
  json += "\"usage\":";
  JsonWriter writer(json);
  writer.begin_object();
  writer.key("prompt_tokens").number(used.prompt_tokens).key("completion_tokens").number(used.completion_tokens);
  writer.key("total_tokens").number(used.prompt_tokens + used.completion_tokens);
  writer.key("prompt_tokens_details").begin_object().key("cached_tokens").number(cached_tokens()).end_object();
  writer.end_object();
}

// Of each prompt what its least lucky sequence found: what siblings share with each other is no hit. A search has one
// prefill, and says of it on its first stream.
std::uint64_t Completion::cached_tokens() const {
  std::uint64_t sum = 0;
  for (std::size_t first = 0; first < choices_.size(); first += choices_per_prompt()) {
    std::uint32_t least = choices_[first].cached_tokens();
    for (std::size_t i = 1; i < choices_per_prompt() && !request_.use_beam_search; ++i) {
      least = std::min(least, choices_[first + i].cached_tokens());
    }
    sum += least;
  }
  return sum;
}

}  // namespace quire::api::openai
