#include "api/requests/timings.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "api/openai/response_writer.h"

namespace quire::api::requests {
namespace {

using Micros = bridge::Timeline::Micros;

// The ends of each part, over all sequences, and what was drafted in them.
struct Ends {
  std::optional<Micros> first_start;
  std::optional<Micros> first_token;       // of whoever spoke first
  std::optional<Micros> last_first_token;  // of whoever spoke last
  std::optional<Micros> last_token;
  std::uint64_t num_speakers = 0;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
};

void lower(std::optional<Micros>& so_far, std::optional<Micros> one) {
  if (one) so_far = std::min(so_far.value_or(*one), *one);
}
void raise(std::optional<Micros>& so_far, std::optional<Micros> one) {
  if (one) so_far = std::max(so_far.value_or(*one), *one);
}

Ends ends_of(std::span<const std::shared_ptr<const bridge::Timeline>> timelines) {
  Ends ends;
  for (const auto& one : timelines) {
    lower(ends.first_start, one->start());
    ends.drafted += one->num_drafted();
    ends.accepted += one->num_accepted();
    const auto last_token = one->last_token();
    if (!last_token) continue;
    ++ends.num_speakers;
    lower(ends.first_token, one->tokens().kept().front());
    raise(ends.last_first_token, one->tokens().kept().front());
    raise(ends.last_token, last_token);
  }
  return ends;
}

// 0 where one of the ends never came.
double ms_between(std::optional<Micros> from, std::optional<Micros> to) {
  return from && to && *to > *from ? (*to - *from) / 1000.0 : 0.0;
}

double per_second(std::uint64_t tokens, double ms) {
  constexpr double kDigits = 100.0;
  return ms > 0.0 ? std::round(static_cast<double>(tokens) / ms * 1000.0 * kDigits) / kDigits : 0.0;
}

}  // namespace

void append_timings(std::string& json, std::span<const std::shared_ptr<const bridge::Timeline>> timelines,
                    const TokenCounts& counts) {
  const Ends ends = ends_of(timelines);
  const double prompt_ms = ms_between(ends.first_start, ends.last_first_token);
  const double predicted_ms = ms_between(ends.first_token, ends.last_token);
  const std::uint64_t prompt_n = counts.prompt - std::min(counts.prompt, counts.cached);
  // A sequence's first token is its prompt's time; the others took the rest.
  const std::uint64_t decoded = counts.completion - std::min(counts.completion, ends.num_speakers);
  json += "\"timings\":";
  openai::JsonWriter writer(json);
  writer.begin_object();
  writer.key("queued_ms").number(ms_between(Micros{0}, ends.first_start));
  writer.key("cache_n").number(counts.cached).key("prompt_n").number(prompt_n);
  writer.key("prompt_ms").number(prompt_ms).key("prompt_per_second").number(per_second(prompt_n, prompt_ms));
  writer.key("predicted_n").number(counts.completion).key("predicted_ms").number(predicted_ms);
  writer.key("predicted_per_second").number(per_second(decoded, predicted_ms));
  if (ends.drafted > 0) writer.key("draft_n").number(ends.drafted).key("draft_n_accepted").number(ends.accepted);
  writer.end_object();
}

}  // namespace quire::api::requests
