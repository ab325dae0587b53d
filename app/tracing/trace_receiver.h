// Interface of a receiver of spans: one POST of a body, as the exporter sees it.
// Thread  send(): the exporter's; blocks for at most `timeout` plus the time of a name lookup. give_up_at(): any.
// Fails   send(): an error with a text for the log if there is no answer.
#pragma once

#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/result.h"

namespace quire::app {

struct ReceiverReply {
  int status = 0;
  std::optional<Duration> retry_after;  // from the header Retry-After; only if it is in seconds, not a date
  std::string body;
};

class TraceReceiver {
 public:
  virtual ~TraceReceiver() = default;
  virtual Result<ReceiverReply> send(const std::string& body, Duration timeout) = 0;
  // Ends every send() at `time` at the latest, including one that is running.
  virtual void give_up_at(TimePoint time) = 0;
};

}  // namespace quire::app
