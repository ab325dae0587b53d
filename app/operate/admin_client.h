// The paths for operators of a running server: its requests, and their end.
// Shape   answers are JSON as the server sends it, checked to be an object.
// Owner   the command.
// Thread  any; a call blocks for ten seconds at most, plus the time of a name lookup.
// Fails   StartError with the next step for the caller: an invalid URL, no answer, a key of another role, or a port
//         without these paths. A request that does not exist is no failure.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "app/http/http_get.h"

namespace quire::app {

class AdminClient {
 public:
  // `url`: of the server, of its admin port or of its API, as typed.
  AdminClient(const std::string& url, GetOptions options);

  boost::json::object list() const;                                       // GET /admin/requests
  std::optional<boost::json::object> explain(std::string_view id) const;  // empty: there is no such request
  bool stop(std::string_view id) const;                                   // false: no such request runs

 private:
  Result<std::string> ask(std::string_view method, const std::string& path) const;
  std::optional<boost::json::object> ask_about(std::string_view method, std::string_view id,
                                               std::string_view what) const;
  [[noreturn]] void fail(const Error& error) const;
  boost::json::object object_of(const std::string& body) const;

  const GetOptions options_;
  const Url url_;
};

}  // namespace quire::app
