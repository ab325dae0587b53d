#include "core/observe/http_requests.h"

#include <algorithm>
#include <utility>

#include "core/observe/latency_bounds.h"

namespace quire::observe {
namespace {

constexpr const char* kNone = "none";

}  // namespace

HttpRequests::Entry::Entry() : seconds(kLatencySeconds) {}

HttpRequests::HttpRequests(std::vector<std::string> handlers)
    : handlers_(std::move(handlers)), entries_((handlers_.size() + 1) * kMethods.size()) {
  handlers_.emplace_back(kNone);
}

void HttpRequests::count(std::string_view method, std::string_view handler, int status, double seconds) {
  const auto row = std::min<std::size_t>(
      static_cast<std::size_t>(std::ranges::find(handlers_, handler) - handlers_.begin()), handlers_.size() - 1);
  const auto column = std::min<std::size_t>(
      static_cast<std::size_t>(std::ranges::find(kMethods, method) - kMethods.begin()), kMethods.size() - 1);
  Entry& entry = entries_[row * kMethods.size() + column];
  entry.counts[std::min<std::size_t>(static_cast<std::size_t>(std::max(status, 0)) / 100, kNumStatusClasses - 1)].add();
  entry.seconds.observe(seconds);
}

void HttpRequests::for_each(const std::function<void(const Row&)>& visit) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Row row{kMethods[i % kMethods.size()], handlers_[i / kMethods.size()], {}, entries_[i].seconds};
    for (std::size_t hundreds = 0; hundreds < kNumStatusClasses; ++hundreds) {
      row.counts[hundreds] = entries_[i].counts[hundreds].value();
    }
    if (std::ranges::any_of(row.counts, [](std::uint64_t count) { return count != 0; })) visit(row);
  }
}

}  // namespace quire::observe
