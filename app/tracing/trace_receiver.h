// Who takes spans: one POST of a body, as the exporter sees it.
// Thread  send(): the exporter's, and blocks for `timeout` at most, a name that has to be resolved besides. give_up_at(): any.
// Fails   send(): no answer, with a text for the log.
#pragma once

#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/result.h"

namespace quire::app {

struct ReceiverReply {
  int status = 0;
  std::optional<Duration> retry_after;  // as it asked; in seconds alone, not as a date
  std::string body;
};

class TraceReceiver {
 public:
  virtual ~TraceReceiver() = default;
  virtual Result<ReceiverReply> send(const std::string& body, Duration timeout) = 0;
  // No send() goes on past that, the one under way included.
  virtual void give_up_at(TimePoint time) = 0;
};

}  // namespace quire::app
