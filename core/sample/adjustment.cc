#include "core/sample/adjustment.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace quire::sample {

Adjustment::Adjustment(std::shared_ptr<const Rules> rules, std::span<const TokenId> prompt, std::vector<TokenId> ends,
                       std::uint32_t max_tokens, std::span<const TokenId> answer)
    : rules_(std::move(rules)),
      ends_(std::move(ends)),
      penalises_(rules_->repetition_penalty != 1.0f || rules_->frequency_penalty != 0.0f ||
                 rules_->presence_penalty != 0.0f) {
  const bool sees_prompt = rules_->repetition_penalty != 1.0f;
  const std::size_t most =
      rules_->bias.size() + (sees_prompt ? prompt.size() : 0) + (penalises_ ? std::size_t{max_tokens} : 0);
  places_.resize(std::bit_ceil(2 * most + 1));
  for (const Bias& bias : rules_->bias) edit_of(bias.token).bias = bias.add;
  if (sees_prompt) {
    for (const TokenId token : prompt) edit_of(token).seen = true;
  }
  each_.reserve(each_.size() + (penalises_ ? max_tokens : 0));
  if (!rules_->allowed.empty()) allowed_.resize(static_cast<std::size_t>(rules_->allowed.back()) / 32 + 1);
  for (const TokenId token : rules_->allowed) allowed_[static_cast<std::size_t>(token) / 32] |= 1u << token % 32;
  forbidden_.reserve(rules_->bad_words.size() + ends_.size());
  for (const TokenId token : answer) count(token);
  forbid(answer);
}

void Adjustment::append(std::span<const TokenId> answer) {
  count(answer.back());
  forbid(answer);
}

void Adjustment::count(TokenId token) {
  if (!penalises_) return;
  Edit& edit = edit_of(token);
  ++edit.times;
  edit.seen = true;
}

Edits Adjustment::edits() const {
  return {.repetition = rules_->repetition_penalty,
          .frequency = rules_->frequency_penalty,
          .presence = rules_->presence_penalty,
          .each = each_,
          .forbidden = forbidden_,
          .allowed = allowed_};
}

Edit& Adjustment::edit_of(TokenId token) {
  const std::size_t mask = places_.size() - 1;
  std::size_t at = static_cast<std::uint32_t>(token) * 0x9e3779b1u & mask;
  for (; places_[at] != 0; at = (at + 1) & mask) {
    if (each_[places_[at] - 1].token == token) return each_[places_[at] - 1];
  }
  each_.push_back({.token = token});
  places_[at] = static_cast<std::uint32_t>(each_.size());
  return each_.back();
}

// Lists the tokens that would complete a bad word, and those that would end the answer before min_tokens.
void Adjustment::forbid(std::span<const TokenId> answer) {
  forbidden_.clear();
  for (const std::vector<TokenId>& word : rules_->bad_words) {
    const std::span<const TokenId> begun = std::span(word).first(word.size() - 1);
    if (begun.size() > answer.size() || !std::ranges::equal(begun, answer.last(begun.size()))) continue;
    forbidden_.push_back(word.back());
  }
  if (answer.size() < rules_->min_tokens) forbidden_.insert(forbidden_.end(), ends_.begin(), ends_.end());
}

}  // namespace quire::sample
