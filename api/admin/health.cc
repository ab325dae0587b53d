#include "api/admin/health.h"

#include "api/openai/errors.h"
#include "api/openai/response_writer.h"

namespace quire::api::admin {
namespace {

http::Response good(std::string_view word) {
  http::Response response;
  openai::JsonWriter(response.body).begin_object().key("status").text(word).end_object();
  return response;
}

std::optional<Error> why_dead(const Services& services, TimePoint now) {
  if (services.engine.failed()) return Error{Code::kUnavailable, "the engine has failed", "", 1};
  if (services.engine.stuck_for(now) > kStuckAfter) {
    return Error{Code::kUnavailable, "the engine has not finished a step for more than 10 s", "", 1};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> why_unavailable(const Services& services, Serving serving) {
  if (services.engine.failed()) return Error{Code::kUnavailable, "the engine has failed", "", 1};
  if (serving.draining)
    return Error{Code::kUnavailable, "the server is shutting down and takes no new requests", "", 5};
  if (!serving.ready) return Error{Code::kUnavailable, "the server is still loading", "", 1};
  return std::nullopt;
}

http::Response live(const Services& services, TimePoint now) {
  if (const auto why = why_dead(services, now)) return openai::error_response(*why);
  return good("alive");
}

http::Response ready(const Services& services, Serving serving) {
  if (const auto why = why_unavailable(services, serving)) return openai::error_response(*why);
  return good("ready");
}

http::Response startup(const Services& services, Serving serving) {
  if (services.engine.failed() || !(serving.ready || serving.draining)) {
    return openai::error_response(*why_unavailable(services, serving));
  }
  return good("started");
}

http::Response health(const Services& services, Serving serving, TimePoint now) {
  if (const auto why = why_dead(services, now)) return openai::error_response(*why);
  if (const auto why = why_unavailable(services, serving)) return openai::error_response(*why);
  return good("ok");
}

}  // namespace quire::api::admin
