// One generation inside the engine: its tokens so far, how many of them have K and V, and the blocks those lie in.
// Shape   tokens() = prompt, then what was generated. computed() <= tokens().size(); the difference is what the next
//         steps must run: many while prefilling (or recomputing), one while decoding.
// Owner   the engine; the scheduler borrows it from add() to remove().
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
#include "core/flow/wait_cause.h"
#include "core/grammar/matcher.h"
#include "core/kv/block_table.h"
#include "core/kv/prefix_index.h"
#include "core/sample/adjustment.h"
#include "core/sample/token_tree.h"
#include "core/schedule/retention.h"

namespace quire::schedule {

enum class State : std::uint8_t { kWaiting, kRunning, kDone };

class Sequence {
 public:
  Sequence(SeqId id, flow::Request request, kv::BlockPool& pool);
  // A fork: the same tokens, and where the parent runs the same blocks with one more holder. It publishes nothing. Only
  // a beam search forks, and has neither rules nor a grammar.
  Sequence(SeqId id, const Sequence& parent, kv::BlockPool& pool) REQUIRES(engine_role);

  SeqId id() const { return id_; }
  // Forks arrived with their parents. A strict order of all sequences.
  bool arrived_before(const Sequence& other) const {
    return arrival_ != other.arrival_ ? arrival_ < other.arrival_ : id_ < other.id_;
  }
  const flow::Request& request() const { return *request_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  std::uint32_t num_tokens() const { return static_cast<std::uint32_t>(tokens_.size()); }
  std::uint32_t num_generated() const { return num_tokens() - static_cast<std::uint32_t>(request_->prompt.size()); }
  std::span<const TokenId> answer() const { return tokens().subspan(request_->prompt.size()); }
  // What its rules and its grammar do to the logits of its next token; valid until the next append() or edits().
  sample::Edits edits() REQUIRES(engine_role);
  // They leave none of `vocab` tokens that could come next.
  bool forbids_all(std::uint32_t vocab) REQUIRES(engine_role);
  std::uint32_t computed() const { return computed_; }
  // Rows of it that steps in flight run.
  std::uint32_t num_in_flight() const { return num_in_flight_; }
  // Tokens that these will say: they follow tokens(), and are not known.
  std::uint32_t num_awaited() const { return num_awaited_; }
  std::uint32_t next_position() const { return computed_ + num_in_flight_; }  // of the next row to be planned
  std::uint32_t remaining() const { return num_tokens() + num_awaited_ - next_position(); }
  // True if this sequence may be scheduled while an earlier step is still running: it has no rows in that step, or all
  // it waits for is its next token id (no grammar, penalties, scoring or pooling).
  bool can_look_ahead() const;
  // May have rows in the step being planned.
  bool ready() const { return !parked && !leaving && can_look_ahead(); }
  bool embeds() const { return request_->embeds(); }
  // Rows that it has still to run before the first of which something is wanted, logits or, where it embeds, hidden
  // states: of those from there on all are, up to the last.
  std::uint32_t silent_rows() const { return first_wanted() - next_position(); }
  // Of so many rows that it runs next, those whose logits are wanted.
  std::uint32_t num_speaking(std::uint32_t rows) const { return embeds() ? 0 : num_wanted(rows); }
  // Of so many rows that it runs next, those whose hidden states are wanted.
  std::uint32_t num_pooled(std::uint32_t rows) const { return embeds() ? num_wanted(rows) : 0; }
  // After so many more rows its next token is chosen.
  bool speaks(std::uint32_t rows) const { return rows == remaining() && !embeds(); }
  // All the scores that its request wants are told.
  bool scored() const { return !request_->scores_prompt || num_scored_ + 1 >= request_->prompt.size(); }
  bool decoding() const { return remaining() <= 1 + num_pending_ && num_generated() + num_awaited_ > 0; }
  bool lossy() const { return request_->kv_policy.kind != flow::KvPolicy::Kind::kFull; }
  // What it computes can be found by others.
  bool publishes() const { return publishes_; }
  // Has said something since it was admitted.
  bool heard() const { return heard_; }
  void begin_scheduled_period() REQUIRES(engine_role) {
    heard_ = false;
    started = true;
  }
  // Memory for all that it may come to say: it has that while it runs, so that it takes none then. What waits holds its
  // prompt and what it has said. False: there is not so much memory.
  bool take_room() REQUIRES(engine_role);
  void give_room_back() REQUIRES(engine_role);

  // ---- what a step does
  // A step in flight runs so many rows more, and behind the last of them its next token is chosen, or not.
  void launch(std::uint32_t rows, bool speaks) REQUIRES(engine_role) {
    num_in_flight_ += rows;
    num_awaited_ += speaks ? 1 : 0;
  }
  // The oldest such step is over: what it did is still to be committed.
  void land(std::uint32_t rows, bool speaks) REQUIRES(engine_role) {
    num_in_flight_ -= rows;
    num_awaited_ -= speaks ? 1 : 0;
  }
  // Whatever was in flight is lost.
  void land_all() REQUIRES(engine_role) { num_in_flight_ = num_awaited_ = 0; }
  // K and V of `rows` more tokens are stored.
  void commit_rows(std::uint32_t rows) REQUIRES(engine_role) { computed_ += rows; }
  // The score of the prompt token after the first num_scored() + 1 is told; it will not be wanted again.
  void commit_score() REQUIRES(engine_role) { ++num_scored_; }
  // The hidden states of so many rows more are taken; they will not be wanted again.
  void commit_pooled(std::uint32_t rows) REQUIRES(engine_role) { num_scored_ += rows; }
  std::uint32_t num_scored() const { return num_scored_; }
  // Its last row was finite, and so is all that came before.
  void hear() REQUIRES(engine_role) {
    heard_ = true;
    sound_ = computed_;
  }
  // The token chosen after the last one; says whether it ends the sequence.
  flow::Finish append(TokenId token) REQUIRES(engine_role);
  // The token that must come next: where its grammar allows one alone, nothing else could forbid that one, and the
  // sequence goes on behind it. -1: none.
  TokenId forced() REQUIRES(engine_role);
  // Appends what forced() said, before the row is run that it is a choice of: that row wants its logits still, as a
  // prompt's that is scored, and with them the token is told.
  void append_pending(TokenId token) REQUIRES(engine_role);
  std::uint32_t num_pending() const { return num_pending_; }
  TokenId tell() REQUIRES(engine_role) { return tokens_[num_tokens() - num_pending_--]; }

  // ---- its draft
  // Whether guesses at what it says may run in the coming step: it goes on by one row, and what that row says is not
  // forced.
  bool may_draft() const { return remaining() == 1 && decoding() && !lossy() && !request_->beam; }
  // How deep its draft may be: what is said at the deepest node is still within max_tokens.
  std::uint32_t max_draft_depth() const {
    return request_->max_tokens - std::min(request_->max_tokens, num_generated() + 1);
  }
  // What its rules and its grammar do to the logits of the draft's first nodes, each behind its own path; empty where
  // it has neither. A node that they do not allow to be said, or that ends the sequence, is never visited: its edits
  // mean nothing.
  // Valid until the next append() or node_edits().
  std::span<const sample::Edits> node_edits(std::uint32_t num_nodes) REQUIRES(engine_role);

  // How much attention the rows of the step paid to each group of 16 positions.
  void add_accumulated_scores(std::span<const std::uint64_t> accumulated_scores) REQUIRES(engine_role);

  // ---- its blocks
  // Begins with the blocks of the index that hold its first tokens, if any; its last token is left to run, and whatever
  // has still to be scored. Only while its table is empty.
  void adopt_prefix(kv::PrefixIndex& index) REQUIRES(engine_role);
  // What it may begin with, if others have computed it.
  std::span<const TokenId> adoptable() const { return tokens().first(first_wanted()); }
  // Tokens that it would begin with.
  std::uint32_t cached_tokens(kv::PrefixIndex& index) const REQUIRES(engine_role);
  // Gives the last block back if it is part full: its tokens are to be run again.
  void forget_partial_block() REQUIRES(engine_role);
  // The tokens behind the last multiple of 16 are to be run again: what was kept apart of them is lost.
  void forget_open_group() REQUIRES(engine_role);
  // Its full blocks that are sound enter the index, and with `tail` the part full one behind them. A block that the
  // index has already is given back for that one.
  void publish_prefix(kv::PrefixIndex& index, bool tail) REQUIRES(engine_role);
  // Its blocks go back to the pool; what was generated stays and will be recomputed.
  void forget_computed() REQUIRES(engine_role);
  // Its blocks go back to the pool, but their content has been moved: it can go on behind it once that is back in its
  // table.
  void leave_blocks() REQUIRES(engine_role);
  // Blocks that no later row looks into, `window` positions back, are given back.
  void drop_behind(std::uint32_t window) REQUIRES(engine_role);

  // ---- spans of a lossy one
  // Its next row opens a span: the policy decides what stays of those before, and blocks of which nothing stays are
  // given back.
  void open_span() REQUIRES(engine_role);
  bool at_new_span() const { return lossy() && computed_ / kSpanTokens > kept_groups_.size(); }
  std::uint32_t span_end() const { return (computed_ / kSpanTokens + 1) * kSpanTokens; }
  std::span<const std::uint16_t> kept_groups() const { return kept_groups_; }  // [spans before the one of its next row]

  kv::BlockTable table;
  State state = State::kWaiting;
  bool parked = false;          // not planned until there is room: its client does not read, or its siblings are behind
  bool leaving = false;         // it has ended, and holds its blocks until no step in flight has a row of it
  bool passed = false;          // not to be admitted in the step being planned
  bool started = false;         // was admitted before
  std::uint64_t added_in = 0;   // the scheduler's count of plans when it came into the line
  std::uint64_t passed_in = 0;  // and when it waited for another's prefix last; 0: never
  flow::WaitCause waited_for = flow::WaitCause::kNone;  // once started
  std::uint32_t planned_rows = 0;                       // in the step planned last, without its draft's
  std::uint32_t choice = 0;                             // where it spoke last: which of that step's choices
  sample::TokenTree draft;                              // guesses at what comes next; empty: none
  std::uint32_t planned_nodes = 0;                      // of the draft, from the first, in that step
  std::uint32_t overtaken = 0;                          // later arrivals that were admitted before it
  std::uint32_t place = 0;                              // in an UrgencyTree, while it is in one
  std::uint32_t charged_tokens = 0;    // of its tokens, those that are on its tenant's account, or cost nothing
  SeqId waits_for{};                   // computes the beginning of its prompt; 0: nobody that it knows of
  std::uint32_t cached_guess = 0;      // tokens that it would begin with, as of `guessed_at`
  std::uint64_t guessed_at = 0;        // the waiting line's count of plans; 0: never
  std::uint32_t open_group = 0;        // while it runs: its place among max_num_seqs
  std::vector<std::uint32_t> swapped;  // host blocks that hold what its table held, kNoHostBlock where it held nothing

  static constexpr std::uint32_t kNoHostBlock = ~0u;

 private:
  // Rules and grammar behind a node's path.
  struct DraftRules {
    std::vector<TokenId> answer;
    std::optional<sample::Adjustment> adjustment;
    std::optional<grammar::Matcher> matcher;
    std::vector<std::uint32_t> mask;
    bool allowed = true;
  };

  bool ends_with(TokenId token) const;
  // Position of the first row of which something is still wanted.
  std::uint32_t first_wanted() const {
    const bool all_told = request_->pooling != flow::Pooling::kMean && scored();
    return all_told ? num_tokens() + num_awaited_ - 1 - num_pending_ : num_scored_;
  }
  std::uint32_t num_wanted(std::uint32_t rows) const { return rows - std::min(rows, silent_rows()); }
  void find_mask();

  const SeqId id_;
  const SeqId arrival_;                                 // of the first of its forks
  const std::shared_ptr<const flow::Request> request_;  // shared by forks
  std::vector<TokenId> tokens_;
  std::optional<sample::Adjustment> adjustment_;  // where the request has rules, while it has room
  std::optional<grammar::Matcher> matcher_;       // where it has a grammar
  std::vector<std::uint32_t> mask_;     // [V/32] tokens that the grammar, and the rules, allow next, while it has room
  bool mask_found_ = false;             // of the grammar alone
  std::vector<DraftRules> node_rules_;  // of the draft's nodes, while its step runs
  std::vector<sample::Edits> node_edits_;
  std::uint32_t num_pending_ = 0;  // of its last tokens
  std::uint32_t num_scored_ = 0;   // rows of its prompt whose next token has its score, or that are pooled
  std::uint32_t computed_ = 0;
  std::uint32_t num_in_flight_ = 0;
  std::uint32_t num_awaited_ = 0;
  std::uint32_t sound_ = 0;  // tokens whose K and V a finite choice has vouched for
  bool heard_ = false;
  const bool may_publish_;
  bool publishes_;
  std::uint32_t num_published_ = 0;                  // blocks of the table, from its beginning, that are in the index
  kv::EntryId last_entry_ = kv::PrefixIndex::kRoot;  // of the last of them
  std::vector<std::uint16_t> kept_groups_;
  std::vector<std::uint64_t> accumulated_scores_;  // by group of 16 positions
};

}  // namespace quire::schedule
