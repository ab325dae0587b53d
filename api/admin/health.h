// The probes /live, /ready, /startup, /health, /ping and /load, for Kubernetes, SageMaker, routers and people. None of
// them waits for the engine or for anything else.
// Thread  any; pure functions of their arguments.
#pragma once

#include "api/services/services.h"
#include "api/wire/exchange.h"
#include "core/base/clock.h"

namespace quire::api::admin {

// The state of the server, as its io threads know it.
struct Serving {
  bool ready = false;
  bool draining = false;
  TimePoint gone_by{};  // while draining: the latest time at which the process ends
};

// An engine iteration longer than this counts as stuck.
inline constexpr Duration kStuckAfter = std::chrono::seconds(10);

http::Response live(const Services& services, TimePoint now);
http::Response ready(const Services& services, Serving serving, TimePoint now);
http::Response startup(const Services& services, Serving serving, TimePoint now);  // 200 once it has been ready
http::Response health(const Services& services, Serving serving, TimePoint now);

// health() with an empty body if all is well, for SageMaker.
http::Response ping(const Services& services, Serving serving, TimePoint now);
http::Response load(const Services& services);  // {"server_load": running and waiting sequences}, as vLLM

// The reason why no new request is accepted: loading, draining or failed. Empty: requests are accepted.
std::optional<Error> why_unavailable(const Services& services, Serving serving, TimePoint now);

}  // namespace quire::api::admin
