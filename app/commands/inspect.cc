// quire inspect: facts on a model and its memory; or cache statistics of a running server.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include "app/commands/commands.h"
#include "app/http/http_get.h"
#include "app/inspection/inspection.h"
#include "app/inspection/inspection_report.h"
#include "app/instance/server_statistics.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

constexpr std::string_view kMetrics = "/metrics";

// The next step for the caller; empty: the error says enough.
std::string_view advice_on(const Error& error, bool has_key) {
  if (error.reason != nullptr && std::string_view(error.reason) == kUntrusted)
    return "\nGive the certificate of its authority, or its own: --cacert FILE";
  switch (error.code) {
    case Code::kUnauthorized:
      return has_key
                 ? "\nGive another key in QUIRE_API_KEY: it must be allowed to read /metrics (role monitor or admin)"
                 : "\nGive a key that may read /metrics (role monitor or admin) in QUIRE_API_KEY";
    case Code::kForbidden:
      return "\nGive a key of the role monitor or admin in QUIRE_API_KEY: users may not read /metrics";
    case Code::kNotFound:
      return "\nThis is not a quire server, or its /metrics is on another port (--admin-port)";
    default:
      return "";
  }
}

ServerStatistics ask(const InspectOptions& options, const std::string& key) {
  constexpr Duration kTimeout = std::chrono::seconds(10);
  const Result<Url> url = parse_url(options.url, UrlSchemes::kHttpAndHttps);
  if (!url) throw StartError("--url " + url.error().message);
  const Result<std::string> metrics = [&] {
    try {
      return http_get(root_of(*url), kMetrics, kTimeout, {.key = key, .ca_file = options.cacert});
    } catch (const StartError& error) {
      throw StartError(fmt::format("--cacert {}", error.what()));
    }
  }();
  if (!metrics) {
    throw StartError(fmt::format("--url {}{}", metrics.error().message, advice_on(metrics.error(), !key.empty())));
  }
  const std::optional<ServerStatistics> seen = read_statistics(*metrics);
  if (!seen)
    throw StartError(
        fmt::format("--url {}: this is not a quire server: its /metrics has no quire: series", options.url));
  return *seen;
}

int inspect_server(const InspectOptions& options, const std::vector<std::string>& keys) {
  const ServerStatistics seen = ask(options, keys.empty() ? std::string() : keys.front());
  fmt::print("{}", options.json ? statistics_json(seen) : statistics_text(seen));
  return 0;
}

}  // namespace

int inspect(const Config& config, const InspectOptions& options) {
  if (!options.url.empty()) return inspect_server(options, config.api_key);
  const ModelSource source = open_model(config.model);
  const Inspection seen = inspect_model(config, source);
  fmt::print("{}", options.json ? inspection_json(seen, options.tensors) : inspection_text(seen, options.tensors));
  return 0;
}

}  // namespace quire::app
