// One request at a time to another server: HTTP/1.1, plain or behind TLS, a connection for each.
// Owner   the caller's.
// Thread  send(): any, one at a time; blocks for `timeout` at most, and for a name's resolution. give_up_at(): any.
// Fails   the constructor: StartError where the CA's file cannot be used. send(): no answer, with a text for people.
// Source  RFC 9112. A certificate must be valid and for the URL's host (RFC 9110, 4.3.4).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/http_get.h"
#include "core/base/clock.h"
#include "core/base/result.h"

namespace quire::app {

struct HttpReply {
  int status = 0;
  std::string retry_after;  // as the field says it
  std::string body;
};

class HttpClient {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  // A reply's head and body are at most so long; the CA: a file of certificates, the system's where it is empty.
  HttpClient(Url url, std::uint32_t head_bytes, std::uint64_t body_bytes, const std::string& ca_file = {});
  ~HttpClient();

  // `path` stands below the URL's own; Host, Connection and Content-Length are added.
  Result<HttpReply> send(std::string_view method, std::string_view path, const Fields& fields, std::string_view body,
                         Duration timeout);
  // No send() goes on past that, the one under way included.
  void give_up_at(TimePoint time);

  bool connected() const;  // whether the last one came so far

 private:
  class Exchange;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace quire::app
