#include "api/limits/gate.h"

#include <string>

#include "api/wire/text.h"

namespace quire::api::keys {
namespace {

Error unauthorized(const char* message) {
  return {.code = Code::kUnauthorized, .message = message, .param = "", .reason = "invalid_api_key"};
}

bool may(const Caller& caller, Access access) {
  if (caller.monitors && access == Access::kMonitor) return true;
  switch (caller.role) {
    case Role::kAdmin:
      return true;
    case Role::kMonitor:
      return access == Access::kMonitor;
    case Role::kUser:
      return access == Access::kUser;
  }
  return false;
}

// The key in an Authorization header; empty if there is none, or another scheme than Bearer.
std::string_view bearer_of(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (!http::iequals(authorization.substr(0, kScheme.size()), kScheme)) return {};
  return http::trim(authorization.substr(kScheme.size()));
}

Result<std::string_view> secret_of(const http::Request& request) {
  if (request.credentials_repeated) return unauthorized("the API key is given more than once: send it once");
  const bool has_bearer = !request.authorization.empty();
  const std::string_view bearer = bearer_of(request.authorization);
  if (!has_bearer && request.api_key.empty()) {
    return unauthorized("an API key is required: send Authorization: Bearer KEY");
  }
  if (has_bearer && bearer.empty()) {
    return unauthorized("Authorization has no API key: send Authorization: Bearer KEY");
  }
  if (!has_bearer) return std::string_view(request.api_key);
  if (!request.api_key.empty() && !equal(digest_of(request.api_key), digest_of(bearer))) {
    return unauthorized("Authorization and x-api-key have different API keys: send one of them");
  }
  return bearer;
}

}  // namespace

Access access_of(std::string_view path) {
  for (const std::string_view open : {"/live", "/ready", "/startup", "/health"}) {
    if (path == open) return Access::kOpen;
  }
  if (path == "/metrics") return Access::kMonitor;
  const bool below_admin = path == "/admin" || path.starts_with("/admin/");
  return below_admin ? Access::kAdmin : Access::kUser;
}

Result<std::shared_ptr<const Caller>> caller_of(const http::Request& request, const KeyTable& table) {
  const Access access = access_of(request.path);
  if (access == Access::kOpen) return std::shared_ptr<const Caller>();
  const Result<std::string_view> secret = secret_of(request);
  if (!secret) return secret.error();
  std::shared_ptr<const Caller> caller = table.find(*secret);
  if (!caller) return unauthorized("the API key is unknown to this server");
  if (!may(*caller, access)) {
    return Error{.code = Code::kForbidden,
                 .message = std::string("a key of role ") + name_of(caller->role) +
                            " is not allowed to do this: use a key of role " +
                            (access == Access::kUser      ? "user or admin"
                             : access == Access::kMonitor ? "monitor or admin"
                                                          : "admin"),
                 .param = "",
                 .reason = "insufficient_permissions"};
  }
  return caller;
}

}  // namespace quire::api::keys
