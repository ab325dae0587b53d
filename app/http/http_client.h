// HTTP/1.1 client for another server: plain or TLS, one request at a time, one connection per request.
// Owner   the caller.
// Thread  send(): any, one call at a time; blocks for at most `timeout` plus the time of a name lookup. give_up_at():
//         any.
// Fails   the constructor: StartError if the CA file cannot be used. send(): an error with a readable text if there is
//         no answer.
// Source  RFC 9112. The certificate must be valid for the URL's host (RFC 9110, 4.3.4).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/http/http_get.h"
#include "core/base/clock.h"
#include "core/base/result.h"

namespace quire::app {

struct HttpReply {
  int status = 0;
  std::string retry_after;  // the value of the field Retry-After
  std::string body;
};

class HttpClient {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  // Limits of a reply's head and body in bytes. `ca_file`: PEM certificates; empty: the system's.
  HttpClient(Url url, std::uint32_t head_bytes, std::uint64_t body_bytes, const std::string& ca_file = {});
  ~HttpClient();

  // `path` is appended to the URL's own; Host, Connection and Content-Length are added.
  Result<HttpReply> send(std::string_view method, std::string_view path, const Fields& fields, std::string_view body,
                         Duration timeout);
  // Ends every send() at `time` at the latest, including one that is running.
  void give_up_at(TimePoint time);

  bool connected() const;  // true if the last send() got a connection

 private:
  class Exchange;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace quire::app
