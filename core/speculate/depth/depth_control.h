// How many nodes each sequence's draft has in the coming step, none included: as many as promise the most tokens a second of
// the whole step, by what guesses were taken so far and by what steps and drafts have cost. Where guessing does not pay the
// drafter is left alone; a small part of the time goes into probes, so that it comes back when it would.
//   plan() before the drafter is asked · note_draft() · trim() what it gave · note_step() and note_walk() once collected
// Shape   node i of a draft has rank i; ranks count, not depths: chains and trees alike.
// Owner   the engine. A sequence is known from its first plan() to forget().
// Thread  engine.
// Source  goodput as in SmartSpec (Liu et al. 2024); the estimates are ours: of several that fit what was measured the hopeful
//         one, because what is not tried is not learned.
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

// The coming step as it is without drafts.
struct StepLoad {
  std::uint32_t rows = 0;      // the asked sequences' own rows included
  std::uint32_t speaking = 0;  // sequences that say a token in it, whether they can use guesses or not
};

struct Candidate {
  SeqId seq;
  std::uint32_t limit = 0;  // nodes that it may have; 0: none
};

struct DepthOptions {
  bool adaptive = true;            // else every draft is as large as its limit
  double probe_part = 0.006;       // of the time: what probes may cost where guessing rests
  std::uint32_t probe_plans = 48;  // between two probes of a sequence
};

class DepthControl {
 public:
  DepthControl(const DepthOptions& options, StepCosts step_costs, DraftCosts draft_costs);

  // nodes[i]: the nodes to ask for asked[i], at most its limit. All 0: the drafter is not asked.
  void plan(std::span<const Candidate> asked, const StepLoad& load, std::span<std::uint32_t> nodes);
  // The drafter's answer to those that were asked for nodes, cut to what is worth its rows; best nodes first after that.
  // trees[i] is asked[i]'s. In fixed mode, too, and where trees are empty: that is learned from.
  void trim(std::span<const Asked> asked, std::span<sample::TokenTree> trees, const StepLoad& load);

  // A step all of whose rows speak or guess took so long, drafting apart. Steps with a prompt's rows are not told: most of
  // those want no logits.
  void note_step(std::uint32_t rows, double seconds);
  // A call of the drafter for so many sequences; `nodes`: the most that one of them was asked for.
  void note_draft(std::uint32_t nodes, std::uint32_t num_sequences, double seconds);
  // The draft as it was verified (cut further, where blocks were short), and the deepest node taken; kRoot: none.
  void note_walk(SeqId seq, const sample::TokenTree& draft, int taken);
  void forget(SeqId seq) { sequences_.erase(seq); }

  // For a while now nobody got nodes but as a probe: whoever comes in need not be followed.
  bool rests() const { return options_.adaptive && num_plain_plans_ >= kPlansToRest; }
  // Tokens a second over those without drafts, as expected of recent steps.
  double estimated_speedup() const { return speedup_; }
  bool adaptive() const { return options_.adaptive; }
  const StepCosts& step_costs() const { return step_costs_; }
  const DraftCosts& draft_costs() const { return draft_costs_; }
  const Acceptance& acceptance() const { return everybody_; }
  std::size_t num_known() const { return sequences_.size(); }

 private:
  struct Known {
    Acceptance acceptance{kKeepOne};
    double promised = 0;  // by nodes verified, as calibrated; and how many of them were taken
    double taken = 0;
    std::uint64_t last_asked = 0;  // plan's number
    std::uint32_t interval = 0;    // plans until a probe
    bool probing = false;
    bool has_chances = false;  // of the drafter's own, in its last draft
  };
  // A node that may get a row: what it brings and needs on average, and by which it stands in line.
  struct Node {
    double gain = 0;
    double rows = 0;
    double worth = 0;
    std::uint32_t owner = 0;  // asked[owner]
    std::uint32_t rank = 0;
  };
  struct Best {
    double rate = 0;            // tokens a second
    std::size_t num_nodes = 0;  // of those in line, below the cap
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
  // Seconds of the step with so many more rows: a prompt's rows are charged to the prompt.
  double seconds_with(double rows, const StepLoad& load) const;
  // Of the nodes in line with a rank below the cap: so many of the first. Drafting is to be paid, or has been.
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
  std::uint32_t num_plain_plans_ = 0;  // since somebody got nodes, probes apart
  std::uint64_t plan_ = 0;
  std::uint64_t plain_until_ = 0;  // plans before it are without drafts: what a step costs without is to be known
  std::uint64_t next_plain_ = 0;
  std::uint32_t plain_rest_ = 1;
  std::uint32_t largest_ = 2;      // no draft is larger until some of this size are known
  std::uint32_t num_largest_ = 0;  // of them
  bool has_largest_ = false;       // the step under way
  double saved_ = 0;               // seconds that probes may cost
  double token_seconds_ = 0;       // what a token takes without drafts, in the last plan
  double speedup_ = 1;
  std::vector<Node> line_;  // scratch, as the rest
  std::vector<std::uint32_t> granted_;
};

}  // namespace quire::speculate
