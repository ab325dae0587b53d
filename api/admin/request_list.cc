#include "api/admin/request_list.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "api/json/response_writer.h"
#include "api/limits/request_book.h"
#include "api/wire/timings.h"

namespace quire::api::requests {
namespace {

using bridge::Timeline;
using Timelines = std::span<const std::shared_ptr<const Timeline>>;

double ms_of(std::chrono::microseconds time) { return static_cast<double>(time.count()) / 1000.0; }

// For each prompt the fewest cached tokens of its sequences that have started.
std::uint64_t cached_tokens(Timelines timelines, std::size_t num_prompts) {
  const std::size_t per_prompt = std::max<std::size_t>(1, timelines.size() / num_prompts);
  std::uint64_t sum = 0;
  for (std::size_t first = 0; first < timelines.size(); first += per_prompt) {
    std::optional<std::uint32_t> least;
    for (const auto& one : timelines.subspan(first, std::min(per_prompt, timelines.size() - first))) {
      if (one->start()) least = std::min(least.value_or(one->cached_tokens()), one->cached_tokens());
    }
    sum += least.value_or(0);
  }
  return sum;
}

std::uint64_t generated_tokens(Timelines timelines) {
  std::uint64_t sum = 0;
  for (const auto& one : timelines) sum += one->tokens().num();
  return sum;
}

void write_request(JsonWriter& json, const RequestRecord& record, TimePoint now) {
  const Phases phases = phases_of(record.timelines);
  const Duration since_arrival = std::max(Duration{0}, now - record.arrival);
  const double age_ms = ms_of(std::chrono::duration_cast<std::chrono::microseconds>(since_arrival));
  json.begin_object().key("object").text("request").key("id").text(record.id);
  json.key("state").text(phases.first_start ? "running" : "queued").key("api_key");
  record.owner.empty() ? json.null() : json.text(record.owner);
  json.key("model").text(record.asked.model).key("path").text(record.path);
  json.key("stream").boolean(record.asked.stream).key("age_ms").number(age_ms);
  json.key("queued_ms")
      .number(phases.first_start ? ms_of(std::chrono::microseconds(*phases.first_start)) : age_ms)
      .key("first_token_ms");
  phases.first_token ? json.number(ms_of(std::chrono::microseconds(*phases.first_token))) : json.null();
  json.key("prompt_tokens").number(record.asked.prompt_tokens);
  json.key("cached_tokens").number(cached_tokens(record.timelines, record.asked.num_prompts));
  json.key("generated_tokens").number(generated_tokens(record.timelines));
  json.key("sequences").number(std::uint64_t{record.timelines.size()}).end_object();
}

}  // namespace

http::Response list(const Services& services, TimePoint now) {
  const RequestBook::Running running = services.requests.running(kMaxListed);
  http::Response response;
  JsonWriter json(response.body);
  json.begin_object().key("object").text("list").key("data").begin_array();
  for (const auto& record : running.records) write_request(json, *record, now);
  json.end_array().key("left_out").number(std::uint64_t{running.left_out}).end_object();
  return response;
}

}  // namespace quire::api::requests
