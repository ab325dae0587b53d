#include "api/admin/health.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "api/json/response_writer.h"
#include "api/wire/errors.h"

namespace quire::api::admin {
namespace {

http::Response good(std::string_view word) {
  http::Response response;
  JsonWriter(response.body).begin_object().key("status").text(word).end_object();
  return response;
}

// Formats a duration as "12.3 s".
std::string seconds_text(Duration duration) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::optional<Error> why_dead(const Services& services, TimePoint now) {
  if (services.engine.failed()) return Error{Code::kUnavailable, "the engine has failed", "", 1};
  if (const Duration stuck = services.engine.stuck_for(now); stuck > kStuckAfter) {
    return Error{Code::kUnavailable,
                 std::string("the engine is stuck ") + bridge::EngineStatus::name_of(services.engine.phase()) +
                     ": this iteration has taken " + seconds_text(stuck) + " so far; the limit is " +
                     seconds_text(kStuckAfter),
                 "", 1, "engine_stuck"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> why_unavailable(const Services& services, Serving serving, TimePoint now) {
  if (services.engine.failed()) return Error{Code::kUnavailable, "the engine has failed", "", 1};
  if (serving.draining) {
    const double left_s = std::chrono::duration<double>(serving.gone_by - now).count();
    return Error{Code::kUnavailable, "the server is shutting down and accepts no new requests", "",
                 whole_retry_s(left_s)};
  }
  if (!serving.ready) return Error{Code::kUnavailable, "the server is still loading", "", 1};
  return std::nullopt;
}

namespace {

// Before the server is ready a probe says what the waiting room said until then (api/http/waiting_room.h).
http::Response unavailable(const Services& services, Serving serving, const Error& why) {
  http::Response response = error_response(why);
  if (!serving.ready && !serving.draining && !services.engine.failed()) response.body = good("loading").body;
  return response;
}

}  // namespace

http::Response live(const Services& services, TimePoint now) {
  if (const auto why = why_dead(services, now)) return error_response(*why);
  return good("alive");
}

http::Response ready(const Services& services, Serving serving, TimePoint now) {
  if (const auto why = why_unavailable(services, serving, now)) return unavailable(services, serving, *why);
  return good("ready");
}

http::Response startup(const Services& services, Serving serving, TimePoint now) {
  if (services.engine.failed() || !(serving.ready || serving.draining)) {
    return unavailable(services, serving, *why_unavailable(services, serving, now));
  }
  return good("started");
}

http::Response health(const Services& services, Serving serving, TimePoint now) {
  if (const auto why = why_dead(services, now)) return error_response(*why);
  if (const auto why = why_unavailable(services, serving, now)) return unavailable(services, serving, *why);
  return good("ok");
}

http::Response ping(const Services& services, Serving serving, TimePoint now) {
  http::Response response = health(services, serving, now);
  if (response.status == http::kStatusOk) response.body.clear();
  return response;
}

http::Response load(const Services& services) {
  const observe::Metrics& metrics = services.metrics;
  const double count = metrics.requests_running.value() + metrics.requests_waiting.value();
  http::Response response;
  JsonWriter(response.body)
      .begin_object()
      .key("server_load")
      .number(static_cast<std::uint64_t>(std::max(count, 0.0)))
      .end_object();
  return response;
}

}  // namespace quire::api::admin
