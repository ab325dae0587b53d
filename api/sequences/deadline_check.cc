#include "api/sequences/deadline_check.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include "core/bridge/load_estimate.h"

namespace quire::api {
namespace {

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// Formats seconds as "1.5 s" or "0.025 s".
std::string text_of(double seconds) {
  std::string text = std::to_string(std::max(0.0, seconds));
  text.resize(text.find('.') + 4);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

Error refusal(const char* what, const std::string& why, const char* reason, double late_s) {
  return {Code::kQueueFull, std::string(what) + ": " + why + "; try again later", what, whole_retry_s(late_s), reason};
}

std::uint64_t expected_tokens(const GenerationRequest& request, const flow::Request& sequence, double mean) {
  const bool ends_by_length = sequence.stop_tokens.empty() && request.stop.empty() && !sequence.grammar;
  if (ends_by_length) return sequence.max_tokens;
  const auto usual = static_cast<std::uint64_t>(mean);
  return std::min<std::uint64_t>(sequence.max_tokens, std::max<std::uint64_t>(usual, request.rules.min_tokens));
}

// The engine's load, read without waiting for the engine.
struct Load {
  std::uint32_t waiting = 0;  // sequences that wait
  std::uint32_t places = 0;   // sequences that could start at once
};

Load load_of(const Services& services) {
  const std::uint32_t waiting = services.queue.waiting_sequences();
  const auto running = static_cast<std::uint32_t>(services.metrics.requests_running.value());
  // Sequences wait that the scheduler could not admit.
  const bool blocked = services.metrics.requests_waiting.value() > 0.0;
  return {waiting, blocked ? 0 : services.max_num_seqs - std::min(running, services.max_num_seqs)};
}

bridge::Outlook outlook_of(const GenerationRequest& request, std::span<const flow::Request> sequences,
                           std::span<const PromptRun> prompts, const Load& load, const bridge::Rates& rates,
                           const Services& services) {
  bridge::Line line{0, 0, load.places};
  if (services.first_come) {
    line.sequences = load.waiting;
    line.tokens = services.queue.waiting_tokens();
  }
  bridge::Demand demand{static_cast<std::uint32_t>(sequences.size()), 0, 0};
  for (const PromptRun& prompt : prompts) demand.prompt_tokens += prompt.num_tokens;
  for (const flow::Request& one : sequences) {
    demand.answer_tokens = std::max(demand.answer_tokens, expected_tokens(request, one, rates.answer_tokens));
  }
  return bridge::outlook(rates, line, demand);
}

Result<Done> check_hopes(const requests::SloHints& slo_hints, const Load& load, std::size_t num_sequences,
                         const bridge::Outlook& outlook, const bridge::Rates& rates, double passed_s, int retry_s) {
  constexpr const char* kShed = "shed";
  if (load.waiting + num_sequences > load.places) {
    return Error{Code::kQueueFull, "the server is busy and does not queue sheddable requests; try again later",
                 requests::kObjectiveHeader, retry_s, kShed};
  }
  if (slo_hints.first_token) {
    const double late = passed_s + outlook.first_token_s - seconds_of(*slo_hints.first_token);
    if (late > 0.0) {
      return refusal(requests::kFirstTokenHeader,
                     "the first token is expected after about " + text_of(passed_s + outlook.first_token_s), kShed,
                     late);
    }
  }
  if (slo_hints.token_time && rates.token_s > seconds_of(*slo_hints.token_time)) {
    Error slow =
        refusal(requests::kTokenTimeHeader, "a token takes about " + text_of(rates.token_s) + " now", kShed, 0);
    slow.retry_after_s = retry_s;
    return slow;
  }
  return Done{};
}

}  // namespace

std::optional<Deadline> deadline_of(const GenerationRequest& request, const requests::SloHints& slo_hints) {
  std::optional<Deadline> deadline;
  if (request.deadline_ms) deadline = {std::chrono::milliseconds(*request.deadline_ms), "deadline_ms"};
  if (slo_hints.timeout && (!deadline || *slo_hints.timeout < deadline->after_arrival)) {
    deadline = {*slo_hints.timeout, requests::kTimeoutHeader};
  }
  return deadline;
}

Error too_late(const GenerationRequest& request, const requests::SloHints& slo_hints, const char* while_what) {
  const std::optional<Deadline> deadline = deadline_of(request, slo_hints);
  const double seconds = deadline ? seconds_of(deadline->after_arrival) : 0.0;
  return {Code::kDeadline,
          "the deadline of " + text_of(seconds) + " has passed " + while_what + ": allow more time, or ask for less",
          deadline ? deadline->name : ""};
}

Result<Done> check_deadline(const GenerationRequest& request, const requests::SloHints& slo_hints,
                            std::span<const flow::Request> sequences, std::span<const PromptRun> prompts,
                            const Services& services, TimePoint now) {
  const std::optional<Deadline> deadline = deadline_of(request, slo_hints);
  if (!deadline && !slo_hints.sheddable) return Done{};
  const double passed_s = seconds_of(now - sequences.front().arrival);
  const double left_s =
      deadline ? seconds_of(deadline->after_arrival) - passed_s : std::numeric_limits<double>::infinity();
  if (left_s <= 0.0) return too_late(request, slo_hints, "while the request was read");
  const Load load = load_of(services);
  const bridge::Rates rates = services.queue.load_estimate().rates();
  const bridge::Outlook outlook = outlook_of(request, sequences, prompts, load, rates, services);
  if (outlook.last_token_s > left_s) {
    return refusal(deadline->name, "the answer is expected after about " + text_of(passed_s + outlook.last_token_s),
                   "deadline_cannot_be_met", outlook.last_token_s - left_s);
  }
  if (!slo_hints.sheddable) return Done{};
  return check_hopes(slo_hints, load, sequences.size(), outlook, rates, passed_s, services.queue.retry_after_s());
}

}  // namespace quire::api
