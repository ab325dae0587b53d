// quire serve: makes all parts, runs the HTTP server, and shuts down in order.
//   first SIGTERM or SIGINT: not ready, new requests 503, streams finish within --drain-timeout, exit 0
//   second: at once, exit 128 + signal        engine failure: not ready, 503, exit 1
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "api/http/server.h"
#include "api/http/waiting_room.h"
#include "api/limits/budgets.h"
#include "api/limits/request_book.h"
#include "api/services/cache_namespace.h"
#include "api/services/grammars.h"
#include "api/services/services.h"
#include "api/wire/workers.h"
#include "app/commands/commands.h"
#include "app/config/api_keys.h"
#include "app/config/units.h"
#include "app/config/version.h"
#include "app/drafting/draft_settings.h"
#include "app/hub/local_models.h"
#include "app/instance/instance.h"
#include "app/instance/throughput_log.h"
#include "app/kv_events/publisher.h"
#include "app/model/chat_templates.h"
#include "app/model/embedded_model.h"
#include "app/model/engine_settings.h"
#include "app/model/machine.h"
#include "app/process/open_files.h"
#include "app/process/signals.h"
#include "app/tracing/tracing.h"
#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/run/numeric_mode.h"
#include "hub/pull.h"

namespace quire::app {
namespace {

// Raises the limit of open files as far as the system allows, with a warning if --max-connections needs more.
void raise_file_limit(const Config& config) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < files_for(config)) {
    log_warn("few_files", "open files are limited to {}: raise `ulimit -n` for --max-connections {}", limit.rlim_cur,
             config.max_connections);
  }
}

// Checks --cache-dir at start, rather than when the first cache is saved.
void check_cache_dir(const std::string& path) {
  if (path.empty()) return;
  std::error_code error;
  const char* wrong = !std::filesystem::exists(path, error)           ? "no such directory; create it first"
                      : !std::filesystem::is_directory(path, error)   ? "this is not a directory"
                      : access(path.c_str(), R_OK | W_OK | X_OK) != 0 ? "this process may not read and write there"
                                                                      : nullptr;
  if (wrong != nullptr) throw StartError(fmt::format("--cache-dir {}: {}", path, wrong));
}

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

// Settings that work, and that an operator may regret.
void warn_of_risks(const Config& config) {
  const bool has_keys = !config.api_key_file.empty() || !config.api_key.empty();
  if (config.uds.empty() && !has_keys && !is_loopback(config.host)) {
    log_warn("no_api_keys",
             "--host {}: whoever reaches the port may use the model and /admin; set --api-key-file, or "
             "--host 127.0.0.1",
             log_safe(config.host));
  }
  if (config.log_requests == "content") {
    log_warn("prompts_are_logged", "--log-requests content: the log has the beginning of each request's body");
  }
  const std::uint32_t cpus = usable_cpus();
  if (config.threads && *config.threads > cpus) {
    log_warn("more_threads_than_cpus", "--threads {}: this process may use {} CPUs; more threads are slower",
             *config.threads, cpus);
  }
}

Result<std::shared_ptr<const api::http::TlsContext>> read_tls(const Config& config) {
  return api::http::TlsContext::load(config.tls_cert, config.tls_key.empty() ? config.tls_cert : config.tls_key);
}

std::shared_ptr<const api::http::TlsContext> load_tls(const Config& config) {
  if (config.tls_cert.empty()) return nullptr;
  auto loaded = read_tls(config);
  if (!loaded) throw StartError("--tls-cert, --tls-key: " + loaded.error().message);
  return *loaded;
}

void renew_tls(const Config& config, api::http::Server& server) {
  const auto loaded = read_tls(config);
  if (!loaded)
    return log_error("tls_not_renewed", "the previous certificate stays in use: {}", log_safe(loaded.error().message));
  server.renew_tls(*loaded);
  log_info("tls_renewed", {{"expires", (*loaded)->expiry()}});
}

// Items of a list: comma-separated words, or vLLM's JSON list, which was split at its commas.
std::vector<std::string> words_of(const std::vector<std::string>& list) {
  std::vector<std::string> words;
  for (std::string word : list) {
    std::erase_if(word, [](char c) { return c == '[' || c == ']' || c == '"' || c == ' '; });
    if (!word.empty()) words.push_back(std::move(word));
  }
  return words;
}

api::http::CorsRules cors_rules(const Config& config) {
  const api::http::CorsRules rules{.origins = words_of(config.allowed_origins),
                                   .credentials = config.allowed_credentials == "on",
                                   .methods = words_of(config.allowed_methods),
                                   .headers = words_of(config.allowed_headers)};
  if (const std::string fault = api::http::fault_of(rules); !fault.empty()) {
    throw StartError("--allowed-origins: " + fault);
  }
  return rules;
}

api::tracing::LogRequests log_requests_of(std::string_view name) {
  using enum api::tracing::LogRequests;
  return name == "off" ? kOff : name == "errors" ? kErrors : name == "all" ? kAll : kContent;
}

api::http::ServerConfig server_config(const Config& config) {
  api::http::ServerConfig server;
  server.host = config.host;
  server.port = static_cast<std::uint16_t>(config.port);
  server.uds = config.uds;
  server.tls = load_tls(config);
  server.admin_host = config.admin_host;
  if (config.admin_port) server.admin_port = static_cast<std::uint16_t>(*config.admin_port);
  server.io_threads = config.io_threads;
  server.max_connections = config.max_connections;
  server.drain_timeout = config.drain_timeout;
  server.cors = cors_rules(config);
  server.log_requests = log_requests_of(config.log_requests);
  server.limits.body_bytes = config.body_limit.value;
  server.limits.head_timeout = config.header_timeout;
  server.limits.body_timeout = config.body_timeout;
  server.limits.idle_timeout = config.idle_timeout;
  server.limits.write_timeout = config.stall_timeout;
  return server;
}

// The widest of the model's attention windows; 0: every layer attends to all positions.
std::uint32_t widest_window(const model::ModelSpec& model) {
  const std::vector<std::uint32_t> windows = model.windows();
  return *std::max_element(windows.begin(), windows.end());
}

std::shared_ptr<api::Grammars> grammars(const Instance& instance, const api::chat::ChatModel* chat) {
  const text::Tokenizer& tokenizer = *instance.tokenizer();
  const auto vocabulary_with = [&](std::span<const std::string_view> marks) {
    return api::vocabulary_of(tokenizer, instance.model().vocab, instance.eos(), marks);
  };
  std::vector<std::string_view> special;
  if (chat != nullptr) special = api::chat::marks_of(*chat);
  std::erase_if(special, [&](std::string_view mark) {
    const std::optional<TokenId> id = tokenizer.id_of(mark);
    return !id || !tokenizer.is_special(*id);
  });
  const auto plain = vocabulary_with({});
  return std::make_shared<api::Grammars>(plain, special.empty() ? plain : vocabulary_with(special));
}

std::vector<std::string> methods_of(const speculate::SpeculativeConfig& speculation) {
  if (speculation.method == speculate::Method::kNone) return {};
  return {std::string(name_of(speculation.method))};
}

api::Services services(const Config& config, Instance& instance, api::Workers& workers, api::Budgets& budgets,
                       api::requests::RequestBook& requests, std::shared_ptr<const api::chat::ChatModel> chat,
                       std::string tokenizer_info, const ApiKeys& keys, const Tracing* tracing) {
  return {
      .queue = instance.queue(),
      .workers = workers,
      .budgets = budgets,
      .doorbell = instance.doorbell(),
      .engine = instance.status(),
      .control = instance.control(),
      .requests = requests,
      .metrics = instance.metrics(),
      .tokenizer = instance.tokenizer(),
      .model_names = instance.names(),
      .created =
          std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count(),
      .max_model_len = instance.max_model_len(),
      .logits_width = instance.model().vocab,
      .hidden_size = instance.model().embedding,
      .max_num_seqs = config.max_num_seqs,
      .first_come = config.scheduling_policy == "fcfs",
      .model_window = widest_window(instance.model()),
      .prefix_caching = config.prefix_caching == "on",
      .speculative_methods = methods_of(instance.speculation()),
      .accept = instance.speculation().accept,
      .adaptive_drafts = instance.speculation().adaptive,
      .eos = instance.eos(),
      .bos = instance.model().bos,
      .defaults = instance.defaults(),
      .repetition_penalty = instance.repetition_penalty(),
      .max_new_tokens = instance.max_new_tokens(),
      .fingerprint = model::fingerprint(instance.numeric_mode()),
      .version = std::string(kVersion),
      .limits = {},
      .grammars = grammars(instance, chat.get()),
      .cache_dir = config.cache_dir,
      .chat = std::move(chat),
      .tokenizer_info = std::move(tokenizer_info),
      .keys = keys.table(),
      .tracer = tracing == nullptr ? nullptr : &tracing->tracer(),
  };
}

// A line for the operator on standard output; an event of the log if that is JSON, for programs to read.
void say(const std::string& line) {
  if (log_format() == LogFormat::kJson) return log_info("start", "{}", line);
  fmt::print("{}\n", line);
}

// Read before the model, so that problems show early; the exporter is made later, as it needs the engine's metrics.
std::optional<TraceSettings> read_trace_settings(const Config& config) {
  Problems problems;
  std::vector<std::string> notes;
  std::optional<TraceSettings> settings = trace_settings(config.otlp_traces_endpoint, environ, problems, notes);
  throw_if_any(problems);
  for (const std::string& note : notes) log_info("note", "{}", note);
  return settings;
}

// Null: prefix-cache events are not published.
std::unique_ptr<KvEventPublisher> publish_kv_events(const Config& config, Instance& instance, std::uint16_t port) {
  KvEventsConfig events = parse_kv_events_config(config.kv_events_config).value();
  if (!events.enabled) return nullptr;
  if (!events.topic) events.topic = fmt::format("kv@{}:{}@{}", config.host, port, instance.names().front());
  std::random_device device;
  PayloadFacts facts;
  facts.format = events.format;
  facts.block_tokens = config.block_size;
  facts.hash_key = std::uint64_t{device()} << 32 | device();
  facts.plain_namespace = api::namespace_of_tenant(model::fingerprint(instance.numeric_mode()), /*tenant=*/{}, {});
  facts.medium = medium_of(instance.numeric_mode());
  auto publisher = std::make_unique<KvEventPublisher>(events, std::move(facts),
                                                      instance.feed_cache(events.max_queue_size), instance.metrics());
  log_info("kv_events", {{"endpoint", publisher->endpoint()},
                         {"replay_endpoint", publisher->replay_endpoint()},
                         {"topic", log_safe(*events.topic)}});
  return publisher;
}

// Ends a download at the first signal. No callback outlives the object.
class StopAtSignal {
 public:
  explicit StopAtSignal(Signals& signals) : signals_(signals) {
    signals_.on_first([this](int number) {
      signal_.store(number);
      stop_.request_stop();
    });
  }
  ~StopAtSignal() { signals_.on_first(nullptr); }
  StopAtSignal(const StopAtSignal&) = delete;
  StopAtSignal& operator=(const StopAtSignal&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  int signal() const { return signal_.load(); }  // 0: none came

 private:
  Signals& signals_;
  std::stop_source stop_;
  std::atomic<int> signal_{0};
};

// Downloads models that are given by name. nullopt: a signal ended that; `signal` is its number.
std::optional<Config> with_snapshots(const Config& config, Signals& signals, api::http::WaitingRoom& waiting_room,
                                     int& signal) {
  const StopAtSignal stop(signals);
  std::optional<Config> out;
  try {
    out = with_local_models(config, stop.token(), [&](double fraction) { waiting_room.show("downloading", fraction); });
  } catch (const hub::PullStopped&) {
    log_warn("ended_by_signal", "signal {}: the next start goes on with the download", stop.signal());
  }
  signal = stop.signal();
  if (signal != 0) out.reset();
  return out;
}

// A URL that works from this machine.
std::string url_of(std::string_view scheme, const std::string& host, std::uint16_t port) {
  if (host == "0.0.0.0" || host == "::" || host == "localhost") return fmt::format("{}://127.0.0.1:{}", scheme, port);
  if (host.find(':') != host.npos) return fmt::format("{}://[{}]:{}", scheme, host, port);
  return fmt::format("{}://{}:{}", scheme, host, port);
}

void say_ready(const Config& config, const Instance& instance, const api::http::Server& server, bool needs_key,
               bool chats, Duration took) {
  const std::string_view scheme = config.tls_cert.empty() ? "http" : "https";
  const std::string url = url_of(scheme, config.host, server.port());
  // curl's arguments for the URL without a path.
  const std::string curl =
      config.uds.empty() ? url : fmt::format("--unix-socket {} {}://localhost", config.uds, scheme);
  if (const std::string text = instance.defaults_text(); !text.empty()) {
    say(fmt::format("sampling defaults: {} (generation_config.json; --generation-config none ignores it)", text));
  }
  say(fmt::format("ready in {}: {}", seconds_text(took), config.uds.empty() ? url : "unix:" + config.uds));
  if (config.admin_port) {
    say(fmt::format("  probes, metrics and /admin: {}", url_of("http", config.admin_host, server.admin_port())));
  }
  const std::string_view asks =
      chats ? R"("messages": [{"role": "user", "content": "Why is the sky blue?"}], "max_tokens": 256)"
            : R"("prompt": "Once upon a time", "max_tokens": 64)";
  say(fmt::format("  curl {}/v1/{}{} -H 'Content-Type: application/json' -d '{{\"model\": \"{}\", {}}}'", curl,
                  chats ? "chat/completions" : "completions", needs_key ? " -H 'Authorization: Bearer KEY'" : "",
                  instance.names().front(), asks));
  std::fflush(stdout);
}

}  // namespace

int serve(const Config& given, const std::vector<std::string>& notes) {
  const auto started = std::chrono::steady_clock::now();
  std::signal(SIGPIPE, SIG_IGN);
  ApiKeys keys(given.api_key_file, given.api_key);
  // SIGHUP must not end the process while the model loads, either. The certificate is read again once it is served.
  std::atomic<bool> reload_asked{false};
  std::function<void()> read_again;
  if (keys.table() != nullptr || !given.tls_cert.empty()) {
    read_again = [&keys, &reload_asked] {
      reload_asked.store(true);
      if (keys.table() != nullptr) keys.reload();
    };
  }
  Signals signals(read_again);  // before any other thread
  const LogThread log_thread;
  raise_file_limit(given);
  check_cache_dir(given.cache_dir);
  for (const std::string& note : notes) log_info("note", "{}", note);
  const std::optional<TraceSettings> traces = read_trace_settings(given);
  say(version_text());
  say(fmt::format("loading {}", given.model.empty() ? kEmbeddedModel : given.model));
  std::fflush(stdout);
  warn_of_risks(given);

  const api::http::ServerConfig its_server = server_config(given);
  api::http::WaitingRoom waiting_room(its_server);
  int ended_by = 0;
  const std::optional<Config> local = with_snapshots(given, signals, waiting_room, ended_by);
  if (!local) return 128 + ended_by;
  const Config& config = *local;
  waiting_room.show("loading");
  const auto files = open_model(config.model).files;
  std::shared_ptr<const api::chat::ChatModel> chat = load_chat_model(config, *files);
  std::string tokenizer_settings = config.tokenizer_info == "on" ? tokenizer_info(config, *files) : "";
  Instance instance(with_embedded_head(config), [&](double fraction) { waiting_room.show("loading", fraction); });
  for (const std::string& line : instance.description()) say(line);
  say(fmt::format("context: {} tokens", instance.max_model_len()));
  say(chat_line(*chat));
  const bool chats = chat->plain.has_value() && !config.model.empty() && config.model != kEmbeddedModel;
  std::optional<Tracing> tracing;
  if (traces) {
    tracing.emplace(*traces, instance.metrics());
    log_info("traces", {{"to", traces->url.text},
                        {"share", traces->sampler.root_share},
                        {"follows_parent", traces->sampler.follows_parent}});
  }

  constexpr std::size_t kBodyBytes = std::size_t{256} << 20;
  const std::size_t body_bytes = std::max<std::size_t>(kBodyBytes, 8 * config.body_limit.value);
  api::Workers workers(config.io_threads, body_bytes);
  api::Budgets budgets(body_bytes);
  api::requests::RequestBook requests(config.max_explained_requests);
  api::http::Server server(its_server, services(config, instance, workers, budgets, requests, std::move(chat),
                                                std::move(tokenizer_settings), keys, tracing ? &*tracing : nullptr));
  server.start(waiting_room.leave());
  const auto kv_events = publish_kv_events(config, instance, server.port());
  // Written by the engine thread (release), read after the server has stopped (acquire).
  std::atomic<bool> failed{false};
  instance.start([&] {
    failed.store(true, std::memory_order_release);
    server.drain();
  });
  signals.on_first([&](int signal) {
    log_info("drain", "signal {}: open answers have {} to finish; a second signal stops at once", signal,
             seconds_text(config.drain_timeout));
    server.drain();
  });
  if (!config.tls_cert.empty()) {
    signals.on_reload([&] {
      if (keys.table() != nullptr) keys.reload();
      renew_tls(config, server);
    });
    if (reload_asked.load()) renew_tls(config, server);
  }
  server.set_ready(true);
  say_ready(config, instance, server, keys.table() != nullptr, chats, std::chrono::steady_clock::now() - started);

  std::optional<ThroughputLog> throughput;
  if (config.log_stats_interval > Duration{}) throughput.emplace(instance.metrics(), config.log_stats_interval);

  const bool all_finished = server.wait();
  throughput.reset();
  signals.on_first(nullptr);
  signals.on_reload(nullptr);
  instance.stop();
  if (tracing) tracing->stop();
  if (failed.load(std::memory_order_acquire)) {
    log_error("stopped", "the engine failed");
    return 1;
  }
  log_info("stopped", "{}", all_finished ? "every answer was finished" : "some answers were cut short");
  return 0;
}

}  // namespace quire::app
