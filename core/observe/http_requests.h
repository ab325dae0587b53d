// Counts of HTTP requests by method, handler and status class, as the instrumentation of vLLM's HTTP server has them.
// Shape   a handler is a path as the server lists it ("/v1/models/{model}"); any other path counts as "none", a method
//         that is not in kMethods as "other". The caller leaves out probes and scrapes.
// Thread  any.
// Source  names and labels: prometheus_fastapi_instrumentator's http_requests_total, http_request_duration_seconds.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/observe/instruments.h"

namespace quire::observe {

class HttpRequests {
 public:
  static constexpr std::array<std::string_view, 7> kMethods = {"GET",    "HEAD",    "POST", "PUT",
                                                               "DELETE", "OPTIONS", "other"};
  static constexpr std::size_t kNumStatusClasses = 6;  // by hundreds: [2] is 2xx

  explicit HttpRequests(std::vector<std::string> handlers);

  // Counts a request whose answer has ended.
  void count(std::string_view method, std::string_view handler, int status, double seconds);

  struct Row {
    std::string_view method, handler;
    std::array<std::uint64_t, kNumStatusClasses> counts;
    const Histogram& seconds;
  };
  // Visits each pair of method and handler that was requested.
  void for_each(const std::function<void(const Row&)>& visit) const;

 private:
  struct Entry {
    Entry();
    std::array<Counter, kNumStatusClasses> counts;
    Histogram seconds;
  };

  std::vector<std::string> handlers_;
  std::vector<Entry> entries_;  // [handler][method]
};

}  // namespace quire::observe
