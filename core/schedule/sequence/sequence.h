// One generation inside the engine: its tokens so far, how many of them have K and V, and the blocks that hold these.
// Its parts are public members with cards of their own: the rows' progress, the prefix cursor, the sampling rules,
// the retention of a lossy policy and the queue entry.
// Shape   tokens() = the prompt, then the generated tokens. At most as many rows are computed; the next steps run the
//         difference: many tokens during prefill or recomputation, one during decoding.
// Owner   the engine; the scheduler borrows it from add() to remove(). It never moves: its parts refer to it.
// Thread  engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/flow/request.h"
#include "core/flow/token_event.h"
#include "core/kv/block_table.h"
#include "core/kv/prefix_index.h"
#include "core/sample/token_tree.h"
#include "core/schedule/sequence/prefix_cursor.h"
#include "core/schedule/sequence/queue_entry.h"
#include "core/schedule/sequence/retention.h"
#include "core/schedule/sequence/row_progress.h"
#include "core/schedule/sequence/sequence_rules.h"

namespace quire::schedule {

enum class State : std::uint8_t { kWaiting, kRunning, kDone };

class Sequence {
 public:
  Sequence(SeqId id, flow::Request request, kv::BlockPool& pool);
  // A fork of `parent`: the same tokens and, if the parent is running, the same blocks with one more holder each. A
  // fork publishes nothing to the prefix index. Only beam search forks; it has neither rules nor a grammar.
  Sequence(SeqId id, const Sequence& parent, kv::BlockPool& pool) REQUIRES(engine_role);

  SeqId id() const { return id_; }
  const flow::Request& request() const { return *request_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  std::uint32_t num_tokens() const { return static_cast<std::uint32_t>(tokens_.size()); }
  std::uint32_t num_generated() const { return num_tokens() - static_cast<std::uint32_t>(request_->prompt.size()); }
  // Number of rows to plan until all its tokens, awaited ones included, have K and V.
  std::uint32_t remaining() const { return num_tokens() + progress.num_awaited() - progress.next_position(); }
  // True if this sequence may be scheduled while an earlier step is still running: it has no rows in that step, or all
  // it waits for is its next token id (no grammar, penalties, scoring or pooling).
  bool can_look_ahead() const;
  // True if the step being planned may have rows of it.
  bool ready() const { return !paused && !leaving && can_look_ahead(); }
  // Number of rows to run before the first one whose result is wanted: logits, or hidden states if it embeds. The
  // results of that row and of all later rows are wanted.
  std::uint32_t rows_before_wanted() const { return first_wanted() - progress.next_position(); }
  // Number of logits rows among its next `rows` rows.
  std::uint32_t num_logits_rows(std::uint32_t rows) const { return request_->embeds() ? 0 : num_wanted(rows); }
  // Number of rows among its next `rows` rows whose hidden states are wanted.
  std::uint32_t num_pooled(std::uint32_t rows) const { return request_->embeds() ? num_wanted(rows) : 0; }
  // True if the last of its next `rows` rows samples a token.
  bool samples(std::uint32_t rows) const { return rows == remaining() && !request_->embeds(); }
  // True if all prompt scores that its request asks for are emitted.
  bool scored() const { return !request_->scores_prompt || progress.num_scored() + 1 >= request_->prompt.size(); }
  bool decoding() const { return remaining() <= 1 + num_pending_ && num_generated() + progress.num_awaited() > 0; }
  bool lossy() const { return request_->kv_policy.lossy(); }
  // Reserves host memory for the longest answer that its request allows, so that a running sequence allocates none. A
  // waiting sequence has memory for its prompt and its answer so far. False: out of memory, and nothing is reserved.
  bool reserve_memory() REQUIRES(engine_role);
  void release_memory() REQUIRES(engine_role);

  // ---- results of its rows
  // The result of its last committed row is finite, and so are K and V of all rows before it: a row that is not finite
  // spoils every later row that reads it.
  void note_output() REQUIRES(engine_role) {
    queue.has_output = true;
    prefix.note_finite(progress.computed());
  }
  // Appends the token that was sampled after the last one. Returns why that ends the sequence, or kNone.
  flow::Finish append(TokenId token) REQUIRES(engine_role);
  // Appends a token of SequenceRules::forced() before the row that would have sampled it has run; the token is pending.
  // That row is still a logits row, as in a scored prompt: the token is emitted once that row's score has come back and
  // is finite.
  void append_pending(TokenId token) REQUIRES(engine_role);
  std::uint32_t num_pending() const { return num_pending_; }
  // The row before the oldest pending token is finite: the token is no longer pending. Returns it, for the caller to
  // emit. There must be one.
  TokenId take_pending() REQUIRES(engine_role) { return tokens_[num_tokens() - num_pending_--]; }

  // ---- its draft
  // True if the coming step may verify a draft: the sequence decodes, has one row left to run (so no token is pending),
  // and has neither a lossy KV policy nor beam search.
  bool may_draft() const { return remaining() == 1 && decoding() && !lossy() && !request_->beam; }
  // Largest depth of its draft: the token sampled at the deepest node is still within max_tokens.
  std::uint32_t max_draft_depth() const {
    return request_->max_tokens - std::min(request_->max_tokens, num_generated() + 1);
  }

  // ---- its blocks
  // Starts with the blocks of the index that hold its first tokens, if any. Its last token is left to run, and every
  // row that is still to be scored or pooled. Only while its table is empty.
  void adopt_prefix(kv::PrefixIndex& index) REQUIRES(engine_role);
  // The tokens that it may take from the prefix cache.
  std::span<const TokenId> adoptable() const { return tokens().first(first_wanted()); }
  // Gives the blocks of the last row back if the computed rows end inside them: its tokens are to be run again. Where
  // the row before needs other blocks than that one, the sequence starts with fewer tokens of the index.
  void forget_partial_block(kv::PrefixIndex& index) REQUIRES(engine_role);
  // Rewinds its rows to a multiple of 16: the residual group, which had the tokens behind it in full precision
  // (int4), is lost.
  void forget_residual_group() REQUIRES(engine_role);
  // Gives all blocks back to the pool. The generated tokens stay, and are recomputed.
  void release_blocks() REQUIRES(engine_role);
  // Gives all blocks back to the pool after their content was copied to the host. The rows stay computed: the sequence
  // goes on from there once the content is back in its table.
  void release_swapped_blocks() REQUIRES(engine_role);

 private:
  const SeqId id_;
  const std::shared_ptr<const flow::Request> request_;  // shared by forks
  std::vector<TokenId> tokens_;

 public:  // its parts refer to the members above
  kv::BlockTable table;
  RowProgress progress;
  PrefixCursor prefix;
  SequenceRules rules;
  Retention retention;
  QueueEntry queue;
  State state = State::kWaiting;
  // Not planned for now: its client does not read, or its beam search waits for other hypotheses.
  bool paused = false;
  bool leaving = false;              // ended; holds its blocks until no step in flight has a row of it
  std::uint32_t planned_rows = 0;    // rows in the step planned last, without draft nodes
  std::uint32_t choice = 0;          // index of its sampled token among the choices of its last planned step
  sample::TokenTree draft;           // draft tokens for the coming step; empty: none
  std::uint32_t planned_nodes = 0;   // first nodes of `draft` in the step planned last
  std::uint32_t residual_group = 0;  // while running: its own running slot, [0, max_num_seqs)
  // Host blocks with the content of its table, [rows, groups]; kNoHostBlock where the table had no block.
  std::vector<std::uint32_t> swapped;

  static constexpr std::uint32_t kNoHostBlock = ~0u;

 private:
  // The namespace of its blocks in the prefix index; none if it shares no blocks.
  std::optional<CacheNamespace> shared_namespace() const;
  // Position of the first row whose result is still wanted.
  std::uint32_t first_wanted() const {
    const bool all_emitted = request_->pooling != flow::Pooling::kMean && scored();
    return all_emitted ? num_tokens() + progress.num_awaited() - 1 - num_pending_ : progress.num_scored();
  }
  std::uint32_t num_wanted(std::uint32_t rows) const { return rows - std::min(rows, rows_before_wanted()); }

  std::uint32_t num_pending_ = 0;  // last tokens that are not emitted yet
};

}  // namespace quire::schedule
