// quire generate: sends one request through the admission queue and prints its text to standard output as it arrives.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>

#include "app/commands/commands.h"
#include "app/instance/instance.h"
#include "core/base/start_error.h"
#include "core/bridge/doorbell.h"
#include "core/bridge/stream_hub.h"
#include "core/bridge/token_stream.h"
#include "core/text/detokenizer.h"
#include "core/text/stop_matcher.h"

namespace quire::app {
namespace {

std::vector<TokenId> prompt_tokens(const Instance& instance, const std::string& prompt) {
  std::vector<TokenId> tokens = instance.tokenizer()->encode(prompt, /*add_special_tokens=*/true);
  if (tokens.empty() && instance.model().bos) tokens.push_back(*instance.model().bos);
  if (tokens.empty()) throw StartError("--prompt: it is empty, and this model has no BOS token");
  if (!all_below(tokens, instance.model().vocab)) {
    throw StartError("--prompt: it has a token id outside the model's vocabulary");
  }
  if (tokens.size() >= instance.max_model_len()) {
    throw StartError(fmt::format("--prompt: it has {} tokens; prompt and answer together may have at most {}",
                                 tokens.size(), instance.max_model_len()));
  }
  return tokens;
}

std::uint64_t draw_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

sample::Params sampling_of(const GenerateOptions& options, sample::Params params) {
  params.temperature = options.temperature.value_or(params.temperature);
  params.top_p = options.top_p.value_or(params.top_p);
  params.min_p = options.min_p.value_or(params.min_p);
  params.top_k = std::max(options.top_k.value_or(params.top_k), 0);
  params.seed = options.seed ? *options.seed : draw_seed();
  return params;
}

flow::Request request_of(const GenerateOptions& options, const Instance& instance) {
  constexpr std::uint32_t kDefaultMaxTokens = 256;
  flow::Request request;
  request.arrival = SteadyClock().now();
  request.prompt = prompt_tokens(instance, options.prompt);
  const auto room = instance.max_model_len() - static_cast<std::uint32_t>(request.prompt.size());
  request.max_tokens =
      options.max_tokens.value_or(std::min({kDefaultMaxTokens, room, instance.max_new_tokens().value_or(room)}));
  if (request.max_tokens > room) {
    throw StartError(fmt::format("--max-tokens {}: after a prompt of {} tokens there is room for {}",
                                 request.max_tokens, request.prompt.size(), room));
  }
  request.sampling = sampling_of(options, instance.defaults());
  request.stop_tokens = instance.eos();
  if (instance.repetition_penalty() != 1.0f) {
    request.rules =
        std::make_shared<const sample::Rules>(sample::Rules{.repetition_penalty = instance.repetition_penalty()});
  }
  return request;
}

void print_now(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// Reads the tokens that the engine emits and prints their text, up to the end or a stop string.
class Printer {
 public:
  Printer(std::shared_ptr<const text::Tokenizer> tokenizer, std::vector<std::string> stops)
      : detokenizer_(std::move(tokenizer), /*skip_special_tokens=*/true), matcher_(std::move(stops)) {}

  void take(bridge::TokenStream& stream) {
    while (const std::optional<flow::TokenEvent> event = stream.pop()) {
      finish_ = event->finish;
      if (event->finish == flow::Finish::kNone || event->finish == flow::Finish::kLength) {
        ++num_tokens_;
        std::string text = detokenizer_.push(event->token);
        if (matcher_.would_stop(detokenizer_.completed())) text += detokenizer_.finish();
        say(text);
      }
      if (event->finish != flow::Finish::kNone) {
        if (!stopped_) say(detokenizer_.finish());
        if (!stopped_) print_now(matcher_.finish());
      }
      if (stopped_) stream.cancel();
    }
  }

  bool over() const { return finish_ != flow::Finish::kNone; }
  bool ok() const { return finish_ != flow::Finish::kFailed; }
  std::uint32_t num_tokens() const { return num_tokens_; }

 private:
  void say(const std::string& text) {
    if (stopped_) return;
    const text::StopMatcher::Step step = matcher_.push(text);
    print_now(step.text);
    stopped_ = step.stopped;
  }

  text::Detokenizer detokenizer_;
  text::StopMatcher matcher_;
  flow::Finish finish_ = flow::Finish::kNone;
  std::uint32_t num_tokens_ = 0;
  bool stopped_ = false;
};

}  // namespace

int generate(const Config& given, const GenerateOptions& options) {
  Config config = given;
  config.max_num_seqs = 1;  // so that the KV cache is sized for this sequence alone
  config.pin_prefix.clear();
  Instance instance(config);
  flow::Request request = request_of(options, instance);
  const std::uint64_t seed = request.sampling.seed;
  instance.start(nullptr);

  const auto start = std::chrono::steady_clock::now();
  Printer printer(instance.tokenizer(), options.stop);
  bridge::Doorbell events;  // rung by the engine thread
  const auto hub = std::make_shared<bridge::StreamHub>(
      1, [&events] { events.ring(); }, instance.doorbell());
  std::vector<bridge::Submission> submissions(1);
  std::shared_ptr<bridge::TokenStream> stream = hub->open([&] { printer.take(*stream); });
  submissions.front().request = std::move(request);
  submissions.front().stream = stream;
  if (const Result<Done> admitted = instance.queue().admit(submissions); !admitted) {
    throw StartError("--prompt: " + admitted.error().message);
  }
  while (!printer.over()) {
    events.wait_until(TimePoint::max());
    hub->drain();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  instance.stop();

  print_now("\n");
  if (!printer.ok()) {
    fmt::print(stderr, "quire: the engine failed; the answer is incomplete\n");
    return 1;
  }
  fmt::print(stderr, "[{} tokens in {:.2f} s, seed {}]\n", printer.num_tokens(), seconds.count(), seed);
  return 0;
}

}  // namespace quire::app
