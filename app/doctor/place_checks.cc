#include "app/doctor/place_checks.h"

#include <fmt/format.h>

#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "app/config/units.h"
#include "core/base/log.h"

namespace quire::app::doctor {
namespace {

Check check_files(const FileFacts& files) {
  constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 40;
  const bool is_limited = files.hard < kUnlimited;
  Check check{"open files", Verdict::kOk,
              is_limited ? fmt::format("up to {}, {} are wanted for --max-connections", files.hard, files.wanted)
                         : "unlimited"};
  check.facts = {{"soft_limit", files.soft}, {"hard_limit", files.hard}, {"wanted", files.wanted}};
  if (files.hard < files.wanted) {
    check.verdict = Verdict::kSlow;
    check.advice =
        "Connections beyond the limit are refused: raise it (ulimit -Hn, LimitNOFILE of systemd), or lower "
        "--max-connections.";
  }
  return check;
}

Check check_port(const PortFacts& port) {
  Check check{fmt::format("port {}", port.port), Verdict::kOk, fmt::format("free on {}", log_safe(port.host))};
  check.facts = {{"host", port.host},
                 {"port", port.port},
                 {"free", port.error == 0},
                 {"holder", port.holder.empty() ? boost::json::value(nullptr) : boost::json::value(port.holder)}};
  if (port.error == 0) return check;
  if (port.error == EADDRINUSE) {
    check.text = fmt::format("in use by {}", port.holder.empty() ? "a process of another user" : port.holder);
    check.advice = "End that process, or choose another port: --port.";
  } else if (port.error == EACCES) {
    check.text = "not permitted to this user";
    check.advice = "Choose a port from 1024 on: --port.";
  } else {
    check.text = fmt::format("cannot be listened on at {}: {}", log_safe(port.host),
                             std::error_code(port.error, std::generic_category()).message());
    check.advice = "Give an address of this machine: --host.";
  }
  if (port.asked) {
    check.verdict = Verdict::kWrong;
  } else {
    check.advice.clear();
  }
  return check;
}

Check check_cache(const CacheFacts& cache) {
  constexpr std::uint64_t kLeastFree = std::uint64_t{1} << 30;
  Check check{"model cache", Verdict::kOk,
              fmt::format("{}, {} free", log_safe(cache.path),
                          cache.free_bytes ? bytes_text(*cache.free_bytes) : "unknown space")};
  check.facts = {
      {"path", cache.path},
      {"writable", cache.is_writable},
      {"free_bytes", cache.free_bytes ? boost::json::value(*cache.free_bytes) : boost::json::value(nullptr)}};
  if (!cache.is_writable) {
    check.verdict = Verdict::kWrong;
    check.advice =
        "Models given by name cannot be downloaded there: choose another place with --download-dir or HF_HUB_CACHE.";
  } else if (cache.free_bytes && *cache.free_bytes < kLeastFree) {
    check.verdict = Verdict::kWrong;
    check.advice =
        "Too little for a model: remove some (quire list, quire rm), or choose another place with --download-dir.";
  }
  return check;
}

Check check_proxies(const Proxies& proxies) {
  Check check{"proxies", Verdict::kOk, ""};
  boost::json::object variables;
  for (const auto& [name, value] : proxies.variables) {
    check.text += fmt::format("{}{}={}", check.text.empty() ? "" : " ", name, log_safe(value));
    variables[name] = value;
  }
  if (check.text.empty()) check.text = "none";
  check.facts = {{"variables", std::move(variables)}, {"no_proxy", proxies.excepted}};
  if (proxies.has_http() && !proxies.excepts_loopback()) {
    check.verdict = Verdict::kWrong;
    check.advice = "Clients here would ask the proxy for http://127.0.0.1:8000: set NO_PROXY=127.0.0.1,localhost.";
  }
  return check;
}

}  // namespace

std::vector<Check> place_checks(const Facts& facts) {
  std::vector<Check> checks = {check_files(facts.files)};
  for (const PortFacts& port : facts.ports) checks.push_back(check_port(port));
  checks.push_back(check_cache(facts.cache));
  checks.push_back(check_proxies(facts.proxies));
  return checks;
}

}  // namespace quire::app::doctor
