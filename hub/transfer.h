// GET requests to a hub and to the servers that it redirects to, by libcurl.
// Shape   the token goes only to the endpoint's own scheme, host and port. Certificates are verified. https only, but
//         for an endpoint on this machine and where plain HTTP was allowed.
// Owner   the caller; one object keeps its connections open.
// Thread  one at a time, which blocks; asking `stop` to stop ends a request within a second.
// Fails   a Failure, whose text says what to do. An answer of any status is no failure.
// Source  RFC 9110: redirection (15.4), ranges (14). The proxies are those of libcurl's environment variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <variant>

#include "hub/settings.h"

namespace quire::hub {

struct Failure {
  std::string message;
  bool may_pass = false;  // worth another try: the network, or the server for the moment
  bool cancelled = false;
  Duration wait{};  // asked for by the server
};

struct Answer {
  int status = 0;
  std::map<std::string, std::string, std::less<>> fields;  // of the last response, names in lower case
  std::string body;

  std::string field(std::string_view name) const;  // "": there is none
};

template <typename T>
using Got = std::variant<T, Failure>;

// Receives the body of a 200 or 206.
class Sink {
 public:
  virtual ~Sink() = default;
  // Before the first piece: the position in the file at which the body begins.
  virtual bool begin(std::uint64_t offset) = 0;
  virtual bool take(std::span<const std::byte> piece) = 0;  // false ends the request
};

class Transfer {
 public:
  Transfer(const Settings& settings, std::stop_token stop);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  Got<Answer> get(const std::string& url, std::uint64_t max_bytes);
  // A file from `offset` on; body of an answer that is neither 200 nor 206: in Answer::body, cut after some KiB.
  // A sink that ends the request leaves a Failure without a text.
  Got<Answer> get_file(const std::string& url, std::uint64_t offset, Sink& sink);

 private:
  class Request;
  Got<Answer> run(std::string url, std::uint64_t max_bytes, std::uint64_t offset, Sink* sink);

  const Settings& settings_;
  const Origin endpoint_;
  const std::stop_token stop_;
  void* handle_;
};

}  // namespace quire::hub
