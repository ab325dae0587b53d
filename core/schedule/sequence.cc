#include "core/schedule/sequence.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "core/base/check.h"

namespace quire::schedule {
namespace {

// A grammar's mask to what rules allow as well; none: all.
void narrow(std::span<std::uint32_t> mask, std::span<const std::uint32_t> allowed) {
  for (std::size_t word = 0; word < mask.size() && !allowed.empty(); ++word) {
    mask[word] &= word < allowed.size() ? allowed[word] : 0;
  }
}

}  // namespace

Sequence::Sequence(SeqId id, flow::Request request, kv::BlockPool& pool)
    : table(pool),
      id_(id),
      arrival_(id),
      request_(std::make_shared<const flow::Request>(std::move(request))),
      tokens_(request_->prompt),
      may_publish_(request_->cache_root.has_value() && !lossy()),
      publishes_(may_publish_) {
  if (request_->grammar) matcher_.emplace(request_->grammar);
}

Sequence::Sequence(SeqId id, const Sequence& parent, kv::BlockPool& pool)
    : table(pool),
      started(parent.started),
      charged_tokens(parent.num_tokens()),
      id_(id),
      arrival_(parent.arrival_),
      request_(parent.request_),
      tokens_(parent.tokens_),
      may_publish_(false),
      publishes_(false) {
  if (parent.state != State::kRunning) return;  // it holds nothing to share
  computed_ = parent.computed_;
  sound_ = parent.sound_;
  heard_ = parent.heard_;
  kept_groups_ = parent.kept_groups_;
  accumulated_scores_ = parent.accumulated_scores_;
  table.share(parent.table, computed_);
}

bool Sequence::take_room() try {
  const std::size_t longest = request_->prompt.size() + request_->max_tokens;
  tokens_.reserve(longest);
  table.reserve(static_cast<std::uint32_t>(longest) + sample::TokenTree::kMaxNodes);
  if (request_->rules && !adjustment_) {
    std::vector<TokenId> ends = request_->stop_tokens;
    if (request_->grammar) {
      const auto more = request_->grammar->vocabulary().ends();
      ends.insert(ends.end(), more.begin(), more.end());
    }
    adjustment_.emplace(request_->rules, request_->prompt, std::move(ends), request_->max_tokens, answer());
  }
  if (matcher_) mask_.resize(request_->grammar->vocabulary().mask_words());
  return true;
} catch (const std::bad_alloc&) {
  give_room_back();
  return false;
}

void Sequence::give_room_back() {
  adjustment_.reset();
  mask_ = {};
  mask_found_ = false;
  node_rules_.clear();
  node_edits_.clear();
  tokens_.shrink_to_fit();
  table.forget_room();
}

bool Sequence::can_look_ahead() const {
  if (num_in_flight_ == 0) return true;
  if (lossy() || embeds() || !scored() || num_pending_ > 0) return false;
  if (num_awaited_ == 0) return true;
  if (adjustment_ || matcher_ || request_->beam) return false;
  return num_generated() + num_awaited_ < request_->max_tokens;
}

flow::Finish Sequence::append(TokenId token) {
  tokens_.push_back(token);
  mask_found_ = false;
  if (adjustment_) adjustment_->append(answer());
  if (matcher_) CHECK(matcher_->accept(token));  // it was allowed, or it would not have been drawn
  if (ends_with(token)) return flow::Finish::kStop;
  if (matcher_ && matcher_->only_ends()) return flow::Finish::kComplete;
  return num_generated() >= request_->max_tokens ? flow::Finish::kLength : flow::Finish::kNone;
}

bool Sequence::ends_with(TokenId token) const {
  if (std::ranges::count(request_->stop_tokens, token) != 0) return true;
  return request_->grammar && std::ranges::count(request_->grammar->vocabulary().ends(), token) != 0;
}

sample::Edits Sequence::edits() {
  sample::Edits edits;
  if (adjustment_) edits = adjustment_->edits();
  if (!matcher_) return edits;
  find_mask();
  mask_found_ = edits.allowed.empty();
  narrow(mask_, edits.allowed);
  edits.allowed = mask_;
  return edits;
}

bool Sequence::forbids_all(std::uint32_t vocab) {
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

std::span<const sample::Edits> Sequence::node_edits(std::uint32_t num_nodes) {
  if (!adjustment_ && !matcher_) return {};
  node_rules_.clear();
  node_rules_.reserve(num_nodes);
  node_edits_.assign(num_nodes, {});
  for (std::uint32_t i = 0; i < num_nodes; ++i) {
    const int parent = draft.parent(i);
    DraftRules& rules = node_rules_.emplace_back();
    if (parent == sample::TokenTree::kRoot) {
      rules.answer.assign(answer().begin(), answer().end());
      if (adjustment_) rules.adjustment.emplace(*adjustment_);
      if (matcher_) rules.matcher.emplace(*matcher_);
    } else {
      const DraftRules& before = node_rules_[static_cast<std::size_t>(parent)];
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

void Sequence::find_mask() {
  if (!mask_found_) matcher_->allowed(mask_);
  mask_found_ = true;
}

TokenId Sequence::forced() {
  if (!matcher_ || adjustment_ || lossy() || num_generated() + 1 >= request_->max_tokens) return -1;
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

void Sequence::append_pending(TokenId token) {
  CHECK(append(token) == flow::Finish::kNone);
  ++num_pending_;
}

void Sequence::adopt_prefix(kv::PrefixIndex& index) {
  CHECK(table.blocks().empty());
  if (!request_->cache_root || lossy()) return;
  for (const kv::PrefixIndex::Hit& hit : index.match(*request_->cache_root, adoptable())) {
    table.adopt(hit.block);
    computed_ += hit.num_tokens;
    if (hit.num_tokens != table.block_tokens()) continue;
    last_entry_ = hit.entry;
    ++num_published_;
  }
  sound_ = computed_;
}

std::uint32_t Sequence::cached_tokens(kv::PrefixIndex& index) const {
  if (!request_->cache_root || lossy()) return 0;
  std::uint32_t cached = 0;
  for (const kv::PrefixIndex::Hit& hit : index.match(*request_->cache_root, adoptable())) {
    cached += hit.num_tokens;
  }
  return cached;
}

void Sequence::forget_partial_block() {
  const std::uint32_t part = computed_ % table.block_tokens();
  if (part == 0) return;
  table.give_back_last();
  computed_ -= part;
  sound_ = std::min(sound_, computed_);
}

void Sequence::forget_open_group() {
  computed_ -= computed_ % kGroupTokens;
  sound_ = std::min(sound_, computed_);
}

void Sequence::publish_prefix(kv::PrefixIndex& index, bool tail) {
  if (!publishes_) return;
  const std::uint32_t block_tokens = table.block_tokens();
  const auto tokens_of = [&](std::uint32_t block) {
    const std::uint32_t first = block * block_tokens;
    return tokens().subspan(first, std::min(block_tokens, sound_ - first));
  };
  for (; (num_published_ + 1) * block_tokens <= sound_; ++num_published_) {
    const BlockId own = table.blocks()[num_published_];
    const auto hit = index.insert(*request_->cache_root, last_entry_, tokens_of(num_published_), own);
    if (hit.block != own) table.replace(num_published_, hit.block);
    last_entry_ = hit.entry;
  }
  if (tail && sound_ % block_tokens != 0) {
    index.insert_tail(*request_->cache_root, last_entry_, tokens_of(num_published_), table.blocks()[num_published_]);
  }
}

void Sequence::forget_computed() {
  table.give_back_all();
  computed_ = 0;
  sound_ = 0;
  heard_ = false;
  num_published_ = 0;
  last_entry_ = kv::PrefixIndex::kRoot;
  kept_groups_.clear();
  accumulated_scores_.clear();
  publishes_ = may_publish_;
}

void Sequence::leave_blocks() {
  // What comes back stands in other blocks, of which the index knows nothing yet.
  num_published_ = 0;
  last_entry_ = kv::PrefixIndex::kRoot;
  publishes_ = publishes_ && std::ranges::count(table.blocks(), kv::kNoBlock) == 0;
  table.give_back_all();
}

void Sequence::drop_behind(std::uint32_t window) {
  // As far as it is sound, and so published: what is dropped can still be found by others. It may have to begin again
  // at the last multiple of 16: forget_open_group().
  const std::uint32_t from = sound_ - sound_ % kGroupTokens;
  if (from < window) return;
  const std::uint32_t lowest_seen = from - window + 1;
  const std::uint32_t num_unseen = lowest_seen / table.block_tokens();
  for (std::uint32_t i = num_unseen; i > 0 && table.blocks()[i - 1] != kv::kNoBlock; --i) table.drop(i - 1);
}

void Sequence::open_span() {
  const std::uint32_t span = computed_ / kSpanTokens;
  retain(request_->kv_policy, span, accumulated_scores_, kept_groups_);
  const std::uint32_t block_tokens = table.block_tokens();
  for (std::uint32_t block = 0; (block + 1) * block_tokens <= span * kSpanTokens; ++block) {
    bool stays = false;
    const std::uint32_t last = ((block + 1) * block_tokens - 1) / kGroupTokens;
    for (std::uint32_t group = block * block_tokens / kGroupTokens; group <= last; ++group) {
      stays = stays || is_kept(kept_groups_, group);
    }
    if (!stays) table.drop(block);
  }
}

void Sequence::add_accumulated_scores(std::span<const std::uint64_t> accumulated_scores) {
  if (accumulated_scores_.size() < accumulated_scores.size()) accumulated_scores_.resize(accumulated_scores.size());
  for (std::size_t group = 0; group < accumulated_scores.size(); ++group)
    accumulated_scores_[group] += accumulated_scores[group];
}

}  // namespace quire::schedule
