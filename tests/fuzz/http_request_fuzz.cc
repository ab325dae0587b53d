// Any bytes as what a connection sends: the guard, Beast behind it, and the router, in the order of the session.
// Holds   the verdict, the body and where the request ends do not depend on how the bytes were cut into reads; every answer
//         that is made at once has a status, and is JSON (but for a ping's, which is empty, and the metrics' text).
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "api/http/body_reader.h"
#include "api/http/framing_guard.h"
#include "api/routes/router.h"
#include "api/wire/errors.h"
#include "api/wire/response_head.h"
#include "core/base/check.h"
#include "tests/api/generation/fake_engine.h"

namespace {

using namespace quire::api::http;

constexpr FramingLimits kLimits{.head_bytes = 1024, .head_fields = 16, .body_bytes = 2048};

struct Outcome {
  std::optional<Refusal> refusal;
  std::optional<Request> request;  // neither: the bytes end too soon
  std::size_t taken = 0;
};

// Bytes come `step` at a time.
Outcome receive(std::string_view bytes, std::size_t step) {
  Outcome outcome;
  std::size_t have = 0;
  std::size_t head_bytes = 0;
  while (head_bytes == 0) {
    const std::size_t seen = have;
    if (have == bytes.size()) return outcome;
    have = std::min(bytes.size(), have + step);
    const auto found = find_head_end(bytes.substr(0, have), seen, kLimits);
    if (const auto* refusal = std::get_if<Refusal>(&found)) return {*refusal, {}, 0};
    head_bytes = std::get<std::size_t>(found);
  }
  const auto verdict = inspect_head(bytes.substr(0, head_bytes), kLimits);
  if (const auto* refusal = std::get_if<Refusal>(&verdict)) return {*refusal, {}, 0};
  const Framing& framing = std::get<Framing>(verdict);
  CHECK(!framing.chunked || framing.content_length == 0);
  CHECK_LE(framing.content_length, kLimits.body_bytes);

  BodyReader reader(kLimits);
  BodyReader::Taken taken = reader.put(bytes.substr(0, head_bytes));
  if (taken.refusal) return {taken.refusal, {}, 0};
  CHECK_EQ(taken.bytes, head_bytes);
  Request request;
  request.method = framing.method;
  request.path = path_of(framing.target);
  request.content_type = reader.field("Content-Type");
  request.content_encoding = reader.field("Content-Encoding");
  request.id = request_id_of(reader.field("X-Request-Id"));
  outcome.taken = head_bytes;
  while (!reader.done()) {
    taken = reader.put(bytes.substr(outcome.taken, have - outcome.taken));
    if (taken.refusal) return {taken.refusal, {}, 0};
    outcome.taken += taken.bytes;
    if (reader.done()) break;
    if (have == bytes.size()) return {};
    have = std::min(bytes.size(), have + step);
  }
  request.body = reader.take_body();
  CHECK_LE(request.body.size(), kLimits.body_bytes);
  CHECK(framing.chunked || request.body.size() == framing.content_length);
  outcome.request = std::move(request);
  return outcome;
}

void check_response(const Response& response) {
  CHECK_GE(response.status, 200);
  if (!response.body.empty() && !response.content_type.starts_with("text/plain")) boost::json::parse(response.body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static quire::api::test::World world;
  static const quire::api::Services services = world.services();
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Outcome whole = receive(bytes, bytes.size() + 1);
  const Outcome pieces = receive(bytes, data[0] % 16 + 1u);
  // A fault in the last bytes may be seen now or with the next ones, but nobody takes what another refuses.
  CHECK_EQ(whole.request.has_value(), pieces.request.has_value());
  if (whole.refusal) check_response(quire::api::error_response(*whole.refusal));
  if (!whole.request) return 0;
  CHECK_EQ(whole.taken, pieces.taken);
  CHECK_EQ(whole.request->body, pieces.request->body);
  CHECK_EQ(whole.request->path, pieces.request->path);

  Reply reply = route(std::move(*whole.request), services, {.ready = true, .draining = false});
  if (const auto* response = std::get_if<Response>(&reply)) {
    check_response(*response);
  } else {
    quire::Allowance patient;
    std::get<std::unique_ptr<Answer>>(reply)->work(quire::api::Lane::kSlow, patient);
  }
  return 0;
}
