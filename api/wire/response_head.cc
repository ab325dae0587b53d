#include "api/wire/response_head.h"

#include <time.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <random>

#include "api/wire/headers.h"
#include "api/wire/text.h"

namespace quire::api::http {
namespace {

std::string date_now() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return std::string(text, strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts));
}

bool is_id_char(char c) {
  return is_alpha(c) || is_digit(c) || std::string_view("-_.:").find(c) != std::string_view::npos;
}

}  // namespace

std::string response_head(const Response& response, const HeadFacts& facts) {
  namespace beast_http = boost::beast::http;
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + ' ';
  head +=
      std::string_view(beast_http::obsolete_reason(beast_http::int_to_status(static_cast<unsigned>(response.status))));
  const auto field = [&](std::string_view name, std::string_view value) {
    head.append("\r\n").append(name).append(": ").append(value);
  };
  field("Date", date_now());
  field("Content-Type", response.content_type);
  if (facts.body_bytes) {
    field("Content-Length", std::to_string(*facts.body_bytes));
  } else if (facts.http_1_1) {
    field("Transfer-Encoding", "chunked");
  }
  for (const Field& one : response.fields) field(one.name, one.value);
  if (!facts.request_id.empty()) field(kRequestIdHeader, facts.request_id);
  if (!facts.request_id.empty() && facts.of_anthropics) field(kAnthropicIdHeader, facts.request_id);
  head += facts.more;
  if (!facts.keep_alive) {
    field("Connection", "close");
  } else if (!facts.http_1_1) {
    field("Connection", "keep-alive");
  }
  head += "\r\n\r\n";
  return head;
}

std::string request_id_of(std::string_view given) {
  return is_plain_id(given, kMaxRequestIdBytes) ? std::string(given) : random_id();
}

bool is_plain_id(std::string_view text, std::size_t max_bytes) {
  return !text.empty() && text.size() <= max_bytes && std::all_of(text.begin(), text.end(), is_id_char);
}

std::string random_id() {
  std::random_device device;
  std::string id;
  for (int word = 0; word < 4; ++word) {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::uint32_t bits = device();
    for (int digit = 0; digit < 8; ++digit, bits >>= 4) id += kHex[bits & 15];
  }
  return id;
}

}  // namespace quire::api::http
