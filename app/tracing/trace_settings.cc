#include "app/tracing/trace_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "api/wire/text.h"
#include "app/config/version.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kTracesPath = "/v1/traces";

bool is_header_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return api::http::is_alpha(c) || api::http::is_digit(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}
bool is_header_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\t'; });
}

// Access to the variables, with notes on invalid ones. Notes do not repeat values: they may be secrets.
class Environment {
 public:
  Environment(const char* const* entries, std::vector<std::string>& notes) : entries_(entries), notes_(notes) {}

  std::string_view get(std::string_view name) const {
    for (const char* const* one = entries_; *one != nullptr; ++one) {
      const std::string_view entry(*one);
      if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) return entry.substr(name.size() + 1);
    }
    return {};
  }
  // Name of the variable in force: the one for traces if it is set, else the one for all signals.
  std::string either(std::string_view what) const {
    std::string name = fmt::format("OTEL_EXPORTER_OTLP_TRACES_{}", what);
    return get(name).empty() ? fmt::format("OTEL_EXPORTER_OTLP_{}", what) : name;
  }
  void note(std::string_view name, std::string_view expected) {
    notes_.push_back(fmt::format("{} is ignored: expected {}", name, expected));
  }

  template <typename Number>
  void number(std::string_view name, Number low, Number high, Number& out) {
    const std::string_view text = api::http::trim(get(name));
    if (text.empty()) return;
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= low && value <= high)) {
      return note(name, fmt::format("a number in {}..{}", low, high));
    }
    out = value;
  }
  void milliseconds(std::string_view name, Duration& out) {
    std::uint32_t value = 0;
    number<std::uint32_t>(name, 1, 3'600'000, value);
    if (value != 0) out = std::chrono::milliseconds(value);
  }
  // Pairs a=b,c=d with percent-encoded values. If one is invalid, none is returned.
  Pairs pairs(std::string_view name) {
    Pairs out;
    for (std::string_view rest = get(name); !rest.empty();) {
      const std::string_view one = api::http::trim(rest.substr(0, rest.find(',')));
      rest.remove_prefix(std::min(rest.size(), rest.find(',') == rest.npos ? rest.size() : rest.find(',') + 1));
      if (one.empty()) continue;
      const std::size_t equals = one.find('=');
      if (equals == one.npos || equals == 0) {
        note(name, "comma-separated name=value pairs");
        return {};
      }
      out.emplace_back(api::http::trim(one.substr(0, equals)),
                       api::http::percent_decoded(api::http::trim(one.substr(equals + 1))));
    }
    return out;
  }

 private:
  const char* const* entries_;
  std::vector<std::string>& notes_;
};

std::optional<Url> url_of_flag(const std::string& endpoint, Problems& problems) {
  Result<Url> url = parse_url(endpoint, UrlSchemes::kHttpAndHttps);
  if (!url) {
    problems.push_back("--otlp-traces-endpoint " + url.error().message);
    return std::nullopt;
  }
  if (url->path.empty()) url->path = kTracesPath;
  return *std::move(url);
}

// Receiver from the environment. The path for traces is appended to the URL for all signals, not to the one for traces.
std::optional<Url> url_of(Environment& environment) {
  const std::string name = environment.either("ENDPOINT");
  const std::string_view text = api::http::trim(environment.get(name));
  if (text.empty()) return std::nullopt;
  Result<Url> url = parse_url(text, UrlSchemes::kHttpAndHttps);
  if (!url) {
    environment.note(name, "a URL such as http://collector:4318; tracing is off");
    return std::nullopt;
  }
  if (!name.ends_with("_TRACES_ENDPOINT")) url->path += kTracesPath;
  if (url->path.empty()) url->path = "/";
  return *std::move(url);
}

bool is_off(Environment& environment) {
  return api::http::iequals(environment.get("OTEL_SDK_DISABLED"), "true") ||
         environment.get("OTEL_TRACES_EXPORTER") == "none";
}

observe::Sampler sampler_of(Environment& environment) {
  observe::Sampler sampler;
  std::string_view given = environment.get("OTEL_TRACES_SAMPLER");
  std::string_view root = given;
  constexpr std::string_view kParentBased = "parentbased_";
  if (root.starts_with(kParentBased)) root.remove_prefix(kParentBased.size());
  sampler.follows_parent = given.empty() || root.size() != given.size();
  if (root == "always_off") {
    sampler.root_share = 0.0;
  } else if (root == "traceidratio") {
    environment.number("OTEL_TRACES_SAMPLER_ARG", 0.0, 1.0, sampler.root_share);
  } else if (!root.empty() && root != "always_on") {
    environment.note("OTEL_TRACES_SAMPLER",
                     "always_on, always_off or traceidratio, alone or after the prefix parentbased_");
    sampler.follows_parent = true;
  }
  return sampler;
}

api::tracing::Resource resource_of(Environment& environment) {
  api::tracing::Resource resource = environment.pairs("OTEL_RESOURCE_ATTRIBUTES");
  const auto set = [&resource](std::string_view name, std::string_view value) {
    std::erase_if(resource, [name](const auto& one) { return one.first == name; });
    resource.emplace_back(name, value);
  };
  const auto has = [&resource](std::string_view name) {
    return std::any_of(resource.begin(), resource.end(), [name](const auto& one) { return one.first == name; });
  };
  if (const std::string_view name = environment.get("OTEL_SERVICE_NAME"); !name.empty()) set("service.name", name);
  if (!has("service.name")) set("service.name", "quire");
  if (!has("service.version")) set("service.version", kVersion);
  return resource;
}

Pairs headers_of(Environment& environment) {
  const std::string name = environment.either("HEADERS");
  Pairs headers = environment.pairs(name);
  const auto is_none = [](const auto& one) { return !is_header_name(one.first) || !is_header_value(one.second); };
  if (std::erase_if(headers, is_none) != 0) environment.note(name, "valid names and values of headers");
  return headers;
}

ExportLimits limits_of(Environment& environment) {
  ExportLimits limits;
  environment.number<std::uint32_t>("OTEL_BSP_MAX_QUEUE_SIZE", 1, 1u << 20, limits.max_queue);
  environment.number<std::uint32_t>("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, 1u << 16, limits.max_batch);
  limits.max_batch = std::min(limits.max_batch, limits.max_queue);
  environment.milliseconds("OTEL_BSP_SCHEDULE_DELAY", limits.delay);
  environment.milliseconds(environment.either("TIMEOUT"), limits.timeout);
  return limits;
}

}  // namespace

std::optional<TraceSettings> trace_settings(const std::string& endpoint, const char* const* entries, Problems& problems,
                                            std::vector<std::string>& notes) {
  Environment environment(entries, notes);
  if (is_off(environment)) {
    if (!endpoint.empty()) notes.push_back("OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER disables tracing");
    return std::nullopt;
  }
  std::optional<Url> url = endpoint.empty() ? url_of(environment) : url_of_flag(endpoint, problems);
  if (!url) return std::nullopt;
  const std::string protocol = environment.either("PROTOCOL");
  if (environment.get(protocol) == "grpc") {
    environment.note(protocol, "http/json, the only protocol supported; the receiver's HTTP port is usually 4318");
  }
  TraceSettings settings{.url = *std::move(url),
                         .ca_file = std::string(environment.get(environment.either("CERTIFICATE"))),
                         .headers = headers_of(environment),
                         .resource = resource_of(environment),
                         .sampler = sampler_of(environment),
                         .limits = limits_of(environment)};
  return settings;
}

}  // namespace quire::app
