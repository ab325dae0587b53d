// quire generate: sends one request through the admission queue and prints its text to standard output as it arrives.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <random>

#include "api/chat/prompt.h"
#include "api/services/grammars.h"
#include "app/commands/commands.h"
#include "app/instance/instance.h"
#include "app/model/chat_templates.h"
#include "core/base/start_error.h"
#include "core/bridge/doorbell.h"
#include "core/bridge/stream_hub.h"
#include "core/bridge/token_stream.h"
#include "core/text/detokenizer.h"
#include "core/text/stop_matcher.h"

namespace quire::app {
namespace {

constexpr std::size_t kMaxPromptBytes = std::size_t{64} << 20;

// All of a stream. `name` is for errors.
std::string read_all(std::FILE* stream, const std::string& name) {
  std::string text;
  std::array<char, 65536> part{};
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), stream)) {
    text.append(part.data(), count);
    if (text.size() > kMaxPromptBytes) throw StartError(name + ": more than 64 MiB, the maximum of a prompt");
  }
  if (std::ferror(stream) != 0) throw StartError(name + ": " + std::strerror(errno));
  return text;
}

// Reads the file `path`; errors begin with `flag`.
std::string read_file(const std::string& flag, const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  const std::string name = flag + " " + path;
  if (file == nullptr) throw StartError(name + ": " + std::strerror(errno));
  return read_all(file.get(), name);
}

std::string without_last_line_end(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

std::string prompt_of(const GenerateOptions& options) {
  if (!options.prompt_file.empty()) return read_file("--prompt-file", options.prompt_file);
  if (!options.prompt.empty() && options.prompt != "-") return options.prompt;
  if (options.prompt.empty() && isatty(STDIN_FILENO) == 1) {
    throw StartError(
        "a prompt is required: quire generate MODEL \"TEXT\", --prompt TEXT, --prompt-file FILE, or text on standard "
        "input");
  }
  std::string text = without_last_line_end(read_all(stdin, "standard input"));
  if (text.empty()) throw StartError("the prompt on standard input is empty");
  return text;
}

// The grammar that --json-schema asks for, checked but for the vocabulary; none without that flag.
std::optional<api::GrammarText> schema_of(const GenerateOptions& options) {
  constexpr const char* kFlag = "--json-schema";
  if (options.json_schema.empty()) return std::nullopt;
  const bool is_text = options.json_schema.find_first_not_of(" \t\r\n") == options.json_schema.find('{');
  api::GrammarText schema{.kind = api::GrammarText::Kind::kJsonSchema,
                          .text = is_text ? options.json_schema : read_file(kFlag, options.json_schema),
                          .field = kFlag};
  grammar::Rules rules;
  grammar::WriteBudget budget;
  if (const auto start = api::write_grammar(rules, schema, budget); !start) throw StartError(start.error().message);
  return schema;
}

std::shared_ptr<const grammar::Grammar> compiled(const api::GrammarText& schema, const Instance& instance) {
  api::Grammars grammars(api::vocabulary_of(*instance.tokenizer(), instance.model().vocab, instance.eos()));
  const auto grammar = grammars.make(api::order_of(schema));
  if (!grammar) throw StartError(grammar.error().message);
  return *grammar;
}

// The prompt as the model takes it.
struct PromptText {
  std::string text;
  bool is_chat = false;
};

PromptText rendered(const Config& config, const GenerateOptions& options, std::string prompt) {
  if (options.raw) return {std::move(prompt)};
  const std::shared_ptr<const api::chat::ChatModel> chat = load_chat_model(config, *open_model(config.model).files);
  if (!chat->plain) {
    if (!options.system.empty()) {
      throw StartError("--system: this model has no chat template; give one with --chat-template FILE");
    }
    return {std::move(prompt)};
  }
  api::chat::ChatRequest request;
  request.prompt_field = "--prompt";
  if (!options.system.empty()) {
    request.messages.push_back(json::Object{{"role", "system"}, {"content", options.system}});
  }
  request.messages.push_back(json::Object{{"role", "user"}, {"content", std::move(prompt)}});
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  Allowance no_limit;
  Result<api::chat::ChatPrompt> text = api::chat::render_prompt(chat.get(), request, parts, no_limit);
  if (!text) throw StartError(text.error().message + "; --raw continues the prompt without a chat template");
  return {std::move(text->text), true};
}

std::vector<TokenId> prompt_tokens(const Instance& instance, const PromptText& prompt) {
  std::vector<TokenId> tokens = instance.tokenizer()->encode(prompt.text, /*add_special_tokens=*/!prompt.is_chat);
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

flow::Request request_of(const GenerateOptions& options, const PromptText& prompt, const Instance& instance) {
  constexpr std::uint32_t kDefaultMaxTokens = 256;
  flow::Request request;
  request.arrival = SteadyClock().now();
  request.prompt = prompt_tokens(instance, prompt);
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
      if (flow::has_token(event->finish) && event->finish != flow::Finish::kStop) {
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
  bool ok() const { return !flow::is_fault(finish_); }
  bool is_cut() const { return finish_ == flow::Finish::kLength; }  // at its maximum length
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
  const PromptText prompt = rendered(config, options, prompt_of(options));
  const std::optional<api::GrammarText> schema = schema_of(options);
  Instance instance(config);
  flow::Request request = request_of(options, prompt, instance);
  if (schema) request.grammar = compiled(*schema, instance);
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
  if (schema && printer.is_cut()) {
    fmt::print(stderr, "quire: the answer was cut before it matched --json-schema; --max-tokens raises its length\n");
    return 1;
  }
  if (printer.num_tokens() == 0) {
    fmt::print(stderr, "quire: the model ended its answer before the first token{}\n",
               options.raw ? "; without --raw the prompt goes through the model's chat template" : "");
  }
  return 0;
}

}  // namespace quire::app
