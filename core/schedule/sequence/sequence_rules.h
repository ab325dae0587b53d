// The sampling rules of one sequence's rows: what its penalties, biases, bad words and grammar do to the logits of its
// next token and of its draft nodes, and the tokens that end it.
// Shape   masks are [V/32 words], bit t % 32 of word t / 32 is token t. Edits and masks are a function of the request
//         and the answer so far.
// Owner   a Sequence, whose request and tokens it refers to: they outlive it. The spans of edits() are valid until the
//         next note_token() or edits(), those of node_edits() until the next note_token() or node_edits().
// Thread  engine.
// Fails   reserve(): std::bad_alloc; release() frees what it had reserved.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/base/thread_role.h"
#include "core/flow/request.h"
#include "core/flow/token_event.h"
#include "core/grammar/matcher.h"
#include "core/sample/adjustment.h"
#include "core/sample/edits.h"
#include "core/sample/token_tree.h"

namespace quire::schedule {

class SequenceRules {
 public:
  // `tokens`: the prompt, then the answer so far.
  SequenceRules(const flow::Request& request, const std::vector<TokenId>& tokens);
  SequenceRules(const SequenceRules&) = delete;
  SequenceRules& operator=(const SequenceRules&) = delete;

  // Reserves memory for the longest answer that the request allows; edits() and what follows are for the time until
  // release(). The position in the grammar is kept beyond that.
  void reserve() REQUIRES(engine_role);
  void release() REQUIRES(engine_role);

  // True if it has rules or a grammar: the edits of a row depend on the token before it.
  bool any() const { return adjustment_ || matcher_; }

  // The edits of the next token's logits.
  sample::Edits edits() REQUIRES(engine_role);
  // True if these edits forbid each of the `vocab` tokens.
  bool forbids_all(std::uint32_t vocab) REQUIRES(engine_role);
  // The edits of the logits of the draft's first `num_nodes` nodes, each after its own path; empty if there are neither
  // rules nor a grammar. A node that the grammar forbids, or that ends the sequence, has empty edits: its result is
  // never used.
  std::span<const sample::Edits> node_edits(const sample::TokenTree& draft, std::uint32_t num_nodes)
      REQUIRES(engine_role);
  // The only token that the grammar allows next. -1: the grammar allows another, the token ends the sequence or is the
  // last that max_tokens allows, or the request has rules (which could forbid it) or a lossy KV policy.
  TokenId forced() REQUIRES(engine_role);

  // A token was appended to the tokens; the grammar must allow it. Returns why that ends the sequence, or kNone.
  flow::Finish note_token() REQUIRES(engine_role);

 private:
  // State of rules and grammar after the path of one draft node.
  struct NodeRules {
    std::vector<TokenId> answer;
    std::optional<sample::Adjustment> adjustment;
    std::optional<grammar::Matcher> matcher;
    std::vector<std::uint32_t> mask;
    bool allowed = true;
  };

  std::span<const TokenId> answer() const { return std::span(tokens_).subspan(request_.prompt.size()); }
  bool ends_with(TokenId token) const;
  void find_mask();

  const flow::Request& request_;
  const std::vector<TokenId>& tokens_;
  std::optional<sample::Adjustment> adjustment_;  // if the request has rules; between reserve() and release()
  std::optional<grammar::Matcher> matcher_;       // if the request has a grammar
  std::vector<std::uint32_t> mask_;    // tokens that grammar and rules allow next; between reserve() and release()
  bool mask_found_ = false;            // mask_ is up to date, and has the grammar's tokens alone
  std::vector<NodeRules> node_rules_;  // by draft node, while its step runs
  std::vector<sample::Edits> node_edits_;
};

}  // namespace quire::schedule
