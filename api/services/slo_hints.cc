#include "api/services/slo_hints.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <iterator>
#include <limits>

#include "api/wire/text.h"
#include "core/base/log.h"

namespace quire::api::requests {
namespace {

constexpr std::int64_t kMilli_ns = 1'000'000;
constexpr std::int64_t kMost_ns = std::int64_t{3'600'000} * kMilli_ns;

// Converts a plain decimal number of units to nanoseconds; none for any other text. Digits below a nanosecond are
// ignored, and numbers out of every range saturate.
std::optional<std::int64_t> decimal_ns(std::string_view text, std::int64_t unit_ns) {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  if (whole.empty() || (point != std::string_view::npos && part.empty())) return std::nullopt;
  if (!std::ranges::all_of(whole, http::is_digit) || !std::ranges::all_of(part, http::is_digit)) return std::nullopt;
  std::int64_t ns = 0;
  for (const char digit : whole) ns = std::min(ns * 10 + (digit - '0') * unit_ns, 2 * kMost_ns);
  std::int64_t scale = unit_ns;
  for (const char digit : part) ns += (digit - '0') * (scale /= 10);
  return ns;
}

struct Unit {
  std::int64_t ns;
  const char* range;
};
constexpr Unit kSeconds{1000 * kMilli_ns, "seconds from 0.001 to 3600"};
constexpr Unit kMillis{kMilli_ns, "milliseconds from 0.001 to 3600000"};

Result<std::optional<Duration>> time_of(const http::Field& header, Unit unit) {
  const std::optional<std::int64_t> ns = decimal_ns(header.value, unit.ns);
  if (!ns || *ns < unit.ns / 1000 || *ns > kMost_ns) {
    return invalid(header.name, header.name + " must be " + unit.range + ", as a plain decimal number");
  }
  return std::optional(Duration(*ns));
}

void take_objective(std::string_view objective, SloHints& slo_hints) {
  std::int32_t gateway = 0;
  const auto [end, error] = std::from_chars(objective.data(), objective.data() + objective.size(), gateway);
  const bool is_number = error == std::errc() && end == objective.data() + objective.size();
  if (objective == "sheddable") {
    gateway = -1;
  } else if (objective == "critical") {
    gateway = 1;
  } else if (!is_number && objective != "standard") {
    return;
  }
  slo_hints.priority = -std::max(gateway, -std::numeric_limits<std::int32_t>::max());
  slo_hints.sheddable = gateway < 0;
}

enum class Meaning : std::uint8_t { kTimeout, kFirstToken, kTokenTime, kObjective, kFairness, kSession };
struct Known {
  http::Header header;
  Meaning meaning;
  const char* log_key = nullptr;
};
constexpr http::Header timed(const char* name, Unit unit, std::string_view help) {
  const double lowest = 0.001;
  const double highest = static_cast<double>(kMost_ns) / static_cast<double>(unit.ns);
  return {.name = name, .paths = http::kGenerating, .help = help, .lowest = lowest, .highest = highest};
}
constexpr http::Header label(const char* name, std::string_view help) {
  return {.name = name, .paths = http::kGenerating, .help = help, .max_bytes = RequestLimits{}.max_label_bytes};
}
constexpr std::string_view kObjectiveHelp = "sheddable, standard, critical, or a whole number: higher runs first";
constexpr std::string_view kFairnessHelp = "tenant of policy fair, on a server without API keys";
constexpr std::string_view kSessionHelp = "for the log only";
constexpr Known kKnown[] = {
    {timed(kTimeoutHeader, kSeconds, "deadline in seconds: the answer must be complete by then"), Meaning::kTimeout},
    {timed(kFirstTokenHeader, kMillis, "objective in milliseconds: time to first token"), Meaning::kFirstToken},
    {timed(kTokenTimeHeader, kMillis, "objective in milliseconds: time per output token"), Meaning::kTokenTime},
    {label(kObjectiveHeader, kObjectiveHelp), Meaning::kObjective, "objective"},
    {label("x-llm-d-inference-objective", kObjectiveHelp), Meaning::kObjective, "objective"},
    {label("x-gateway-inference-fairness-id", kFairnessHelp), Meaning::kFairness, "fairness_id"},
    {label("x-llm-d-inference-fairness-id", kFairnessHelp), Meaning::kFairness, "fairness_id"},
    {label("x-session-id", kSessionHelp), Meaning::kSession, "session_id"},
    {label("x-session-token", kSessionHelp), Meaning::kSession, "session_token"},
    {label("x-session-affinity", kSessionHelp), Meaning::kSession, "session_affinity"},
};

const Known& known(std::string_view name) {
  return *std::ranges::find_if(kKnown, [&](const Known& one) { return name == one.header.name; });
}

Result<Done> take(const http::Field& header, const RequestLimits& limits, SloHints& slo_hints) {
  const auto time = [&header](Unit unit, std::optional<Duration>& out) -> Result<Done> {
    Result<std::optional<Duration>> read = time_of(header, unit);
    if (!read) return read.error();
    out = *read;
    return Done{};
  };
  const Known& one = known(header.name);
  if (one.log_key != nullptr && header.value.size() > limits.max_label_bytes) {
    return invalid(header.name, header.name + " may have at most " + std::to_string(limits.max_label_bytes) + " bytes");
  }
  switch (one.meaning) {
    case Meaning::kTimeout:
      return time(kSeconds, slo_hints.timeout);
    case Meaning::kFirstToken:
      return time(kMillis, slo_hints.first_token);
    case Meaning::kTokenTime:
      return time(kMillis, slo_hints.token_time);
    case Meaning::kObjective:
      take_objective(header.value, slo_hints);
      return Done{};
    case Meaning::kFairness:
      slo_hints.fairness_id = header.value;
      return Done{};
    case Meaning::kSession:
      return Done{};
  }
  return Done{};
}

}  // namespace

std::span<const http::Header> slo_hint_headers() {
  static constexpr auto kHeaders = [] {
    std::array<http::Header, std::size(kKnown)> headers{};
    std::ranges::transform(kKnown, headers.begin(), &Known::header);
    return headers;
  }();
  return kHeaders;
}

Result<SloHints> slo_hints_of(std::span<const http::Field> headers, const RequestLimits& limits) {
  SloHints slo_hints;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const std::string& name = headers[i].name;
    if (std::ranges::count(headers, name, &http::Field::name) > 1) {
      return invalid(name, name + " is given more than once: send it once");
    }
    if (Result<Done> taken = take(headers[i], limits, slo_hints); !taken) return taken.error();
  }
  return slo_hints;
}

std::string labels_of(std::span<const http::Field> headers) {
  std::string out;
  for (const http::Field& header : headers) {
    const Known& one = known(header.name);
    if (one.log_key == nullptr) continue;
    std::string value = log_safe(header.value);
    std::ranges::replace_if(
        value, [](char c) { return c == ' ' || c == ',' || c == '='; }, '_');
    out += std::string(out.empty() ? "" : ",") + one.log_key + "=" + value;
  }
  return out;
}

std::uint32_t tenant_of(std::string_view fairness_id) {
  constexpr std::uint32_t kFirst = 1u << 20;
  constexpr std::uint32_t kTenants = 4096;
  if (fairness_id.empty()) return 0;
  return kFirst + static_cast<std::uint32_t>(std::hash<std::string_view>()(fairness_id) % kTenants);
}

}  // namespace quire::api::requests
