#include "api/openai/choices.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace quire::api::openai {

Choice::Choice(std::shared_ptr<bridge::TokenStream> stream, std::shared_ptr<const text::Tokenizer> tokenizer,
               const std::vector<std::string>& stop)
    : stream_(std::move(stream)), detokenizer_(std::move(tokenizer), true), matcher_(stop) {}

Choice::~Choice() {
  if (stream_) stream_->cancel();
}

flow::Finish Choice::take() {
  while (finish_reason_ == nullptr) {
    const std::optional<flow::TokenEvent> event = stream_->pop();
    if (!event) break;
    if (!flow::has_token(event->finish)) return event->finish;
    take_token(*event);
  }
  return flow::Finish::kNone;
}

void Choice::take_token(const flow::TokenEvent& event) {
  ++num_tokens_;
  logprob_sum_ += event.logprob;
  const bool last = event.finish != flow::Finish::kNone;
  std::string piece;
  if (event.finish != flow::Finish::kStop) piece = detokenizer_.push(event.token);
  if (last) piece += detokenizer_.finish();
  text::StopMatcher::Step step = matcher_.push(piece);
  text_ += step.text;
  if (step.stopped) {
    stop_reason_ = std::move(step.stop);
    if (!last) stream_->satisfy();
    end("stop");
  } else if (last) {
    text_ += matcher_.finish();
    end(event.finish == flow::Finish::kStop ? "stop" : "length");
  }
}

void Choice::abort() {
  if (!stream_) return;
  stream_->cancel();
  end("abort");
}

void Choice::end(const char* reason) {
  finish_reason_ = reason;
  cached_tokens_ = stream_->cached_tokens();
  stream_.reset();
}

std::vector<std::size_t> ranked(std::span<const Choice> choices, std::size_t n) {
  std::vector<std::size_t> order(choices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (n == choices.size()) return order;  // all of them: nothing to choose
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return choices[a].mean_logprob() > choices[b].mean_logprob(); });
  order.resize(n);
  return order;
}

}  // namespace quire::api::openai
