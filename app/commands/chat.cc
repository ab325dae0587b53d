// quire chat: a conversation with a model, served by a process of its own, or with a running server.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "app/chat/conversation.h"
#include "app/chat/interrupts.h"
#include "app/chat/line_editor.h"
#include "app/chat/own_server.h"
#include "app/chat/talk.h"
#include "app/commands/commands.h"
#include "app/http/http_client.h"
#include "app/model/embedded_model.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

using namespace std::chrono_literals;

constexpr int kInterrupted = 130;  // as the shell has it
constexpr std::size_t kMaxInputBytes = std::size_t{64} << 20;

// Settings of a server for others, which the one of a conversation does not have.
constexpr std::array<std::string_view, 7> kOfServers = {"uds",      "host",    "port",        "admin-port",
                                                        "tls-cert", "tls-key", "api-key-file"};
constexpr std::array<std::string_view, 3> kOfClients = {"model", "api-key", "log-level"};

void check_flags(const Layer& flags, bool has_server) {
  for (const auto& [name, setting] : flags) {
    const bool of_client = std::ranges::find(kOfClients, name) != kOfClients.end();
    if (has_server && !of_client) {
      throw StartError(fmt::format("{}: the server of --url has settings of its own", setting.where));
    }
    if (!has_server && std::ranges::find(kOfServers, name) != kOfServers.end()) {
      throw StartError(fmt::format("{}: nobody else reaches the server of a conversation", setting.where));
    }
  }
}

std::vector<std::string> serve_words(const Layer& flags) {
  std::vector<std::string> words;
  for (const auto& [name, setting] : flags) {
    if (name == "api-key" || name == "log-level") continue;
    for (const std::string& value : setting.values) words.push_back(fmt::format("--{}={}", name, value));
  }
  for (const char* own : {"--log-level=error", "--api-key=", "--api-key-file="}) words.emplace_back(own);
  return words;
}

// False: Ctrl-C came first.
bool wait_until_ready(OwnServer& server, HttpClient& client, Interrupts& interrupts) {
  for (;;) {
    if (const auto ready = client.send("GET", "/ready", {}, {}, 2s); ready && ready->is_ok()) return true;
    if (!server.runs()) throw StartError("the server ended before it was ready; its error is above");
    pollfd stop{.fd = interrupts.fd(), .events = POLLIN, .revents = 0};
    poll(&stop, 1, 20);
    if (interrupts.take()) return false;
  }
}

struct ServedModel {
  std::string name;
  std::uint64_t context = 0;  // 0: unknown
};

// The first model that the server lists, or `wanted`.
ServedModel model_of(HttpClient& client, const std::string& key, const std::string& wanted) {
  const std::string& url = client.url().text;
  const auto reply = client.send("GET", "/v1/models", json_fields(key), {}, 10s);
  if (!reply) throw StartError(fmt::format("{}: {}; does a server run there?", url, reply.error().message));
  if (reply->wants_key()) {
    throw StartError(fmt::format("{} wants an API key: set QUIRE_API_KEY, or give --api-key", url));
  }
  boost::json::error_code error;
  const boost::json::value body = boost::json::parse(reply->body, error);
  const auto* data = error ? nullptr : body.find_pointer("/data", error);
  if (!reply->is_ok() || data == nullptr || !data->is_array() || data->as_array().empty()) {
    throw StartError(fmt::format("{}/v1/models answers {} and names no model: this is no server of OpenAI's API", url,
                                 reply->status));
  }
  ServedModel model{.name = wanted};
  for (const boost::json::value& one : data->as_array()) {
    const auto* id = one.find_pointer("/id", error);
    if (id == nullptr || !id->is_string()) continue;
    if (model.name.empty()) model.name = std::string(id->as_string());
    const auto* length = one.find_pointer("/max_model_len", error);
    if (std::string_view(id->as_string()) == model.name && length != nullptr && length->is_number()) {
      model.context = length->to_number<std::uint64_t>();
    }
  }
  return model;
}

void set_fields(Conversation& conversation, const std::vector<std::string>& settings) {
  for (const std::string& one : settings) {
    const std::size_t equals = one.find('=');
    if (equals == one.npos || equals == 0) throw StartError(fmt::format("--set {}: expected NAME=VALUE", one));
    const Result<Done> set = conversation.set(std::string_view(one).substr(0, equals), one.substr(equals + 1));
    if (!set) throw StartError("--set " + set.error().message);
  }
}

// A server of ours tells by this whether its model has a chat template.
void check_that_it_chats(HttpClient& client, const std::string& model) {
  const boost::json::object asked = {{"model", model}, {"messages", {{{"role", "user"}, {"content", "a"}}}}};
  const auto reply = client.send("POST", "/tokenize", json_fields(""), boost::json::serialize(asked), 10s);
  if (reply && reply->is_refused()) {
    throw StartError(error_text(reply->body) + "; `quire generate` continues a text without a chat template");
  }
}

std::string all_of_standard_input() {
  std::string text;
  std::array<char, 65536> part{};
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), stdin)) {
    text.append(part.data(), count);
    if (text.size() > kMaxInputBytes) throw StartError("standard input: more than 64 MiB, the maximum of a message");
  }
  if (std::ferror(stdin) != 0) throw StartError(std::string("standard input: ") + std::strerror(errno));
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty()) throw StartError("the message on standard input is empty");
  return text;
}

int converse(const Config& config, const Layer& flags, const ChatOptions& options, Interrupts& interrupts) {
  std::optional<OwnServer> server;
  Url url = parse_url("http://localhost").value();
  HttpClientOptions how{.stop_fd = interrupts.fd()};
  std::string key;
  if (options.url.empty()) {
    server.emplace(serve_words(flags));
    how.unix_socket = server->socket();
  } else {
    const Result<Url> parsed = parse_url(options.url, UrlSchemes::kHttpAndHttps);
    if (!parsed) throw StartError("--url " + parsed.error().message);
    url = root_of(*parsed);
    if (!config.api_key.empty()) key = config.api_key.front();
  }
  HttpClient client(std::move(url), std::move(how));
  if (server && !wait_until_ready(*server, client, interrupts)) {
    std::fputs("\n", stderr);  // behind the bar
    return kInterrupted;
  }
  const bool named = flags.contains("model");
  const ServedModel model = model_of(client, key, !server && named ? config.model : "");
  if (server) check_that_it_chats(client, model.name);

  Conversation conversation(model.name);
  conversation.set_system(options.system);
  set_fields(conversation, options.set);
  Talk talk(client, key, conversation, interrupts);
  if (isatty(STDIN_FILENO) != 1) return talk.ask(all_of_standard_input()) ? 0 : 1;
  LineEditor editor(interrupts);
  talk.note(fmt::format("{}{}. /help lists the commands, Ctrl-D ends.", model.name,
                        model.context == 0 ? "" : fmt::format(", context of {} tokens", model.context)));
  if (server && model.name == kEmbeddedModel) {
    talk.note("This is the built-in model, which tells stories; quire chat MODEL talks to another.");
  }
  talk.run(editor);
  return 0;
}

}  // namespace

int chat(const Config& config, const Layer& flags, const ChatOptions& options) {
  check_flags(flags, !options.url.empty());
  int code = 0;
  int signal = 0;
  {
    Interrupts interrupts;
    code = converse(config, flags, options, interrupts);
    signal = interrupts.end_signal();
  }
  if (signal != 0) std::raise(signal);  // its server is gone: now it ends as it was told to
  return code;
}

}  // namespace quire::app
