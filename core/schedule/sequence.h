// One generation inside the engine: its tokens so far, how many of them have K and V, and the blocks those lie in.
// Shape   tokens() = prompt, then what was generated. computed() <= tokens().size(); the difference is what the next
//         steps must run: many while prefilling (or recomputing), one while decoding.
// Owner   the engine; the scheduler borrows it from add() to remove().
// Thread  engine.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/flow/request.h"
#include "core/flow/token_event.h"
#include "core/kv/block_table.h"
#include "core/kv/prefix_index.h"

namespace quire::schedule {

enum class State : std::uint8_t { kWaiting, kRunning, kDone };

class Sequence {
 public:
  Sequence(SeqId id, flow::Request request, kv::BlockPool& pool)
      : table(pool), id_(id), request_(std::move(request)), tokens_(request_.prompt) {
    tokens_.reserve(tokens_.size() + request_.max_tokens);
  }

  SeqId id() const { return id_; }
  const flow::Request& request() const { return request_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  std::uint32_t num_tokens() const { return static_cast<std::uint32_t>(tokens_.size()); }
  std::uint32_t num_generated() const { return num_tokens() - static_cast<std::uint32_t>(request_.prompt.size()); }
  std::uint32_t computed() const { return computed_; }
  std::uint32_t remaining() const { return num_tokens() - computed_; }
  bool decoding() const { return remaining() == 1 && num_generated() > 0; }

  // K and V of `rows` more tokens are stored.
  void commit_rows(std::uint32_t rows) REQUIRES(engine_role) { computed_ += rows; }
  // The token chosen after the last one; says whether it ends the sequence.
  flow::Finish append(TokenId token) REQUIRES(engine_role);
  // Begins with the blocks of the index that hold its first tokens, if any; at least its last token is left to run. Only while
  // its table is empty.
  void adopt_prefix(kv::PrefixIndex& index) REQUIRES(engine_role);
  // Its full blocks whose K and V are stored enter the index. A block that the index holds already is given back for that one.
  void publish_prefix(kv::PrefixIndex& index) REQUIRES(engine_role);
  // Its blocks go back to the pool; what was generated stays and will be recomputed.
  void forget_computed() REQUIRES(engine_role) {
    table.give_back_all();
    computed_ = 0;
    num_published_ = 0;
    last_entry_ = kv::PrefixIndex::kRoot;
  }

  kv::BlockTable table;
  State state = State::kWaiting;
  bool parked = false;             // its client does not read: not planned until there is room
  std::uint32_t planned_rows = 0;  // in the step being planned or in flight

 private:
  const SeqId id_;
  const flow::Request request_;
  std::vector<TokenId> tokens_;
  std::uint32_t computed_ = 0;
  std::uint32_t num_published_ = 0;                  // blocks of the table, from its beginning, that are in the index
  kv::EntryId last_entry_ = kv::PrefixIndex::kRoot;  // of the last of them
};

}  // namespace quire::schedule
