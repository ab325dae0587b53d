#include "hub/settings.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "hub/cache.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

class Environment {
 public:
  explicit Environment(const char* const* variables) : variables_(variables) {}

  // The value of the first variable that is set and not empty.
  template <typename... Names>
  std::string first(Names... names) const {
    for (const char* name : {names...}) {
      if (std::string value = get(name); !value.empty()) return value;
    }
    return {};
  }

  bool is_true(const char* name) const {
    std::string value = get(name);
    std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::toupper(c); });
    return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
  }

  // "~" and "~/x" are in HOME; empty: there is no such directory.
  fs::path path(std::string value) const {
    if (value != "~" && !value.starts_with("~/")) return value;
    const std::string directory = home();
    return directory.empty() ? fs::path() : fs::path(directory + value.substr(1));
  }

 private:
  // HOME, or the directory of the user that the process runs as.
  std::string home() const {
    if (std::string home = get("HOME"); !home.empty()) return home;
    passwd entry{};
    passwd* found = nullptr;
    std::vector<char> space(1 << 16);
    const bool is_known = getpwuid_r(getuid(), &entry, space.data(), space.size(), &found) == 0 && found != nullptr;
    return is_known ? found->pw_dir : "";
  }

  std::string get(const char* name) const {
    const std::size_t length = std::strlen(name);
    for (const char* const* one = variables_; one != nullptr && *one != nullptr; ++one) {
      if (std::strncmp(*one, name, length) == 0 && (*one)[length] == '=') return *one + length + 1;
    }
    return {};
  }

  const char* const* variables_;
};

fs::path home_of_hub(const Environment& environment) {
  if (const std::string home = environment.first("HF_HOME"); !home.empty()) return environment.path(home);
  const std::string caches = environment.first("XDG_CACHE_HOME");
  const fs::path directory = environment.path(caches.empty() ? "~/.cache" : caches);
  return directory.empty() ? directory : directory / "huggingface";
}

std::string trimmed(std::string text) {
  const auto is_blank = [](unsigned char c) { return std::isspace(c) != 0; };
  text.erase(text.begin(), std::ranges::find_if_not(text, is_blank));
  while (!text.empty() && is_blank(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

void read_token(const Environment& environment, const fs::path& home, Settings& settings) {
  settings.token_source = "HF_TOKEN";
  settings.token = trimmed(environment.first("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"));
  if (settings.token.empty() && !environment.is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
    const std::string given = environment.first("HF_TOKEN_PATH");
    const fs::path path = given.empty() ? home / "token" : environment.path(given);
    settings.token = trimmed(contents_of(path));
    settings.token_source = path.string();
  }
  const auto is_visible = [](unsigned char c) { return c > 0x20 && c < 0x7f; };
  if (!std::ranges::all_of(settings.token, is_visible) || settings.token.size() > 4096) {
    throw StartError(settings.token_source + " holds no token: expected one word of visible ASCII characters");
  }
  if (settings.token.empty()) settings.token_source.clear();
}

}  // namespace

bool Origin::is_loopback() const {
  if (host == "localhost" || host == "[::1]") return true;
  const auto is_sign = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  return host.starts_with("127.") && std::ranges::all_of(host, is_sign);
}

std::string Origin::text() const { return fmt::format("{}://{}:{}", scheme, host, port); }

Origin origin_of(const std::string& url) {
  const std::size_t colon = url.find("://");
  if (colon == url.npos) return {};
  Origin out;
  out.scheme = url.substr(0, colon);
  std::ranges::transform(out.scheme, out.scheme.begin(), [](unsigned char c) { return std::tolower(c); });
  if (out.scheme != "https" && out.scheme != "http") return {};
  std::string rest = url.substr(colon + 3);
  rest = rest.substr(0, rest.find_first_of("/?#\\"));
  if (rest.find('@') != rest.npos) return {};
  out.port = out.scheme == "https" ? 443 : 80;
  const std::size_t bracket = rest.rfind(']');
  const std::size_t mark = rest.find(':', bracket == rest.npos ? 0 : bracket);
  if (mark != rest.npos) {
    const char* end = rest.data() + rest.size();
    const auto [last, error] = std::from_chars(rest.data() + mark + 1, end, out.port);
    if (error != std::errc() || last != end || out.port == 0 || out.port > 65535) return {};
  }
  out.host = rest.substr(0, mark);
  std::ranges::transform(out.host, out.host.begin(), [](unsigned char c) { return std::tolower(c); });
  return out.host.empty() ? Origin{} : out;
}

Settings read_settings(const char* const* variables, const std::string& cache, bool allows_http) {
  const Environment environment(variables);
  const fs::path home = home_of_hub(environment);
  Settings settings;
  settings.allows_http = allows_http;
  settings.offline = environment.is_true("HF_HUB_OFFLINE") || environment.is_true("TRANSFORMERS_OFFLINE");
  const std::string given = cache.empty() ? environment.first("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE") : cache;
  settings.cache = !given.empty() ? environment.path(given) : home.empty() ? home : home / "hub";
  if (settings.cache.empty()) {
    throw StartError("HOME is not set: set HF_HOME to a directory for models, or give --download-dir");
  }
  settings.ca_file = environment.first("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE");
  read_token(environment, home, settings);
  if (std::string endpoint = environment.first("HF_ENDPOINT"); !endpoint.empty()) {
    while (endpoint.ends_with('/')) endpoint.pop_back();
    settings.endpoint = std::move(endpoint);
  }
  const Origin origin = origin_of(settings.endpoint);
  if (origin.scheme.empty() || settings.endpoint.find_first_of("?# ") != settings.endpoint.npos) {
    const bool may_have_password = settings.endpoint.find('@') != settings.endpoint.npos;
    throw StartError(fmt::format("HF_ENDPOINT{}: expected a URL without a user, for example https://huggingface.co",
                                 may_have_password ? "" : " '" + log_safe(settings.endpoint) + "'"));
  }
  if (origin.scheme == "http" && !origin.is_loopback() && !allows_http) {
    throw StartError(fmt::format(
        "HF_ENDPOINT {}: over plain HTTP anybody on the way can read the token and change the model; use https://, or "
        "allow it with --allow-http-hub",
        log_safe(settings.endpoint)));
  }
  return settings;
}

}  // namespace quire::hub
