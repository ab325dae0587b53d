// Generation, continued: writes events and whole answers.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/generation/generation.h"
#include "api/wire/errors.h"

namespace quire::api {

// Sets facts_.timings, for the last event or the whole answer.
void Generation::note_timings() {
  const Usage used = usage();
  facts_.timings.clear();
  tracked_.append_timings(facts_.timings, {used.prompt_tokens, used.cached_tokens.value_or(0), used.completion_tokens});
}

bool Generation::has_events(std::size_t i) const {
  const Choice& choice = choices_[i];
  const bool ends = choice.finish_reason() != nullptr && !emitted_[i].end;
  const bool awaits_scores = request().scores_prompt() && prompt_of(i).scores == nullptr;
  return !awaits_scores && (ends || !choice.text().empty() || !choice.tokens().tokens.empty());
}

// Size of the next events, in the units of http::kSliceSize.
std::size_t Generation::size_of_events() const {
  std::size_t size = 0;
  for (std::size_t i = 0; i < choices_.size() && request().stream && !failure_; ++i) {
    if (!has_events(i)) continue;
    const Choice& choice = choices_[i];
    size += kEventSize + choice.text().size() / kBytesPerUnit + choice.tokens().tokens.size() * token_size();
    if (!emitted_[i].any) size += size_of(prompt_of(i));
    if (choice.finish_reason() != nullptr) size += formatter_->num_repeats() * choice.num_tokens() * token_size();
  }
  return size;
}

// Size of a prompt where an answer contains it once.
std::size_t Generation::size_of(const PromptRun& prompt) const {
  std::size_t size = request().keeps_prompt() ? prompt.num_tokens : 0;
  if (prompt.scores != nullptr) size += prompt.scores->logprobs.size() + prompt.scores->top.size();
  return size;
}

std::string Generation::next_part() {
  writing_.resume();
  return std::exchange(part_, {});
}

std::string Generation::more() { return next_part(); }

Writing Generation::write_events() {
  if (ended_) co_return;
  std::size_t after_last = failure_ ? 0 : choices_.size();
  while (after_last > 0 && !has_events(after_last - 1)) --after_last;
  for (std::size_t i = 0; i < after_last; ++i) {
    if (!has_events(i)) continue;
    if (finished_ && i + 1 == after_last && !request().include_usage) note_timings();
    // A stream answers every choice, since best_of is n: `i` is also the index in the answer.
    Writing delta = formatter_->write_delta(part_, facts_, delta_of(i, i));
    co_await delta;
    choices_[i].drop_emitted();
    emitted_[i] = {true, choices_[i].finish_reason() != nullptr};
  }
  if (!finished_) co_return;
  ended_ = true;
  if (failure_) {
    formatter_->append_error(part_, facts_, *failure_);
  } else {
    note_timings();
    formatter_->append_end(part_, facts_, usage());
  }
}

http::Response Generation::whole() {
  if (failure_) return error_response(*failure_, formatter_->error_shape());
  note_timings();
  writing_ = write_answer();
  http::Response response;
  response.body = next_part();
  return response;
}

Writing Generation::write_answer() {
  std::vector<ChoiceDelta> choice_deltas;
  for (const std::size_t i : answered()) choice_deltas.push_back(delta_of(i, choice_deltas.size()));
  Writing all = formatter_->write_whole(part_, facts_, choice_deltas, usage());
  co_await all;
  for (PromptRun& prompt : prompts_) {
    prompt.scores = nullptr;
    prompt.embedding = nullptr;
  }
  for (Choice& choice : choices_) choice.drop_all();  // on the worker that wrote a long answer
}

std::size_t Generation::whole_size() const {
  std::size_t size = 0;
  for (const Choice& choice : choices_) size += choice.num_tokens() * token_size();
  for (const PromptRun& prompt : prompts_) {
    size += request().n * size_of(prompt);
    if (prompt.embedding != nullptr) size += prompt.embedding->sums.size();
  }
  return size;
}

ChoiceDelta Generation::delta_of(std::size_t choice, std::size_t index) const {
  const Choice& one = choices_[choice];
  return {.index = index,
          .prompt_index = choice / choices_per_prompt(),
          .first = !emitted_[choice].any,
          .text = one.text(),
          .tokens = one.tokens(),
          .finish_reason = one.finish_reason(),
          .stop_reason = one.stop_reason(),
          .prompt = prompt_of(choice),
          .num_tokens = one.num_tokens(),
          .cached_tokens = one.cached_tokens()};
}

Usage Generation::usage() const {
  const Tally used = tally();
  return {used.prompt_tokens, used.completion_tokens, cached_tokens()};
}

// Sums for each prompt the fewest cached tokens of its sequences: blocks that they share only with each other are no
// hit. A beam search has one prefill, which its first stream reports.
std::uint64_t Generation::cached_tokens() const {
  std::uint64_t sum = 0;
  for (std::size_t first = 0; first < choices_.size(); first += choices_per_prompt()) {
    std::uint32_t least = choices_[first].cached_tokens();
    for (std::size_t i = 1; i < choices_per_prompt() && !request().use_beam_search; ++i) {
      least = std::min(least, choices_[first + i].cached_tokens());
    }
    sum += least;
  }
  return sum;
}

}  // namespace quire::api
