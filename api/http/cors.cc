#include "api/http/cors.h"

#include <algorithm>

#include "api/wire/errors.h"
#include "api/wire/headers.h"
#include "api/wire/text.h"

namespace quire::api::http {
namespace {

constexpr std::string_view kAdmin = "/admin/";
constexpr std::string_view kMaxAge_s = "600";

bool has(const std::vector<std::string>& list, std::string_view one) {
  return std::ranges::any_of(list, [&](const std::string& known) { return known == "*" || iequals(known, one); });
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& one : list) text += (text.empty() ? "" : ", ") + one;
  return text;
}

bool has_all(const std::vector<std::string>& list, std::string_view asked) {
  while (!asked.empty()) {
    const std::size_t comma = std::min(asked.find(','), asked.size());
    const std::string_view one = trim(asked.substr(0, comma));
    if (!one.empty() && !has(list, one)) return false;
    asked.remove_prefix(std::min(comma + 1, asked.size()));
  }
  return true;
}

Response refused(const char* what) {
  return error_response(
      Error{Code::kForbidden, std::string(what) + " is not allowed for web pages of that origin", "", 0});
}

// The list as text; if it allows all ("*") and the rules allow credentials, the names that were asked for: with
// credentials "*" is no wildcard.
std::string_view or_asked(const CorsRules& rules, const std::vector<std::string>& list, const std::string& all,
                          std::string_view asked) {
  const bool any = std::ranges::find(list, "*") != list.end();
  return any && rules.credentials ? asked : std::string_view(all);
}

}  // namespace

bool may_share(const CorsRules& rules, std::string_view path, std::string_view origin) {
  return !origin.empty() && !path.starts_with(kAdmin) && has(rules.origins, origin);
}

std::string cors_lines(const CorsRules& rules, std::string_view path, std::string_view origin) {
  if (!may_share(rules, path, origin)) return {};
  const bool any = std::ranges::find(rules.origins, "*") != rules.origins.end() && !rules.credentials;
  std::string lines = "\r\nAccess-Control-Allow-Origin: " + (any ? std::string("*") : std::string(origin));
  if (!any) lines += "\r\nVary: Origin";
  if (rules.credentials) lines += "\r\nAccess-Control-Allow-Credentials: true";
  lines += "\r\nAccess-Control-Expose-Headers: ";
  for (const char* name : {kRequestIdHeader, kAnthropicIdHeader, kRequestKeyHeader, kWarningsHeader}) {
    lines += std::string(name) + ", ";
  }
  return lines + kRetryAfterHeader;
}

Response answer_preflight(const CorsRules& rules, std::string_view path, const Preflight& preflight) {
  if (!may_share(rules, path, preflight.origin)) return refused("this path");
  if (!has(rules.methods, preflight.method)) return refused("this method");
  if (!has_all(rules.headers, preflight.headers)) return refused("one of these headers");
  Response response;
  const std::string methods = joined(rules.methods);
  const std::string headers = joined(rules.headers);
  response.fields.push_back(
      {"Access-Control-Allow-Methods", std::string(or_asked(rules, rules.methods, methods, preflight.method))});
  // "*" does not cover Authorization, so the names that were asked for are returned instead.
  const bool any = std::ranges::find(rules.headers, "*") != rules.headers.end();
  const std::string_view asked = or_asked(rules, rules.headers, headers, preflight.headers);
  const std::string_view reported = any && !preflight.headers.empty() ? std::string_view(preflight.headers) : asked;
  if (!reported.empty()) response.fields.push_back({"Access-Control-Allow-Headers", std::string(reported)});
  response.fields.push_back({"Access-Control-Max-Age", std::string(kMaxAge_s)});
  return response;
}

std::string fault_of(const CorsRules& rules) {
  for (const std::string& origin : rules.origins) {
    const std::size_t host = origin.find("://");
    const bool is_origin = host != origin.npos && host > 0 && host + 3 < origin.size() &&
                           origin.find_first_of("/?# ,\r\n", host + 3) == origin.npos;
    if (origin != "*" && origin != "null" && !is_origin) {
      return "\"" + origin +
             "\" is not an origin: expected a scheme, a host and perhaps a port, such as https://app.example.org, or *";
    }
  }
  return {};
}

}  // namespace quire::api::http
