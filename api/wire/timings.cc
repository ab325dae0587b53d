#include "api/wire/timings.h"

#include <algorithm>
#include <cmath>

#include "api/json/response_writer.h"

namespace quire::api::requests {
namespace {

using Micros = bridge::Timeline::Micros;

void lower(std::optional<Micros>& so_far, std::optional<Micros> one) {
  if (one) so_far = std::min(so_far.value_or(*one), *one);
}
void raise(std::optional<Micros>& so_far, std::optional<Micros> one) {
  if (one) so_far = std::max(so_far.value_or(*one), *one);
}

// 0 if an end is missing.
double ms_between(std::optional<Micros> from, std::optional<Micros> to) {
  return from && to && *to > *from ? (*to - *from) / 1000.0 : 0.0;
}

double per_second(std::uint64_t tokens, double ms) {
  constexpr double kDigits = 100.0;
  return ms > 0.0 ? std::round(static_cast<double>(tokens) / ms * 1000.0 * kDigits) / kDigits : 0.0;
}

}  // namespace

Phases phases_of(std::span<const std::shared_ptr<const bridge::Timeline>> timelines) {
  Phases phases;
  for (const auto& one : timelines) {
    if (one->start() && (!phases.first_start || *one->start() < *phases.first_start)) {
      phases.first_start = one->start();
      phases.waited_for = one->waited_for();
    }
    phases.drafted += one->num_drafted();
    phases.accepted += one->num_accepted();
    if (one->end() != bridge::Timeline::End::kNone) raise(phases.last_end, one->ended());
    const auto last_token = one->last_token();
    if (!last_token) continue;
    ++phases.num_logits_rows;
    lower(phases.first_token, one->tokens().kept().front());
    raise(phases.last_first_token, one->tokens().kept().front());
    raise(phases.last_token, last_token);
  }
  return phases;
}

void append_timings(std::string& json, std::span<const std::shared_ptr<const bridge::Timeline>> timelines,
                    const TokenCounts& counts) {
  const Phases phases = phases_of(timelines);
  const double prompt_ms = ms_between(phases.first_start, phases.last_first_token);
  const double predicted_ms = ms_between(phases.first_token, phases.last_token);
  const std::uint64_t prompt_n = counts.prompt - std::min(counts.prompt, counts.cached);
  // The first token of each sequence is part of the prompt's time, so the rate counts the others only.
  const std::uint64_t decoded = counts.completion - std::min(counts.completion, phases.num_logits_rows);
  json += "\"timings\":";
  JsonWriter writer(json);
  writer.begin_object();
  writer.key("queued_ms").number(ms_between(Micros{0}, phases.first_start));
  writer.key("cache_n").number(counts.cached).key("prompt_n").number(prompt_n);
  writer.key("prompt_ms").number(prompt_ms).key("prompt_per_second").number(per_second(prompt_n, prompt_ms));
  writer.key("predicted_n").number(counts.completion).key("predicted_ms").number(predicted_ms);
  writer.key("predicted_per_second").number(per_second(decoded, predicted_ms));
  if (phases.drafted > 0) writer.key("draft_n").number(phases.drafted).key("draft_n_accepted").number(phases.accepted);
  writer.end_object();
}

}  // namespace quire::api::requests
