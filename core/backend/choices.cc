#include "core/backend/choices.h"

namespace quire::backend {

void Choices::begin(const Batch& batch) {
  logits_rows_ = batch.logits_rows;
  each_.resize(logits_rows_.size());
  longest_list_ = 0;
  for (const LogitsRow& logits_row : logits_rows_)
    longest_list_ = std::max<std::size_t>(longest_list_, logits_row.params.num_top);
  lists_.resize(logits_rows_.size() * longest_list_);
  walks_.clear();
  for (std::uint32_t r = 0; r < logits_rows_.size(); r += 1 + logits_rows_[r].num_nodes) walks_.push_back(r);
}

sample::JudgedRow Choices::judged_row(std::uint32_t r, const LogitRow& row) {
  const LogitsRow& logits_row = logits_rows_[r];
  return {row.logits, row.highest, logits_row.position, logits_row.edits,
          std::span(lists_).subspan(r * longest_list_, logits_row.params.num_top)};
}

Choices::Guesses Choices::guesses_below(const LogitsRow& root, int at) {
  Guesses guesses;
  if (!sample::accepts_by_law(root.params)) return guesses;
  if (at != sample::TokenTree::kRoot) guesses.depth = root.draft->depth(static_cast<std::uint32_t>(at)) + 1;
  for (auto i = static_cast<std::uint32_t>(at + 1); i < root.num_nodes; ++i) {
    if (root.draft->parent(i) == at) guesses.each[guesses.count++] = {root.draft->token(i), root.draft->law(i)};
  }
  return guesses;
}

Choice Choices::choice_of(const LogitsRow& logits_row, const sample::JudgedRow& row, const Guesses& guesses,
                          sample::Scratch& scratch) {
  const sample::Params& params = logits_row.params;
  if (logits_row.given >= 0) {
    return told(sample::score(row.logits, row.highest, logits_row.given, params.num_top, scratch, row.room));
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
