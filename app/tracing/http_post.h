// TraceReceiver behind HTTP or HTTPS.
// Owner   Tracing; outlives the exporter.
// Thread  as TraceReceiver says.
// Fails   the constructor: StartError if the CA file cannot be used. send(): as TraceReceiver says.
// Source  OTLP/HTTP in JSON.
#pragma once

#include <string>

#include "app/http/http_client.h"
#include "app/tracing/trace_receiver.h"

namespace quire::app {

class HttpPost final : public TraceReceiver {
 public:
  HttpPost(Url url, HttpClient::Fields headers, const std::string& ca_file);

  Result<ReceiverReply> send(const std::string& body, Duration timeout) override;
  void give_up_at(TimePoint time) override;

 private:
  HttpClient client_;
  HttpClient::Fields fields_;  // sent with every request
};

}  // namespace quire::app
