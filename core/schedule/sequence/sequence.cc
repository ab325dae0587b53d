#include "core/schedule/sequence/sequence.h"

#include <new>
#include <utility>

#include "core/base/check.h"
#include "core/base/kv_constants.h"

namespace quire::schedule {

Sequence::Sequence(SeqId id, flow::Request request, kv::BlockPool& pool)
    : id_(id),
      request_(std::make_shared<const flow::Request>(std::move(request))),
      tokens_(request_->prompt),
      table(pool),
      prefix(shared_namespace(), /*may_publish=*/true, tokens_, table),
      rules(*request_, tokens_),
      retention(request_->kv_policy),
      queue(id, id) {}

Sequence::Sequence(SeqId id, const Sequence& parent, kv::BlockPool& pool)
    : id_(id),
      request_(parent.request_),
      tokens_(parent.tokens_),
      table(pool),
      prefix(shared_namespace(), /*may_publish=*/false, tokens_, table),
      rules(*request_, tokens_),
      retention(request_->kv_policy),
      queue(id, parent.queue.arrival) {
  queue.started = parent.queue.started;
  queue.charged_tokens = parent.num_tokens();
  if (parent.state != State::kRunning) return;  // the parent has no blocks to share
  progress.commit(parent.progress.computed());
  prefix.note_finite(parent.prefix.num_finite());
  queue.has_output = parent.queue.has_output;
  retention.share(parent.retention);
  table.share(parent.table, progress.computed());
}

std::optional<CacheNamespace> Sequence::shared_namespace() const {
  return lossy() ? std::nullopt : request_->cache_namespace;
}

bool Sequence::reserve_memory() try {
  const std::size_t longest = request_->prompt.size() + request_->max_tokens;
  tokens_.reserve(longest);
  table.reserve(static_cast<std::uint32_t>(longest) + sample::TokenTree::kMaxNodes);
  rules.reserve();
  return true;
} catch (const std::bad_alloc&) {
  release_memory();
  return false;
}

void Sequence::release_memory() {
  rules.release();
  tokens_.shrink_to_fit();
  table.shrink_memory();
}

bool Sequence::can_look_ahead() const {
  if (progress.num_in_flight() == 0) return true;
  if (lossy() || request_->embeds() || !scored() || num_pending_ > 0) return false;
  if (progress.num_awaited() == 0) return true;
  if (rules.any() || request_->beam) return false;
  return num_generated() + progress.num_awaited() < request_->max_tokens;
}

flow::Finish Sequence::append(TokenId token) {
  tokens_.push_back(token);
  return rules.note_token();
}

void Sequence::append_pending(TokenId token) {
  CHECK(append(token) == flow::Finish::kNone);
  ++num_pending_;
}

void Sequence::adopt_prefix(kv::PrefixIndex& index) { progress.commit(prefix.adopt(index, adoptable())); }

void Sequence::forget_partial_block(kv::PrefixIndex& index) {
  const std::uint32_t part = progress.computed() % table.block_tokens();
  if (part == 0) return;
  const std::uint32_t whole = progress.computed() - part;
  bool goes_on = true;
  for (std::uint32_t group = 0; group < table.num_groups(); ++group) {
    const std::uint32_t needed = table.groups()[group].first_needed(whole);
    goes_on = goes_on && (needed == whole || table.block(group, needed / table.block_tokens()) != kNoBlock);
  }
  if (goes_on) {
    table.give_back_last_row();
    progress.rewind(whole);
    prefix.rewind(whole);
  } else {
    release_blocks();
    progress.commit(prefix.adopt(index, adoptable().first(whole)));
  }
}

void Sequence::forget_residual_group() {
  progress.rewind(progress.computed() - progress.computed() % kGroupTokens);
  prefix.rewind(progress.computed());
}

void Sequence::release_blocks() {
  prefix.forget_blocks();
  table.give_back_all();
  progress.rewind(0);
  queue.has_output = false;
  retention.clear();
}

void Sequence::release_swapped_blocks() {
  prefix.forget_swapped_blocks();
  table.give_back_all();
}

}  // namespace quire::schedule
