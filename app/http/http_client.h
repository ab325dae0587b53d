// HTTP/1.1 client for another server, by libcurl: plain or TLS, one request at a time, one connection per request.
// Owner   the caller.
// Thread  send(): any, one call at a time; blocks for at most `timeout` plus the time of a name lookup. give_up_at():
//         any.
// Fails   the constructor: StartError if the CA file cannot be used. send(): an error with a readable text if there is
//         no answer; kUntrusted is the reason if the certificate is not trusted. An answer of any status is none.
// Source  RFC 9112. The certificate must be valid for the URL's host (RFC 9110, 4.3.4). Proxies are those of libcurl's
//         environment variables, and none for this machine. Redirects are not followed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
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
  std::string retry_after{};  // the value of the field Retry-After
  std::string body{};
  bool stopped = false;  // stop_fd became readable: the rest is incomplete

  bool is_ok() const { return status == 200; }
  bool wants_key() const { return status == 401 || status == 403; }
  bool is_refused() const { return status == 400; }
};

struct HttpClientOptions {
  std::uint32_t head_bytes = 16 * 1024;                // limits of a reply
  std::uint64_t body_bytes = std::uint64_t{16} << 20;  // of one that is taken piece by piece, none
  std::string ca_file{};                               // PEM certificates; empty: SSL_CERT_FILE's, or the system's
  std::string unix_socket{};                           // path; empty: the URL's host and port
  int stop_fd = -1;                                    // ends a call when it is readable; the caller reads it
};

class HttpClient {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;
  using Take = std::function<void(std::string_view piece)>;

  HttpClient(Url url, HttpClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  const Url& url() const { return url_; }

  // `path` is appended to the URL's own; Host and Content-Length are added. take: gets the body of an answer of status
  // 200 as it comes, any other body is in the reply.
  Result<HttpReply> send(std::string_view method, std::string_view path, const Fields& fields, std::string_view body,
                         Duration timeout, const Take& take = {});
  // Ends every send() at `time` at the latest, including one that is running.
  void give_up_at(TimePoint time);

  bool connected() const { return connected_; }  // true if the last send() got a connection

 private:
  class Call;
  Result<HttpReply> run(Call& call, TimePoint end);

  const Url url_;
  const HttpClientOptions options_;
  void* multi_;
  void* easy_;
  std::atomic<TimePoint> limit_{TimePoint::max()};  // of all calls; written by give_up_at()
  bool connected_ = false;
};

// Fields of a request with a JSON body; a key that is not empty is sent as Authorization: Bearer.
HttpClient::Fields json_fields(const std::string& key);

}  // namespace quire::app
