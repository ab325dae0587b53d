#include "app/tracing/http_post.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/wire/text.h"
#include "app/config/version.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

constexpr std::uint64_t kMaxReplyBytes = 64 * 1024;
constexpr std::uint32_t kMaxRetryAfter_s = 24 * 60 * 60;

HttpClient client_of(Url url, const std::string& ca_file) {
  try {
    return {std::move(url), {.body_bytes = kMaxReplyBytes, .ca_file = ca_file}};
  } catch (const StartError& error) {
    throw StartError(fmt::format("OTEL_EXPORTER_OTLP_CERTIFICATE {}", error.what()));
  }
}

std::optional<Duration> retry_after_of(std::string_view text) {
  std::uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds > kMaxRetryAfter_s) return std::nullopt;
  return std::chrono::seconds(seconds);
}

void add_unless_given(HttpClient::Fields& fields, const char* name, std::string value) {
  const bool is_given =
      std::ranges::any_of(fields, [&](const auto& field) { return api::http::iequals(field.first, name); });
  if (!is_given) fields.emplace_back(name, std::move(value));
}

}  // namespace

HttpPost::HttpPost(Url url, HttpClient::Fields headers, const std::string& ca_file)
    : client_(client_of(std::move(url), ca_file)), fields_(std::move(headers)) {
  add_unless_given(fields_, "User-Agent", fmt::format("quire/{}", kVersion));
  add_unless_given(fields_, "Content-Type", "application/json");
}

Result<ReceiverReply> HttpPost::send(const std::string& body, Duration timeout) {
  Result<HttpReply> reply = client_.send("POST", "", fields_, body, timeout);
  if (!reply) return reply.error();
  return ReceiverReply{reply->status, retry_after_of(reply->retry_after), std::move(reply->body)};
}

void HttpPost::give_up_at(TimePoint time) { client_.give_up_at(time); }

}  // namespace quire::app
