// Choice of each sequence's number of draft nodes for the coming step, 0 included: the numbers with the most expected
// tokens per second of the whole step, from measured acceptance and measured costs of steps and drafts. Where drafts do
// not pay, the drafter is not asked; a small part of the time goes into probes, which detect when they pay again.
//   Order of calls: plan(), the drafter proposes, note_draft(), trim(), the step runs, note_step(),
//   note_verification().
// Shape   node i of a draft has rank i. Ranks are used, not depths, so chains and trees are alike.
// Owner   the engine. State of a sequence lives from its first plan() to forget().
// Thread  engine.
// Source  goodput as in SmartSpec (Liu et al. 2024); the estimates are ours. Of several that fit the measurements the
//         optimistic one is used, because a size that is not tried is not learned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/base/ids.h"
#include "core/sample/token_tree.h"
#include "core/speculate/depth/acceptance.h"
#include "core/speculate/depth/calibration.h"
#include "core/speculate/depth/draft_costs.h"
#include "core/speculate/depth/step_costs.h"
#include "core/speculate/drafter.h"

namespace quire::speculate {

// The coming step without drafts.
struct StepLoad {
  std::uint32_t rows = 0;           // rows of all sequences, those of the candidates included
  std::uint32_t sampling_rows = 0;  // sequences that sample a token in it, with or without drafts
};

struct Candidate {
  SeqId seq;
  std::uint32_t limit = 0;  // most nodes of its draft; 0: none
};

struct DepthOptions {
  bool adaptive = true;            // false: every draft is as large as its limit
  double probe_part = 0.006;       // part of the time that probes may cost while drafts do not pay
  std::uint32_t probe_plans = 48;  // plans between two probes of a sequence
};

class DepthControl {
 public:
  DepthControl(const DepthOptions& options, StepCosts step_costs, DraftCosts draft_costs);

  // Sets nodes[i], the nodes to ask for asked[i], at most its limit. All 0: the drafter is not asked.
  void plan(std::span<const Candidate> asked, const StepLoad& load, std::span<std::uint32_t> nodes);
  // Sorts the drafter's trees (trees[i] of asked[i]) best node first, and cuts nodes that are not worth their row.
  // Called with fixed sizes and for empty trees too: the statistics need them.
  void trim(std::span<const Asked> asked, std::span<sample::TokenTree> trees, const StepLoad& load);

  // Duration of a step, drafting excluded, whose rows all were decode or draft rows. A step with prompt rows is not
  // reported: most of those rows are no logits rows.
  void note_step(std::uint32_t rows, double seconds);
  // Seconds of one propose() call for `num_sequences`, with the observe() before it if the caller adds that; `nodes`:
  // the most that one of the sequences was asked for.
  void note_draft(std::uint32_t nodes, std::uint32_t num_sequences, double seconds);
  // The draft as verified (cut further if blocks were short), and the deepest accepted node; kRoot: none.
  void note_verification(SeqId seq, const sample::TokenTree& draft, int taken);
  void forget(SeqId seq) { sequences_.erase(seq); }

  // True if for some time only probes had nodes: a newly admitted sequence need not be tracked.
  bool rests() const { return options_.adaptive && num_plain_plans_ >= kPlansToRest; }
  // Expected tokens per second over those without drafts, smoothed over recent steps.
  double estimated_speedup() const { return speedup_; }
  bool adaptive() const { return options_.adaptive; }
  const StepCosts& step_costs() const { return step_costs_; }
  const DraftCosts& draft_costs() const { return draft_costs_; }
  const Acceptance& acceptance() const { return everybody_; }
  std::size_t num_known() const { return sequences_.size(); }

 private:
  struct Known {
    Acceptance acceptance{kKeepOne};
    double promised = 0;  // expected number of accepted nodes, calibrated, and (taken) the real one
    double taken = 0;
    std::uint64_t last_asked = 0;  // number of the plan
    std::uint32_t interval = 0;    // plans until a probe
    bool probing = false;
    bool has_chances = false;  // its last draft had the drafter's own probabilities
  };
  // A candidate node: expected tokens, expected rows, and the key by which candidates are sorted.
  struct Node {
    double gain = 0;
    double rows = 0;
    double worth = 0;
    std::uint32_t owner = 0;  // asked[owner]
    std::uint32_t rank = 0;
  };
  struct Best {
    double rate = 0;            // tokens per second
    std::size_t num_nodes = 0;  // first candidates below the cap that run
    std::uint32_t cap = 0;
  };
  struct InLine {
    bool operator()(const Node& a, const Node& b) const {
      if (a.worth != b.worth) return a.worth > b.worth;
      return a.rank != b.rank ? a.rank < b.rank : a.owner < b.owner;
    }
  };
  static constexpr double kKeepOne = 0.985;
  static constexpr double kKeepAll = 0.995;

  Known& known(SeqId seq);
  bool wants_plain(const StepLoad& load);
  // Seconds of the step with `rows` more rows. Cost of prompt rows is left out: the prompt pays it.
  double seconds_with(double rows, const StepLoad& load) const;
  // Best number of candidates to take from the front of line_, among those with a rank below `cap`. `drafted`: drafting
  // has been paid for already.
  Best best_prefix(std::uint32_t cap, const StepLoad& load, bool drafted) const;
  void line_up(std::span<const Candidate> asked);
  void plan_drafts(std::span<const Candidate> asked, const StepLoad& load, std::span<std::uint32_t> nodes);
  void plan_probes(std::span<const Candidate> asked, const StepLoad& load, std::span<std::uint32_t> nodes);
  void gains_of(const Known& one, std::uint32_t asked, const Chances& all, const sample::TokenTree& tree,
                std::span<double> gains) const;

  const DepthOptions options_;
  StepCosts step_costs_;
  DraftCosts draft_costs_;
  Acceptance everybody_{kKeepAll};
  Calibration calibration_;
  std::unordered_map<SeqId, Known> sequences_;
  static constexpr std::uint32_t kPlansToRest = 32;
  std::uint32_t num_plain_plans_ = 0;  // plans since a sequence had nodes, probes excluded
  std::uint64_t plan_ = 0;
  std::uint64_t plain_until_ = 0;  // plans before it have no drafts, to measure plain steps
  std::uint64_t next_plain_ = 0;
  std::uint32_t plain_rest_ = 1;
  std::uint32_t largest_ = 2;      // most nodes of a draft until some drafts of this size have been measured
  std::uint32_t num_largest_ = 0;  // number of those
  bool has_largest_ = false;       // the step under way has one
  double saved_ = 0;               // seconds that probes may cost
  double token_seconds_ = 0;       // of the last plan: seconds per token without drafts
  double speedup_ = 1;
  std::vector<Node> line_;  // candidates, sorted; scratch, as granted_
  std::vector<std::uint32_t> granted_;
};

}  // namespace quire::speculate
