#include "core/schedule/sequence/sequence_rules.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/check.h"

namespace quire::schedule {
namespace {

// Clears in a grammar's mask the tokens that rules do not allow. Empty `allowed`: rules allow all.
void narrow(std::span<std::uint32_t> mask, std::span<const std::uint32_t> allowed) {
  for (std::size_t word = 0; word < mask.size() && !allowed.empty(); ++word) {
    mask[word] &= word < allowed.size() ? allowed[word] : 0;
  }
}

}  // namespace

SequenceRules::SequenceRules(const flow::Request& request, const std::vector<TokenId>& tokens)
    : request_(request), tokens_(tokens) {
  if (request_.grammar) matcher_.emplace(request_.grammar);
}

void SequenceRules::reserve() {
  if (request_.rules && !adjustment_) {
    std::vector<TokenId> ends = request_.stop_tokens;
    if (request_.grammar) {
      const auto more = request_.grammar->vocabulary().ends();
      ends.insert(ends.end(), more.begin(), more.end());
    }
    adjustment_.emplace(request_.rules, request_.prompt, std::move(ends), request_.max_tokens, answer());
  }
  if (matcher_) mask_.resize(request_.grammar->vocabulary().mask_words());
}

void SequenceRules::release() {
  adjustment_.reset();
  mask_ = {};
  mask_found_ = false;
  node_rules_.clear();
  node_edits_.clear();
}

sample::Edits SequenceRules::edits() {
  sample::Edits edits;
  if (adjustment_) edits = adjustment_->edits();
  if (!matcher_) return edits;
  find_mask();
  mask_found_ = edits.allowed.empty();
  narrow(mask_, edits.allowed);
  edits.allowed = mask_;
  return edits;
}

bool SequenceRules::forbids_all(std::uint32_t vocab) {
  const sample::Edits now = edits();
  if (now.allowed.empty() && now.forbidden.size() < vocab) return false;
  const auto sayable = [&now](std::uint32_t token) {
    const std::size_t word = token / 32;
    const bool allowed =
        now.allowed.empty() || (word < now.allowed.size() && (now.allowed[word] >> token % 32 & 1) != 0);
    return allowed && std::ranges::count(now.forbidden, static_cast<TokenId>(token)) == 0;
  };
  for (std::uint32_t token = 0; token < vocab; ++token) {
    if (sayable(token)) return false;
  }
  return true;
}

std::span<const sample::Edits> SequenceRules::node_edits(const sample::TokenTree& draft, std::uint32_t num_nodes) {
  if (!adjustment_ && !matcher_) return {};
  node_rules_.clear();
  node_rules_.reserve(num_nodes);
  node_edits_.assign(num_nodes, {});
  for (std::uint32_t i = 0; i < num_nodes; ++i) {
    const int parent = draft.parent(i);
    NodeRules& rules = node_rules_.emplace_back();
    if (parent == sample::TokenTree::kRoot) {
      rules.answer.assign(answer().begin(), answer().end());
      if (adjustment_) rules.adjustment.emplace(*adjustment_);
      if (matcher_) rules.matcher.emplace(*matcher_);
    } else {
      const NodeRules& before = node_rules_[static_cast<std::size_t>(parent)];
      rules.allowed = before.allowed;
      if (!rules.allowed) continue;
      rules.answer = before.answer;
      if (before.adjustment) rules.adjustment.emplace(*before.adjustment);
      if (before.matcher) rules.matcher.emplace(*before.matcher);
    }
    const TokenId token = draft.token(i);
    rules.answer.push_back(token);
    rules.allowed =
        !ends_with(token) && (!rules.matcher || (rules.matcher->accept(token) && !rules.matcher->only_ends()));
    if (!rules.allowed) continue;
    if (rules.adjustment) {
      rules.adjustment->append(rules.answer);
      node_edits_[i] = rules.adjustment->edits();
    }
    if (!rules.matcher) continue;
    rules.mask.resize(mask_.size());
    rules.matcher->allowed(rules.mask);
    narrow(rules.mask, node_edits_[i].allowed);
    node_edits_[i].allowed = rules.mask;
  }
  return node_edits_;
}

TokenId SequenceRules::forced() {
  if (!matcher_ || adjustment_ || request_.kv_policy.lossy() || answer().size() + 1 >= request_.max_tokens) return -1;
  find_mask();
  TokenId only = -1;
  for (std::size_t word = 0; word < mask_.size(); ++word) {
    if (mask_[word] == 0) continue;
    if (only >= 0 || !std::has_single_bit(mask_[word])) return -1;
    only = static_cast<TokenId>(32 * word) + std::countr_zero(mask_[word]);
  }
  if (only < 0 || ends_with(only)) return -1;
  grammar::Matcher next(*matcher_);
  return next.accept(only) && !next.only_ends() ? only : -1;
}

flow::Finish SequenceRules::note_token() {
  const TokenId token = tokens_.back();
  mask_found_ = false;
  if (adjustment_) adjustment_->append(answer());
  if (matcher_) CHECK(matcher_->accept(token));  // the sampler draws only tokens that the mask allows
  if (ends_with(token)) return flow::Finish::kStop;
  if (matcher_ && matcher_->only_ends()) return flow::Finish::kComplete;
  return answer().size() >= request_.max_tokens ? flow::Finish::kLength : flow::Finish::kNone;
}

bool SequenceRules::ends_with(TokenId token) const {
  if (std::ranges::count(request_.stop_tokens, token) != 0) return true;
  return request_.grammar && std::ranges::count(request_.grammar->vocabulary().ends(), token) != 0;
}

void SequenceRules::find_mask() {
  if (!mask_found_) matcher_->allowed(mask_);
  mask_found_ = true;
}

}  // namespace quire::schedule
