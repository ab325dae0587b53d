#include "core/speculate/depth/depth_control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace quire::speculate {
namespace {

using sample::TokenTree;

// A target, a drafter and a crowd that never changes. Times as they are told are noisy; what is scored is their true
// length and how many tokens are to be expected, so that a score has little noise of its own.
struct World {
  std::function<double(double)> step;   // seconds by rows
  std::function<double(double)> draft;  // seconds by nodes
  double alpha = 0.75;
  std::uint32_t batch = 1;
  std::uint32_t limit = 8;
  bool says_chances = false;  // the drafter tells alpha^depth
};

double expected_tokens(double alpha, std::uint32_t nodes) {
  double tokens = 1;
  double path = 1;
  for (std::uint32_t i = 0; i < nodes; ++i) tokens += path *= alpha;
  return tokens;
}

double rate_of_fixed(const World& world, std::uint32_t nodes) {
  const double seconds = world.step(world.batch * (1.0 + nodes)) + (nodes == 0 ? 0 : world.draft(nodes));
  return world.batch * expected_tokens(world.alpha, nodes) / seconds;
}

double rate_of_best_fixed(const World& world) {
  double best = 0;
  for (std::uint32_t nodes = 0; nodes <= world.limit; ++nodes) best = std::max(best, rate_of_fixed(world, nodes));
  return best;
}

struct Score {
  double tokens = 0;
  double seconds = 0;
  std::uint64_t nodes = 0;
  double rate() const { return tokens / seconds; }
};

class Simulation {
 public:
  Simulation(World world, std::uint32_t seed, bool adaptive = true)
      : world_(std::move(world)),
        random_(seed),
        control_({.adaptive = adaptive},
                 // Half as long as the truth, and flat almost up to two hundred rows: priors are wrong.
                 StepCosts({.weight_bytes = 1e9, .bytes_per_s = 2e10, .fmas_per_row = 5e8, .fmas_per_s = 2e12}),
                 DraftCosts({.seconds_per_call = 1e-4, .seconds_per_node = 1e-3})) {}

  World& world() { return world_; }
  const DepthControl& control() const { return control_; }

  Score run(std::uint32_t steps) {
    Score score;
    for (std::uint32_t i = 0; i < steps; ++i) turn(score);
    return score;
  }

 private:
  double noise() {
    const double usual = std::exp(0.1 * std::normal_distribution<double>()(random_));
    return std::bernoulli_distribution(0.2)(random_) ? 3 * usual : usual;
  }

  void turn(Score& score) {
    std::vector<Candidate> candidates;
    for (std::uint32_t i = 0; i < world_.batch; ++i) candidates.push_back({SeqId(i + 1), world_.limit});
    const StepLoad load{world_.batch, world_.batch};
    std::vector<std::uint32_t> nodes(world_.batch);
    control_.plan(candidates, load, nodes);

    std::vector<Asked> asked;
    std::vector<TokenTree> trees;
    std::uint32_t largest = 0;
    for (std::uint32_t i = 0; i < world_.batch; ++i) {
      ASSERT_LE(nodes[i], world_.limit);
      if (nodes[i] == 0) continue;
      asked.push_back({.seq = candidates[i].seq, .tokens = {}, .max_nodes = nodes[i], .max_depth = nodes[i]});
      TokenTree& tree = trees.emplace_back();
      for (std::uint32_t k = 0; k < nodes[i]; ++k) {
        const double likely = world_.says_chances ? std::pow(world_.alpha, k + 1) : 0;
        tree.add(static_cast<TokenId>(k), static_cast<int>(k) - 1, static_cast<float>(likely));
      }
      largest = std::max(largest, nodes[i]);
    }
    double seconds = 0;
    if (largest > 0) {
      seconds += world_.draft(largest);
      control_.note_draft(largest, static_cast<std::uint32_t>(asked.size()), world_.draft(largest) * noise());
      control_.trim(asked, trees, load);
    }
    score.tokens += world_.batch - asked.size();
    std::uint32_t rows = world_.batch;
    for (const TokenTree& tree : trees) {
      rows += tree.size();
      score.nodes += tree.size();
      score.tokens += expected_tokens(world_.alpha, tree.size());
    }
    seconds += world_.step(rows);
    score.seconds += seconds;
    control_.note_step(rows, world_.step(rows) * noise());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      int taken = TokenTree::kRoot;
      while (taken + 1 < static_cast<int>(trees[i].size()) && std::bernoulli_distribution(world_.alpha)(random_))
        ++taken;
      control_.note_verification(asked[i].seq, trees[i], taken);
    }
  }

  World world_;
  std::mt19937 random_;
  DepthControl control_;
};

constexpr double kStep = 0.1;
double memory_bound(double rows) { return kStep * (1 + 0.005 * (rows - 1)); }
double compute_bound(double rows) { return kStep * rows; }
double roofline(double rows) { return kStep * std::max(1.0, rows / 24); }
double cheap_draft(double nodes) { return 0.1 * kStep * nodes; }
double dear_draft(double nodes) { return 1.5 * kStep * nodes; }

struct Named {
  const char* name;
  double (*seconds)(double);
};
constexpr Named kSteps[] = {{"memory", memory_bound}, {"compute", compute_bound}};
constexpr Named kDrafts[] = {{"cheap", cheap_draft}, {"dear", dear_draft}};

TEST(DepthControl, ComesNearTheBestFixedDepthAndIsNeverMuchSlowerThanNone) {
  for (const Named& step : kSteps) {
    for (const Named& draft : kDrafts) {
      for (const double alpha : {0.3, 0.75, 0.9}) {
        for (const std::uint32_t batch : {1, 4, 16, 32}) {
          SCOPED_TRACE(std::string(step.name) + " " + draft.name + " alpha " + std::to_string(alpha) + " batch " +
                       std::to_string(batch));
          const World world{.step = step.seconds, .draft = draft.seconds, .alpha = alpha, .batch = batch};
          const std::uint32_t num_seeds = batch > 4 ? 2 : 6;
          double first = 0;
          double second = 0;
          for (std::uint32_t seed = 0; seed < num_seeds; ++seed) {
            Simulation simulation(world, seed);
            simulation.run(32);
            first += simulation.run(300).rate() / num_seeds;
            second += simulation.run(500).rate() / num_seeds;
          }
          EXPECT_GE(first, 0.95 * rate_of_best_fixed(world));
          EXPECT_GE(second, 0.95 * rate_of_best_fixed(world));
          EXPECT_GE(second, 0.98 * rate_of_fixed(world, 0));
        }
      }
    }
  }
}

TEST(DepthControl, LosesLittleWhileItLearnsThatDraftingDoesNotPay) {
  for (const double alpha : {0.0, 0.75}) {
    for (const std::uint32_t batch : {1, 4, 16}) {
      SCOPED_TRACE(std::to_string(alpha) + ", batch " + std::to_string(batch));
      const World world{.step = compute_bound, .draft = cheap_draft, .alpha = alpha, .batch = batch};
      double sum = 0;
      for (std::uint32_t seed = 0; seed < 4; ++seed) sum += Simulation(world, seed).run(32).rate() / 4;
      EXPECT_GE(sum, 0.85 * rate_of_fixed(world, 0));
    }
  }
}

TEST(DepthControl, StaysNearTheEndOfTheFlatPartOfTheCosts) {
  for (const double alpha : {0.75, 0.9}) {
    for (const std::uint32_t batch : {1, 4, 16, 32}) {
      SCOPED_TRACE(std::to_string(alpha) + ", batch " + std::to_string(batch));
      const World world{.step = roofline, .draft = cheap_draft, .alpha = alpha, .batch = batch};
      double sum = 0;
      for (std::uint32_t seed = 0; seed < 3; ++seed) {
        Simulation simulation(world, seed);
        simulation.run(32);
        sum += simulation.run(400).rate() / 3;
      }
      EXPECT_GE(sum, 0.90 * rate_of_best_fixed(world));
    }
  }
}

TEST(DepthControl, RestsAndComesBackWhenDraftTokensAreTakenAgain) {
  Simulation simulation({.step = memory_bound, .draft = cheap_draft, .alpha = 0.02, .batch = 4}, 1);
  simulation.run(100);
  EXPECT_LT(simulation.run(400).nodes, 100u);
  EXPECT_NEAR(simulation.control().estimated_speedup(), 1, 0.01);
  simulation.world().alpha = 0.9;
  simulation.run(400);
  EXPECT_GE(simulation.run(200).rate(), 0.9 * rate_of_best_fixed(simulation.world()));
  EXPECT_GT(simulation.control().estimated_speedup(), 1.5);
}

TEST(DepthControl, FadesOutAsTheCrowdGrows) {
  double last = 9;
  for (const std::uint32_t batch : {1, 8, 64}) {
    Simulation simulation({.step = roofline, .draft = cheap_draft, .alpha = 0.75, .batch = batch}, 3);
    simulation.run(64);
    const double each = static_cast<double>(simulation.run(200).nodes) / 200 / batch;
    EXPECT_LT(each, last) << batch;
    last = each;
  }
  EXPECT_LT(last, 0.1);
}

TEST(DepthControl, LearnsAsWellFromADrafterThatReportsItsProbabilities) {
  for (const double alpha : {0.3, 0.9}) {
    Simulation simulation(
        {.step = memory_bound, .draft = cheap_draft, .alpha = alpha, .batch = 4, .says_chances = true}, 5);
    simulation.run(32);
    EXPECT_GE(simulation.run(400).rate(), 0.93 * rate_of_best_fixed(simulation.world())) << alpha;
  }
}

TEST(DepthControl, GivesEveryDraftItsLimitWhenItIsFixed) {
  Simulation simulation({.step = compute_bound, .draft = dear_draft, .alpha = 0, .batch = 3, .limit = 5}, 1, false);
  EXPECT_EQ(simulation.run(50).nodes, 50u * 3 * 5);
}

TEST(DepthControl, CutsWhatTheDrafterItselfDoesNotBelieveIn) {
  DepthControl control({},
                       StepCosts({.weight_bytes = 1e9, .bytes_per_s = 1e10, .fmas_per_row = 1e9, .fmas_per_s = 1e9}),
                       DraftCosts({}));  // every row costs a second, a step at least a tenth
  const std::vector<Asked> asked = {{.seq = SeqId(1), .tokens = {}, .max_nodes = 8, .max_depth = 8}};
  for (int i = 0; i < 8; ++i) control.note_step(1, 1.0), control.note_step(4, 1.5);
  for (int turn = 0; turn < 2; ++turn) {  // that it says chances is known from its first draft on
    std::vector<TokenTree> trees(1);
    trees[0].add(7, TokenTree::kRoot, 0.01f);
    trees[0].add(8, 0, 0.01f);
    trees[0].add(9, TokenTree::kRoot, 0.95f);
    control.trim(asked, trees, {1, 1});
    ASSERT_EQ(trees[0].size(), 1u);
    EXPECT_EQ(trees[0].token(0), 9);
    control.note_verification(SeqId(1), trees[0], 0);
  }
}

TEST(DepthControl, KnowsNothingOfWhoIsForgotten) {
  DepthControl control({}, StepCosts({.weight_bytes = 1, .bytes_per_s = 1, .fmas_per_row = 1, .fmas_per_s = 1}),
                       DraftCosts({}));
  const std::vector<Candidate> asked = {{SeqId(1), 4}, {SeqId(2), 0}};
  std::vector<std::uint32_t> nodes(2);
  control.plan(asked, {2, 2}, nodes);
  EXPECT_EQ(control.num_known(), 2u);
  control.forget(SeqId(1));
  control.forget(SeqId(3));
  EXPECT_EQ(control.num_known(), 1u);
}

}  // namespace
}  // namespace quire::speculate
