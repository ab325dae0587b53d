#include "api/generation/choice.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "api/generation/token_text.h"

namespace quire::api {

Choice::Choice(std::shared_ptr<bridge::TokenStream> stream, std::shared_ptr<const text::Tokenizer> tokenizer,
               const GenerationRequest& request)
    : request_(&request),
      stream_(std::move(stream)),
      detokenizer_(std::move(tokenizer), request.skip_special_tokens, request.goes_on),
      visible_(request.stop.empty() ? std::nullopt : request.hidden),
      matcher_(request.stop) {}

Choice::~Choice() {
  if (finish_reason_ == nullptr && stream_) stream_->cancel();
}

flow::Finish Choice::take(std::size_t max_tokens) {
  for (std::size_t i = 0; i < max_tokens && finish_reason_ == nullptr; ++i) {
    const std::optional<flow::TokenEvent> event = stream_->pop();
    if (!event) break;
    has_output_ = true;
    if (event->finish == flow::Finish::kScored) {
      end("length");
    } else if (!flow::has_token(event->finish)) {
      return event->finish;
    } else {
      take_token(*event);
    }
  }
  return flow::Finish::kNone;
}

void Choice::take_token(const flow::TokenEvent& event) {
  ++num_tokens_;
  logprob_sum_ += event.logprob;
  if (request_->keeps_tokens()) {
    tokens_.push_back({event.token, event.logprob, offset_ + static_cast<std::uint32_t>(detokenizer_.num_held())});
    const std::span<const flow::Candidate> top = stream_->top();
    top_.insert(top_.end(), top.begin(), top.end());
  }
  const bool last = event.finish != flow::Finish::kNone;
  const bool by_token = event.finish == flow::Finish::kStop;
  std::string delta;
  if (!by_token || request_->include_stop) delta = detokenizer_.push(event.token);
  // A stop string may be completed by text that the detokenizer still holds: it ends the answer here.
  const bool stops =
      num_tokens_ > request_->rules.min_tokens && matcher_.would_stop(visible_.ahead(detokenizer_.completed()));
  if (last || stops) delta += detokenizer_.finish();
  if (request_->logprobs) offset_ += static_cast<std::uint32_t>(num_code_points(delta));
  VisibleText::Parts parts = visible_.push(delta);
  if (last || stops) parts.visible += visible_.finish();
  text_ += parts.hidden;
  if (num_tokens_ <= request_->rules.min_tokens) {  // stop strings are not matched yet
    text_ += parts.visible;
  } else if (match(parts.visible)) {
    if (!last) stream_->satisfy();
    return end("stop");
  }
  if (!last) return;
  text_ += matcher_.finish();
  const std::vector<TokenId>& ids = request_->stop_token_ids;
  const bool asked_for = std::find(ids.begin(), ids.end(), event.token) != ids.end();
  if (by_token && asked_for) stop_reason_ = event.token;
  end(event.finish == flow::Finish::kLength ? "length" : "stop");
}

bool Choice::match(std::string_view delta) {
  text::StopMatcher::Step step = matcher_.push(delta);
  text_ += step.text;
  if (!step.stopped) return false;
  if (request_->include_stop) text_ += step.stop;
  stop_reason_ = std::move(step.stop);
  return true;
}

void Choice::abort() {
  if (finish_reason_ != nullptr) return;
  stream_->cancel();
  end("abort");
}

void Choice::end(const char* reason) {
  finish_reason_ = reason;
  cached_tokens_ = stream_->cached_tokens();
  if (stream_->scores() == nullptr && stream_->embedding() == nullptr) stream_.reset();  // frees its slot in the hub
}

void Choice::drop_emitted() {
  text_.clear();
  tokens_.clear();
  top_.clear();
}

void Choice::drop_all() {
  text_ = {};
  tokens_ = {};
  top_ = {};
  stream_.reset();
}

double Choice::mean_logprob() const { return num_tokens_ == 0 ? 0.0 : logprob_sum_ / static_cast<double>(num_tokens_); }

const bridge::PromptScores* Choice::scores() const { return has_output_ && stream_ ? stream_->scores() : nullptr; }

const bridge::PromptEmbedding* Choice::embedding() const {
  return has_output_ && stream_ ? stream_->embedding() : nullptr;
}

std::vector<std::size_t> ranked(std::span<const Choice> choices, std::size_t n) {
  std::vector<std::size_t> order(choices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (n == choices.size()) return order;  // all are answered
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return choices[a].mean_logprob() > choices[b].mean_logprob(); });
  order.resize(n);
  return order;
}

}  // namespace quire::api
