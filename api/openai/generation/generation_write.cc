// Generation: what is written of what the engine said.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/openai/errors.h"
#include "api/openai/generation/generation.h"

namespace quire::api::openai {

// For the last event, or the whole answer.
void Generation::note_timings() {
  const Usage used = usage();
  facts_.timings.clear();
  tracked_.append_timings(facts_.timings, {used.prompt_tokens, used.cached_tokens.value_or(0), used.completion_tokens});
}

bool Generation::has_news(std::size_t i) const {
  const Choice& choice = choices_[i];
  const bool ends = choice.finish_reason() != nullptr && !told_[i].end;
  const bool awaits_scores = request().scores_prompt() && prompt_of(i).scores == nullptr;
  return !awaits_scores && (ends || !choice.text().empty() || !choice.tokens().tokens.empty());
}

// Of the events that come next, in units of a turn.
std::size_t Generation::size_of_news() const {
  std::size_t size = 0;
  for (std::size_t i = 0; i < choices_.size() && request().stream && !failure_; ++i) {
    if (!has_news(i)) continue;
    const Choice& choice = choices_[i];
    size += kEventSize + choice.text().size() / kBytesPerUnit + choice.tokens().tokens.size() * token_size();
    if (!told_[i].any) size += size_of(prompt_of(i));
    if (choice.finish_reason() != nullptr) size += form_->num_told_again() * choice.num_tokens() * token_size();
  }
  return size;
}

// Of what an answer says of it, once.
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
  while (after_last > 0 && !has_news(after_last - 1)) --after_last;
  for (std::size_t i = 0; i < after_last; ++i) {
    if (!has_news(i)) continue;
    if (finished_ && i + 1 == after_last && !request().include_usage) note_timings();
    Writing piece = form_->write_piece(part_, facts_, piece_of(i, i));  // a stream answers every choice: best_of is n
    co_await piece;
    choices_[i].drop_told();
    told_[i] = {true, choices_[i].finish_reason() != nullptr};
  }
  if (!finished_) co_return;
  ended_ = true;
  if (failure_) {
    form_->append_error(part_, facts_, *failure_);
  } else {
    note_timings();
    form_->append_end(part_, facts_, usage());
  }
}

http::Response Generation::whole() {
  if (failure_) return error_response(*failure_, form_->error_shape());
  note_timings();
  writing_ = write_answer();
  http::Response response;
  response.body = next_part();
  return response;
}

Writing Generation::write_answer() {
  std::vector<Piece> pieces;
  for (const std::size_t i : answered()) pieces.push_back(piece_of(i, pieces.size()));
  Writing all = form_->write_whole(part_, facts_, pieces, usage());
  co_await all;
  for (PromptRun& prompt : prompts_) {
    prompt.scores = nullptr;
    prompt.embedding = nullptr;
  }
  for (Choice& choice : choices_) choice.drop_all();  // here: it may be much, and an io thread has others to serve
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

Piece Generation::piece_of(std::size_t choice, std::size_t index) const {
  const Choice& one = choices_[choice];
  return {.index = index,
          .prompt_index = choice / choices_per_prompt(),
          .first = !told_[choice].any,
          .text = one.text(),
          .tokens = one.tokens(),
          .finish_reason = one.finish_reason(),
          .stop_reason = one.stop_reason(),
          .prompt = prompt_of(choice),
          .num_tokens = one.num_tokens(),
          .cached_tokens = one.cached_tokens()};
}

Usage Generation::usage() const {
  const http::Tally used = tally();
  return {used.prompt_tokens, used.completion_tokens, cached_tokens()};
}

// Of each prompt what its least lucky sequence found: what siblings share with each other is no hit. A search has one
// prefill, and says of it on its first stream.
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

}  // namespace quire::api::openai
