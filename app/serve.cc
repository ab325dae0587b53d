// quire serve: everything made, the HTTP server run, and an end in good order.
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
#include <span>
#include <string_view>
#include <vector>

#include "api/http/server.h"
#include "api/openai/generation/grammars.h"
#include "api/services.h"
#include "app/chat_templates.h"
#include "app/commands.h"
#include "app/engine_settings.h"
#include "app/instance.h"
#include "app/signals.h"
#include "app/units.h"
#include "app/version.h"
#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/bridge/request_book.h"
#include "core/bridge/worker_pool.h"
#include "core/model/numeric_mode.h"

namespace quire::app {
namespace {

// As many open files as the system allows. A note where that is fewer than --max-connections.
void raise_file_limit(const Config& config) {
  constexpr rlim_t kOwnFiles = 64;  // listener, wake-ups, logs, mapped shards
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < config.max_connections + kOwnFiles) {
    log_warn("few_files", "open files are limited to {}: raise `ulimit -n` for --max-connections {}", limit.rlim_cur,
             config.max_connections);
  }
}

// Found now, not when the first cache is to be saved.
void check_cache_dir(const std::string& path) {
  if (path.empty()) return;
  std::error_code error;
  const char* wrong = !std::filesystem::exists(path, error)           ? "there is no such directory; make it first"
                      : !std::filesystem::is_directory(path, error)   ? "this is not a directory"
                      : access(path.c_str(), R_OK | W_OK | X_OK) != 0 ? "this process may not read and write there"
                                                                      : nullptr;
  if (wrong != nullptr) throw StartError(fmt::format("--cache-dir {}: {}", path, wrong));
}

api::http::ServerConfig server_config(const Config& config) {
  api::http::ServerConfig server;
  server.host = config.host;
  server.port = static_cast<std::uint16_t>(config.port);
  server.io_threads = config.io_threads;
  server.max_connections = config.max_connections;
  server.drain_timeout = config.drain_timeout;
  server.limits.body_bytes = config.body_limit.value;
  server.limits.head_timeout = config.header_timeout;
  server.limits.body_timeout = config.body_timeout;
  server.limits.idle_timeout = config.idle_timeout;
  server.limits.write_timeout = config.stall_timeout;
  return server;
}

// The widest of the model's own windows; 0: every layer looks back at everything.
std::uint32_t widest_window(const model::Config& model) {
  return model.windows.empty() ? 0 : *std::max_element(model.windows.begin(), model.windows.end());
}

std::shared_ptr<api::openai::Grammars> grammars(const Instance& instance, const api::chat::ChatModel* chat) {
  const text::Tokenizer& tokenizer = *instance.tokenizer();
  const auto vocabulary_with = [&](std::span<const std::string_view> marks) {
    return api::openai::vocabulary_of(tokenizer, instance.model().vocab, instance.eos(), marks);
  };
  std::vector<std::string_view> special;
  if (chat != nullptr) special = api::chat::marks_of(*chat);
  std::erase_if(special, [&](std::string_view mark) {
    const std::optional<TokenId> id = tokenizer.id_of(mark);
    return !id || !tokenizer.is_special(*id);
  });
  const auto plain = vocabulary_with({});
  return std::make_shared<api::openai::Grammars>(plain, special.empty() ? plain : vocabulary_with(special));
}

api::Services services(const Config& config, Instance& instance, bridge::WorkerPool& workers,
                       bridge::RequestBook& requests, std::shared_ptr<const api::chat::ChatModel> chat) {
  return {
      .queue = instance.queue(),
      .workers = workers,
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
      .hidden_size = instance.model().hidden,
      .max_num_seqs = config.max_num_seqs,
      .model_window = widest_window(instance.model()),
      .prefix_caching = config.prefix_caching == "on",
      .eos = instance.eos(),
      .bos = instance.model().bos,
      .defaults = instance.defaults(),
      .fingerprint = model::fingerprint(instance.numeric_mode()),
      .version = std::string(kVersion),
      .limits = {},
      .grammars = grammars(instance, chat.get()),
      .cache_dir = config.cache_dir,
      .chat = std::move(chat),
  };
}

// An address that works from this machine.
std::string url_of(const std::string& host, std::uint16_t port) {
  if (host == "0.0.0.0" || host == "::" || host == "localhost") return fmt::format("http://127.0.0.1:{}", port);
  if (host.find(':') != host.npos) return fmt::format("http://[{}]:{}", host, port);
  return fmt::format("http://{}:{}", host, port);
}

void say_ready(const Instance& instance, const std::string& url, Duration took) {
  fmt::print("ready in {}: {}\n", seconds_text(took), url);
  fmt::print(
      "  curl {}/v1/completions -H 'Content-Type: application/json' -d '{{\"model\": \"{}\", \"prompt\": \"Once upon a "
      "time\", \"max_tokens\": 64}}'\n",
      url, instance.names().front());
  std::fflush(stdout);
}

}  // namespace

int serve(const Config& config, const std::vector<std::string>& notes) {
  const auto started = std::chrono::steady_clock::now();
  std::signal(SIGPIPE, SIG_IGN);
  Signals signals;  // before any other thread
  raise_file_limit(config);
  check_cache_dir(config.cache_dir);
  for (const std::string& note : notes) log_info("note", "{}", note);

  std::shared_ptr<const api::chat::ChatModel> chat = load_chat_model(config, *open_model(config.model).files);
  Instance instance(config);
  fmt::print("quire {}\n", kVersion);
  for (const std::string& line : instance.description()) fmt::print("{}\n", line);

  constexpr std::size_t kWorkerBytes = std::size_t{64} << 20;
  bridge::WorkerPool workers(config.io_threads, std::max<std::size_t>(kWorkerBytes, 4 * config.body_limit.value));
  bridge::RequestBook requests(config.max_explained_requests);
  api::http::Server server(server_config(config), services(config, instance, workers, requests, std::move(chat)));
  server.start();
  std::atomic<bool> failed{
      false};  // written by the engine thread (release), read once the server has stopped (acquire)
  instance.start([&] {
    failed.store(true, std::memory_order_release);
    server.drain();
  });
  signals.on_first([&](int signal) {
    log_info("drain", "signal={} timeout={}", signal, seconds_text(config.drain_timeout));
    server.drain();
  });
  server.set_ready(true);
  say_ready(instance, url_of(config.host, server.port()), std::chrono::steady_clock::now() - started);

  const bool all_finished = server.wait();
  signals.on_first(nullptr);
  instance.stop();
  if (failed.load(std::memory_order_acquire)) {
    log_error("stopped", "the engine failed");
    return 1;
  }
  log_info("stopped", "{}", all_finished ? "every answer was finished" : "some answers were cut short");
  return 0;
}

}  // namespace quire::app
