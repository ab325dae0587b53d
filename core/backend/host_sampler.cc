#include "core/backend/host_sampler.h"

namespace quire::backend {

void HostSampler::begin(const Batch& batch) {
  logits_rows_ = batch.logits_rows;
  each_.resize(logits_rows_.size());
  longest_list_ = 0;
  for (const LogitsRow& logits_row : logits_rows_)
    longest_list_ = std::max<std::size_t>(longest_list_, logits_row.params.num_top);
  lists_.resize(logits_rows_.size() * longest_list_);
  verifications_.clear();
  for (std::uint32_t r = 0; r < logits_rows_.size(); r += 1 + logits_rows_[r].num_nodes) verifications_.push_back(r);
}

sample::VerifiedRow HostSampler::verified_row(std::uint32_t r, const LogitRow& row) {
  const LogitsRow& logits_row = logits_rows_[r];
  return {row.logits, row.highest, logits_row.position, logits_row.edits,
          std::span(lists_).subspan(r * longest_list_, logits_row.params.num_top)};
}

HostSampler::DraftTokens HostSampler::draft_tokens_below(const LogitsRow& root, int at) {
  DraftTokens draft_tokens;
  if (!sample::accepts_by_rejection(root.params)) return draft_tokens;
  if (at != sample::TokenTree::kRoot) draft_tokens.depth = root.draft->depth(static_cast<std::uint32_t>(at)) + 1;
  for (auto i = static_cast<std::uint32_t>(at + 1); i < root.num_nodes; ++i) {
    if (root.draft->parent(i) == at)
      draft_tokens.each[draft_tokens.count++] = {root.draft->token(i), root.draft->distribution(i)};
  }
  return draft_tokens;
}

Choice HostSampler::choice_of(const LogitsRow& logits_row, const sample::VerifiedRow& row,
                              const DraftTokens& draft_tokens, sample::Scratch& scratch) {
  const sample::Params& params = logits_row.params;
  if (logits_row.given >= 0) {
    return choice_of_drawn(sample::score(row.logits, row.highest, logits_row.given, params.num_top, scratch, row.room));
  }
  if (!sample::accepts_by_rejection(params)) {
    return choice_of_drawn(sample::draw(row.logits, row.highest, params, row.position, scratch, row.room, row.edits));
  }
  return choice_of_drawn(sample::accept_or_resample(row, std::span(draft_tokens.each).first(draft_tokens.count),
                                                    draft_tokens.depth, params, scratch));
}

Choice HostSampler::choice_of_drawn(const sample::SampledToken& drawn) {
  return {drawn.token, drawn.finite, drawn.logprob, drawn.top, drawn.rank};
}

}  // namespace quire::backend
