// /live, /ready, /startup, /health: what Kubernetes and people ask. None of them waits for the engine, or for anything.
// Thread  any; pure functions of what they are given.
#pragma once

#include "api/http/exchange.h"
#include "api/services.h"
#include "core/base/clock.h"

namespace quire::api::admin {

// What the io threads know of the server as a whole.
struct Serving {
  bool ready = false;
  bool draining = false;
  TimePoint gone_by{};  // while draining: when this process is no more, at the latest
};

inline constexpr Duration kStuckAfter =
    std::chrono::seconds(10);  // an engine turn longer than this counts as a stuck one

http::Response live(const Services& services, TimePoint now);
http::Response ready(const Services& services, Serving serving, TimePoint now);
http::Response startup(const Services& services, Serving serving, TimePoint now);  // whether it was ever ready
http::Response health(const Services& services, Serving serving, TimePoint now);

http::Response ping(const Services& services, Serving serving,
                    TimePoint now);             // the same without a word, for SageMaker
http::Response load(const Services& services);  // {"server_load": sequences that run or wait}, as vLLM

// Why a new completion cannot be taken at all: loading, draining, failed. Empty when it can.
std::optional<Error> why_unavailable(const Services& services, Serving serving, TimePoint now);

}  // namespace quire::api::admin
