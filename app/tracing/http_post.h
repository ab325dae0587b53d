// A receiver of traces behind HTTP, or TLS: a connection for each body.
// Owner   the exporter's, and outlives it.
// Thread  as TraceReceiver says.
// Fails   the constructor: StartError where the CA's file cannot be used. send(): as TraceReceiver says.
// Source  RFC 9112; OTLP/HTTP in JSON. A certificate must be valid and for the URL's host (RFC 9110, 4.3.4).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/http_get.h"
#include "app/tracing/trace_receiver.h"

namespace quire::app {

class HttpPost final : public TraceReceiver {
 public:
  HttpPost(Url url, std::vector<std::pair<std::string, std::string>> headers, const std::string& ca_file);
  ~HttpPost() override;

  Result<ReceiverReply> send(const std::string& body, Duration timeout) override;
  void give_up_at(TimePoint time) override;

 private:
  class Exchange;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace quire::app
