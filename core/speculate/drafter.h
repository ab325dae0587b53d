// Who guesses what sequences say next. A drafter is a function of what is committed: it is told that in observe(), has
// nothing to roll back, and whatever it guesses changes the speed alone (core/engine/CONTRACT.md, Draft); under ratio
// and block the tokens too, never their law.
// Shape   trees of at most Asked::max_nodes nodes, max_depth deep; none is a good answer.
// Owner   app makes it; the engine calls it. Devices, weights and files that it needs outlive it.
// Thread  engine.
// Fails   making one: StartError, all problems at once. Its calls do not fail; a drafter that does not know gives no
//         guesses.
// Source  one interface for every variant of the seed: ours.
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

// A sequence that came in, for the first time: before anything else is said of it.
struct Admitted {
  SeqId seq;
  std::span<const TokenId> prompt;
  std::optional<CacheRoot> root{};  // whose texts it may learn from: those with the same root; none: its own alone
};

// Result of a lookahead node's row: the sampled token if verification reached the node, else the token with the highest
// logit.
struct LookaheadResult {
  std::uint8_t number = 0;  // as the drafter's tree had it
  TokenId token = -1;
};

// What a step made permanent of one sequence. Its rows stand one position apart, the first at `first_position`; the
// token of the row at position p is tokens[p], and tokens[p + 1] is there for each of them.
struct Observed {
  SeqId seq;
  std::span<const TokenId> tokens;  // all that is committed: the prompt, and what was said, the newest included
  std::uint32_t first_position = 0;
  std::span<const std::uint32_t> rows{};  // of the step just collected: rows[i] ran the token at first_position + i
  std::span<const BlockId> table{};       // its blocks; they cover those positions
  bool done = false;                      // it says nothing more
  // Of the tree that was proposed last, those lookahead nodes that ran: whose rows were finite and had room.
  std::span<const LookaheadResult> lookahead_results{};
};

struct ObservedStep {
  std::span<const Observed> sequences;
  const backend::Buffer* states = nullptr;  // [T, boundaries · E] what Needs asked for, by row of the step
};

// A sequence that can use guesses in the coming step.
struct Asked {
  SeqId seq;
  std::span<const TokenId> tokens;           // committed. All but the last have their K and V, and were observed
  std::span<const BlockId> table{};          // covers all but the last
  const sample::Params* sampling = nullptr;  // where it accepts by law: see propose()
  std::uint32_t max_nodes = 0;               // >= 1
  std::uint32_t max_depth = 0;               // >= 1: max_tokens allows no more
};

// What a drafter wants of the target's steps.
struct Needs {
  // States of the residual stream, side by side: b stands before layer b, and num_layers behind the last one.
  std::vector<std::uint32_t> boundaries{};
  bool final_norm = false;  // instead: the last states as the final norm leaves them
  bool any() const { return final_norm || !boundaries.empty(); }
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  // As --speculative-config calls it.
  virtual std::string method() const = 0;
  virtual Needs needs() const { return {}; }

  virtual void admit(const Admitted& /*sequence*/) REQUIRES(engine_role) {}
  // After every step, before anything in it is given back.
  virtual void observe(const ObservedStep& step) REQUIRES(engine_role) = 0;
  // trees[i] is empty and becomes asked[i]'s. What a tree stands on may be out of date, wrong or random: that costs
  // time alone.
  // Where sample::accepts_by_law(): guesses are functions of what is committed, or drawn with noise that is not the
  // target's
  // (core/sample/acceptance.h), and then stay as they were drawn; the tree says from what, and borrows that until the
  // next call.
  virtual void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) REQUIRES(engine_role) = 0;
  // It ended, or was sent back to wait: `ended` false. It may never have come in.
  virtual void release(SeqId /*seq*/, bool /*ended*/) REQUIRES(engine_role) {}
  // What is about to happen to whole blocks, for who keeps K and V of its own in the same ones. Rows of a path that was
  // taken are not told of: they were observed where they stand.
  virtual void follow(std::span<const flow::BlockOp> /*ops*/) REQUIRES(engine_role) {}
};

}  // namespace quire::speculate
