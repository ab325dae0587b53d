// Interface of a drafter: it proposes draft tokens for sequences, and the target model verifies them in its next step.
// A drafter reads committed tokens only, through observe(), so a rejected draft leaves nothing to roll back. Its drafts
// change the speed, never the tokens (core/engine/CONTRACT.md, A); under acceptance `ratio` and `block` they may change
// the tokens, never their distribution.
// Shape   one tree per sequence: at most Asked::max_nodes nodes, at most max_depth deep. An empty tree is valid.
// Owner   the app's Instance, or the drafter that combines it; the engine borrows it. The devices, weights and files
//         that it uses outlive it.
// Thread  engine.
// Fails   construction: StartError with all problems at once. Calls do not fail; a drafter that has nothing to propose
//         leaves the tree empty.
// Source  ours: one interface for all methods of speculative decoding.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend/tensors.h"
#include "core/base/ids.h"
#include "core/base/thread_role.h"
#include "core/flow/step_plan.h"
#include "core/sample/params.h"
#include "core/sample/token_tree.h"

namespace quire::speculate {

// A sequence at its first admission, before any other call names it. Not called again after a preemption.
struct Admitted {
  SeqId seq;
  std::span<const TokenId> prompt;
  // Cache namespace whose texts the drafter may learn from and propose to this sequence. None: its own text only.
  std::optional<CacheNamespace> cache_namespace{};
};

// Result of the row of a lookahead node (token_tree.h): the sampled token if verification reached the node, else the
// token with the highest logit.
struct LookaheadResult {
  std::uint8_t number = 0;  // the number that the drafter gave the node in its tree
  TokenId token = -1;
};

// Rows of one sequence that a step committed. Their positions are consecutive from `first_position`; the row at
// position p ran tokens[p], and tokens[p + 1] is known for each of them.
struct Observed {
  SeqId seq;
  std::span<const TokenId> tokens;  // all committed tokens: prompt and output, the newest included
  std::uint32_t first_position = 0;
  std::span<const std::uint32_t> rows{};  // rows of the collected step: rows[i] ran position first_position + i
  std::span<const BlockId> table{};       // the sequence's blocks; they cover those positions
  bool done = false;                      // the sequence has ended
  // Results of the lookahead nodes of the last proposed tree that ran and whose rows were finite.
  std::span<const LookaheadResult> lookahead_results{};
};

struct ObservedStep {
  std::span<const Observed> sequences;
  const backend::Buffer* states = nullptr;  // [T, boundaries · E] the states that needs() asked for, by row of the step
};

// A sequence that can use a draft in the coming step.
struct Asked {
  SeqId seq;
  // Committed tokens. All but the last have their K and V in `table`; those that a step ran were observed, those found
  // in the prefix cache were not.
  std::span<const TokenId> tokens;
  std::span<const BlockId> table{};          // covers all but the last token
  const sample::Params* sampling = nullptr;  // never null from the engine; draft heads require it
  std::uint32_t max_nodes = 0;               // >= 1
  std::uint32_t max_depth = 0;               // >= 1; bounded by the tokens that max_tokens leaves
};

// Hidden states of the target that a drafter reads.
struct Needs {
  // States of the residual stream, concatenated: boundary b is the input of layer b, num_layers the last layer's
  // output.
  std::vector<std::uint32_t> boundaries{};
  bool final_norm = false;  // the last state after the final norm, in place of boundaries
  bool any() const { return final_norm || !boundaries.empty(); }
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  // Name of the method as in --speculative-config.
  virtual std::string method() const = 0;
  virtual Needs needs() const { return {}; }

  virtual void admit(const Admitted& /*sequence*/) REQUIRES(engine_role) {}
  // Called after a step with committed rows of tracked sequences, before the blocks of ended sequences are released.
  virtual void observe(const ObservedStep& step) REQUIRES(engine_role) = 0;
  // Fills trees[i], which is empty, for asked[i]. The caller leaves out nodes that cannot run; a bad tree costs only
  // time. If sample::accepts_by_rejection(*asked[i].sampling), the tree is used whole or not at all, and its tokens are
  // either a function of the committed tokens, or drawn with noise independent of the target's
  // (core/sample/acceptance.h); the drafter must leave out no node that it drew. The tree points to the distributions
  // that it drew from: the drafter owns them, and they are valid until the next propose().
  virtual void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) REQUIRES(engine_role) = 0;
  // The sequence ended, or (`ended` false) was preempted or is no longer tracked. It may never have been admitted here.
  virtual void release(SeqId /*seq*/, bool /*ended*/) REQUIRES(engine_role) {}
  // Operations on whole blocks that the coming step runs first, for a drafter that stores K and V under the same block
  // ids. Copies of an accepted path's rows are not reported: observe() has those rows where they were computed.
  virtual void track(std::span<const flow::BlockOp> /*ops*/) REQUIRES(engine_role) {}
};

}  // namespace quire::speculate
