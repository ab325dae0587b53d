#include "core/backend/choices.h"

namespace quire::backend {

void Choices::begin(const Batch& batch) {
  speakers_ = batch.speakers;
  each_.resize(speakers_.size());
  longest_list_ = 0;
  for (const Speaker& speaker : speakers_) longest_list_ = std::max<std::size_t>(longest_list_, speaker.params.num_top);
  lists_.resize(speakers_.size() * longest_list_);
  walks_.clear();
  for (std::uint32_t r = 0; r < speakers_.size(); r += 1 + speakers_[r].num_nodes) walks_.push_back(r);
}

sample::JudgedRow Choices::judged_row(std::uint32_t r, const LogitRow& row) {
  const Speaker& speaker = speakers_[r];
  return {row.logits, row.highest, speaker.position, speaker.edits,
          std::span(lists_).subspan(r * longest_list_, speaker.params.num_top)};
}

Choices::Guesses Choices::guesses_below(const Speaker& root, int at) {
  Guesses guesses;
  if (!sample::accepts_by_law(root.params)) return guesses;
  if (at != sample::TokenTree::kRoot) guesses.depth = root.draft->depth(static_cast<std::uint32_t>(at)) + 1;
  for (auto i = static_cast<std::uint32_t>(at + 1); i < root.num_nodes; ++i) {
    if (root.draft->parent(i) == at) guesses.each[guesses.count++] = {root.draft->token(i), root.draft->law(i)};
  }
  return guesses;
}

Choice Choices::choice_of(const Speaker& speaker, const sample::JudgedRow& row, const Guesses& guesses,
                          sample::Scratch& scratch) {
  const sample::Params& params = speaker.params;
  if (speaker.given >= 0) {
    return told(sample::score(row.logits, row.highest, speaker.given, params.num_top, scratch, row.room));
  }
  if (!sample::accepts_by_law(params)) {
    return told(sample::draw(row.logits, row.highest, params, row.position, scratch, row.room, row.edits));
  }
  return told(sample::judge(row, std::span(guesses.each).first(guesses.count), guesses.depth, params, scratch));
}

Choice Choices::told(const sample::Drawn& drawn) {
  return {drawn.token, drawn.finite, drawn.logprob, drawn.top, drawn.rank};
}

}  // namespace quire::backend
