// The line of the log about a request that has ended.
// Thread  any; a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/wire/exchange.h"
#include "api/wire/request_span.h"
#include "core/base/clock.h"
#include "core/base/log.h"

namespace quire::api::tracing {

enum class LogRequests : std::uint8_t {
  kOff,
  kErrors,   // those answered with an error
  kAll,      // no prompt and no answer
  kContent,  // with the first bytes of the body
};

struct EndedRequest {
  static constexpr std::size_t kMaxContentBytes = 4096;

  std::string_view id{};
  std::string_view method{};  // empty, as the path: the head of the request could not be read
  std::string_view path{};
  int status = 0;
  const http::ReportedError* error = nullptr;
  const Generated* generated = nullptr;  // null: nothing is generated on this path
  std::string_view key{};                // name of the API key; empty: the server has no keys
  std::string_view client{};             // its address
  std::string_view trace_id{};
  std::string_view labels{};
  std::string_view content{};  // of the body, logged if not empty
  TimePoint arrival{};         // zero, as first_write: there was none
  TimePoint first_write{};
  TimePoint end{};
};

// Without empty fields.
LogFields fields_of(const EndedRequest& request);

// True if its line is logged.
bool is_logged(LogRequests which, const EndedRequest& request);

}  // namespace quire::api::tracing
