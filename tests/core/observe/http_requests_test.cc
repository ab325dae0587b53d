#include "core/observe/http_requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace quire::observe::http_requests_test {
namespace {

std::map<std::string, std::uint64_t> counts_of(const HttpRequests& requests) {
  std::map<std::string, std::uint64_t> found;
  requests.for_each([&](const HttpRequests::Row& row) {
    for (std::size_t hundreds = 0; hundreds < row.counts.size(); ++hundreds) {
      if (row.counts[hundreds] == 0) continue;
      found[std::string(row.method) + " " + std::string(row.handler) + " " + std::to_string(hundreds)] =
          row.counts[hundreds];
    }
  });
  return found;
}

TEST(HttpRequests, AreCountedByMethodHandlerAndStatus) {
  HttpRequests requests({"/a", "/b"});
  EXPECT_TRUE(counts_of(requests).empty());
  requests.count("GET", "/a", 200, 0.05);
  requests.count("GET", "/a", 204, 0.7);
  requests.count("POST", "/b", 404, 2);
  const std::map<std::string, std::uint64_t> expected = {{"GET /a 2", 2}, {"POST /b 4", 1}};
  EXPECT_EQ(counts_of(requests), expected);
  requests.for_each([](const HttpRequests::Row& row) {
    const bool is_a = row.handler == "/a";
    EXPECT_DOUBLE_EQ(row.seconds.sum(), is_a ? 0.75 : 2.0);
    const auto at = [&](double bound) {
      return static_cast<std::size_t>(std::ranges::find(row.seconds.bounds(), bound) - row.seconds.bounds().begin());
    };
    EXPECT_EQ(row.seconds.count(at(.05)), is_a ? 1u : 0u);
    EXPECT_EQ(row.seconds.count(at(2)), is_a ? 0u : 1u);
  });
}

TEST(HttpRequests, OfUnknownNamesAreFewSeries) {
  HttpRequests requests({"/a"});
  for (int i = 0; i < 1000; ++i) requests.count("M" + std::to_string(i), "/x" + std::to_string(i), 404, 0);
  requests.count("GET", "", 404, 0);
  requests.count("GET", "/a", 9999, 0);
  requests.count("GET", "/a", -1, 0);
  const std::map<std::string, std::uint64_t> expected = {
      {"other none 4", 1000}, {"GET none 4", 1}, {"GET /a 5", 1}, {"GET /a 0", 1}};
  EXPECT_EQ(counts_of(requests), expected);
}

}  // namespace
}  // namespace quire::observe::http_requests_test
