// Trees of guesses that are drawn, by the code that drafters draw them with: what is said with them has the target's
// law, they are taken as often as the formula says, and the same statistic sees whatever could be wrong with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/sample/acceptance.h"
#include "core/sample/noise.h"
#include "core/sample/reference.h"
#include "core/speculate/children.h"
#include "core/speculate/growing_tree.h"
#include "core/speculate/models/merged_drafter.h"
#include "tests/core/sample/table_speech.h"
#include "tests/support/cases.h"

namespace quire::speculate::drawn_trees_test {
namespace {

using sample::DraftToken;
using sample::strangeness;
using sample::TokenTree;

enum class Flaw {
  kNone,
  kNoResidual,         // where no sibling is taken p itself is drawn from
  kOneDistribution,    // of siblings all are judged by the first one's law, as if each had been put back
  kResidualsNoise,     // guesses are drawn with the noise that draws what is left
  kOneNoise,           // two drafters draw with the same noise
  kSizeByDraftTokens,  // a draft with an unlikely guess is not used
};

// Logits by the last two tokens.
class Table {
 public:
  Table(std::uint32_t vocab, float scale, std::uint32_t seed) : vocab_(vocab) {
    for (std::uint32_t i = 0; i < vocab * vocab; ++i) rows_.push_back(sample::bell_row(vocab, scale, seed + i));
  }
  const std::vector<float>& row(std::span<const TokenId> text) const {
    return rows_[static_cast<std::size_t>(text[text.size() - 2]) * vocab_ + static_cast<std::size_t>(text.back())];
  }

 private:
  std::uint32_t vocab_;
  std::vector<std::vector<float>> rows_;
};

// Draws a tree level by level, as heads do.
class TableDrafter final : public Drafter {
 public:
  TableDrafter(const Table& table, std::uint32_t width, std::uint32_t member, Flaw flaw)
      : table_(table), width_(width), member_(flaw == Flaw::kOneNoise ? 0 : member), flaw_(flaw) {}

  std::string method() const override { return "table"; }
  void observe(const ObservedStep&) override {}
  void propose(std::span<const Asked> asked, std::span<TokenTree> trees) override {
    const Asked& one = asked[0];
    distributions_.clear();
    tree_.begin({.width = width_, .max_depth = one.max_depth, .max_nodes = one.max_nodes}, /*drawn=*/true);
    add_children(one, GrowingTree::kRoot, 1);
    for (std::uint32_t depth = 2;; ++depth) {
      const std::span<const int> found = tree_.next_frontier();
      frontier_.assign(found.begin(), found.end());
      if (frontier_.empty()) break;
      for (const int node : frontier_) add_children(one, node, depth);
    }
    tree_.write(trees[0]);
    trees[0].set_distributions(&distributions_);
  }

 private:
  void add_children(const Asked& asked, int parent, std::uint32_t depth) {
    std::vector<TokenId> path;
    for (int at = parent; at != GrowingTree::kRoot; at = tree_.parent(at)) path.push_back(tree_.token(at));
    std::vector<TokenId> text(asked.tokens.begin(), asked.tokens.end());
    for (auto token = path.rbegin(); token != path.rend(); ++token) text.push_back(*token);
    const std::vector<double> logprobs = sample::reference_logprobs(table_.row(text));
    std::vector<std::pair<double, TokenId>> listed;
    for (std::size_t k = 0; k < logprobs.size(); ++k) listed.emplace_back(-logprobs[k], static_cast<TokenId>(k));
    std::ranges::sort(listed);
    children_.clear();
    for (const auto& [falling, token] : listed) children_.add(token, static_cast<float>(-falling));
    const ChildRequest wanted{.num = tree_.num_children(parent),
                              .position = static_cast<std::uint32_t>(text.size()),
                              .depth = depth,
                              .drafter = member_};
    std::vector<Child> drawn;
    if (flaw_ == Flaw::kResidualsNoise) {
      drawn = drawn_with_other_noise(logprobs, wanted, *asked.sampling);
    } else {
      for (const Child& child : children_.chosen(wanted, *asked.sampling, distributions_)) drawn.push_back(child);
    }
    for (const Child& child : drawn) tree_.add(parent, child.token, child.log_likely);
  }
  // The same draws, at temperature 1 and without filters, with noise that is not theirs.
  std::vector<Child> drawn_with_other_noise(const std::vector<double>& logprobs, const ChildRequest& wanted,
                                            const sample::Params& params) {
    std::vector<std::pair<float, TokenId>> scores;
    for (std::size_t k = 0; k < logprobs.size(); ++k) {
      const auto token = static_cast<TokenId>(k);
      scores.emplace_back(
          -static_cast<float>(logprobs[k]) -
              sample::gumbel(params.seed, token, wanted.position, 0, ahead(sample::Domain::kResidual, wanted.depth)),
          token);
    }
    std::ranges::sort(scores);
    std::vector<Child> drawn;
    std::vector<double> left;
    for (const double logprob : logprobs) left.push_back(std::exp(logprob));
    for (std::uint32_t i = 0; i < wanted.num; ++i) {
      double sum = 0.0;
      for (const double chance : left) sum += chance;
      for (std::size_t k = 0; k < left.size(); ++k) {
        if (left[k] > 0.0) distributions_.add(static_cast<TokenId>(k), static_cast<float>(left[k] / sum));
      }
      distributions_.close();
      drawn.push_back({scores[i].second, 0.0f});
      left[static_cast<std::size_t>(scores[i].second)] = 0.0;
    }
    return drawn;
  }

  const Table& table_;
  const std::uint32_t width_;
  const std::uint32_t member_;
  const Flaw flaw_;
  GrowingTree tree_;
  Children children_;
  sample::ProposalDistributions distributions_;
  std::vector<int> frontier_;
};

struct Speaking {
  std::uint32_t vocab = 4;
  std::uint32_t width = 2;
  std::uint32_t members = 1;
  std::uint32_t max_nodes = 6;
  std::uint32_t max_depth = 3;
  float apart = 3.0f;
  sample::Params params{.accept = sample::Accept::kRatio};
};

// Speech a draft and a walk at a time, as a server makes it.
class DrawnSpeech {
 public:
  DrawnSpeech(const Speaking& setup, Flaw flaw)
      : setup_(setup), flaw_(flaw), target_(setup.vocab, 4.0f, 1000), scratch_(setup.vocab) {
    std::vector<std::unique_ptr<Drafter>> members;
    for (std::uint32_t m = 0; m < setup.members; ++m) {
      tables_.push_back(std::make_unique<Table>(setup.vocab, setup.apart, flaw == Flaw::kOneNoise ? 7000 : 7000 + m));
      members.push_back(std::make_unique<TableDrafter>(*tables_.back(), setup.width, m, flaw));
    }
    drafter_ = std::make_unique<MergedDrafter>("table", std::move(members));
  }

  std::vector<double> distribution(std::uint32_t count) const {
    std::vector<double> joint;
    extend({1, 0}, count, 1.0, joint);
    return joint;
  }
  std::vector<double> counts(std::uint32_t count, std::uint32_t num_seeds) REQUIRES(engine_role) {
    std::vector<double> cells(static_cast<std::size_t>(std::pow(setup_.vocab, count) + 0.5));
    for (std::uint32_t seed = 0; seed < num_seeds; ++seed) {
      setup_.params.seed = seed;
      std::vector<TokenId> text = {1, 0};
      while (text.size() < 2 + count) step(text);
      std::size_t cell = 0;
      for (std::uint32_t i = 0; i < count; ++i) cell = cell * setup_.vocab + static_cast<std::size_t>(text[2 + i]);
      cells[cell] += 1.0;
    }
    return cells;
  }
  // Of first tokens, how many were a guess; and how many should be: rounds over the root's siblings, in f64.
  double taken() const { return static_cast<double>(num_first_taken_) / static_cast<double>(num_first_); }
  double expected_taken(const std::vector<std::uint32_t>& siblings_of_members) const {
    const std::vector<TokenId> text = {1, 0};
    std::vector<std::vector<double>> distributions;
    for (const auto& table : tables_) distributions.push_back(sample::reference_distribution(table->row(text), {}));
    return rounds(sample::reference_distribution(target_.row(text), {}), distributions, siblings_of_members, 0, 0,
                  distributions[0]);
  }
  // By draft, how many siblings each member has below the root, where all drafts are alike.
  std::uint32_t num_nodes() const { return num_nodes_; }
  std::uint32_t num_siblings() const { return num_siblings_; }

 private:
  static double rounds(const std::vector<double>& p, const std::vector<std::vector<double>>& distributions,
                       const std::vector<std::uint32_t>& siblings, std::size_t member, std::uint32_t round,
                       const std::vector<double>& q) {
    if (round == siblings[member]) {
      if (member + 1 == distributions.size()) return 0.0;
      return rounds(p, distributions, siblings, member + 1, 0, distributions[member + 1]);
    }
    std::vector<double> left(p.size());
    double mass = 0.0;
    for (std::size_t k = 0; k < p.size(); ++k) mass += left[k] = std::max(p[k] - q[k], 0.0);
    for (double& one : left) one = mass > 0.0 ? one / mass : 0.0;
    double sum = 0.0;
    for (std::size_t k = 0; k < p.size(); ++k) {
      if (!(q[k] > 0.0)) continue;
      const double taken = std::min(1.0, p[k] / q[k]);
      std::vector<double> without = q;
      without[k] = 0.0;
      for (double& one : without) one /= 1.0 - q[k];
      sum += q[k] *
             (taken +
              (taken < 1.0 ? (1.0 - taken) * rounds(left, distributions, siblings, member, round + 1, without) : 0.0));
    }
    return sum;
  }
  void extend(const std::vector<TokenId>& text, std::uint32_t count, double before, std::vector<double>& out) const {
    if (count == 0) return out.push_back(before);
    const std::vector<double> next = sample::reference_distribution(target_.row(text), setup_.params);
    for (std::size_t k = 0; k < next.size(); ++k) {
      std::vector<TokenId> longer = text;
      longer.push_back(static_cast<TokenId>(k));
      extend(longer, count - 1, before * next[k], out);
    }
  }

  void step(std::vector<TokenId>& text) REQUIRES(engine_role) {
    const Asked asked{.seq = SeqId(1),
                      .tokens = text,
                      .sampling = &setup_.params,
                      .max_nodes = setup_.max_nodes,
                      .max_depth = setup_.max_depth};
    TokenTree tree;
    drafter_->propose({&asked, 1}, {&tree, 1});
    num_nodes_ = tree.size();
    if (flaw_ == Flaw::kSizeByDraftTokens) {
      for (std::uint32_t i = 0; i < tree.size(); ++i) {
        if (tree.parent(i) == TokenTree::kRoot && tree.likely(i) < 0.25f) return say_plainly(text);
      }
    }
    const bool is_first = text.size() == 2;
    int at = TokenTree::kRoot;
    for (std::uint32_t depth = 1;; ++depth) {
      std::vector<DraftToken> draft_tokens;
      for (std::uint32_t i = 0; i < tree.size(); ++i) {
        if (tree.parent(i) != at) continue;
        const auto distribution = flaw_ == Flaw::kOneDistribution && !draft_tokens.empty()
                                      ? draft_tokens.front().distribution
                                      : tree.distribution(i);
        draft_tokens.push_back({tree.token(i), distribution});
      }
      const std::vector<float>& row = target_.row(text);
      const sample::VerifiedRow verified{row, sample::highest_of(row), static_cast<std::uint32_t>(text.size())};
      TokenId said = sample::accept_or_resample(verified, draft_tokens, depth, setup_.params, scratch_).token;
      const int next = tree.child(at, said);
      if (at == TokenTree::kRoot) num_siblings_ = static_cast<std::uint32_t>(draft_tokens.size());
      if (is_first && at == TokenTree::kRoot) {
        ++num_first_;
        num_first_taken_ += next >= 0;
      }
      if (flaw_ == Flaw::kNoResidual && next < 0 && !draft_tokens.empty()) return say_plainly(text);
      text.push_back(said);
      at = next;
      if (at < 0) return;
    }
  }
  void say_plainly(std::vector<TokenId>& text) {
    text.push_back(
        sample::draw(target_.row(text), setup_.params, static_cast<std::uint32_t>(text.size()), scratch_).token);
  }

  Speaking setup_;
  const Flaw flaw_;
  const Table target_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::unique_ptr<MergedDrafter> drafter_;
  sample::Scratch scratch_;
  std::uint64_t num_first_ = 0;
  std::uint64_t num_first_taken_ = 0;
  std::uint32_t num_nodes_ = 0;
  std::uint32_t num_siblings_ = 0;
};

constexpr std::uint32_t kSeeds = quire::testing::cases(100'000);

double strangeness_of(const Speaking& setup, Flaw flaw = Flaw::kNone) {
  const RoleScope role(engine_role);
  DrawnSpeech speech(setup, flaw);
  return strangeness(speech.counts(3, kSeeds), speech.distribution(3));
}

TEST(DrawnTrees, KeepTheDistributionOfThreeTokens) {
  EXPECT_LT(strangeness_of({}), 1.0);
  EXPECT_LT(strangeness_of({.width = 3, .max_nodes = 12}), 1.0);
  EXPECT_LT(strangeness_of({.width = 4, .max_nodes = 30, .apart = 0.5f}), 1.0);  // all tokens, though few are needed
  EXPECT_LT(strangeness_of({.width = 1, .max_nodes = 3}), 1.0);
}

TEST(DrawnTrees, OfSeveralDraftersKeepTheDistribution) {
  EXPECT_LT(strangeness_of({.width = 1, .members = 2}), 1.0);
  EXPECT_LT(strangeness_of({.width = 2, .members = 3, .max_nodes = 10}), 1.0);
}

TEST(DrawnTrees, KeepTheDistributionWhereFiltersLeaveFewerThanSiblings) {
  Speaking setup{.width = 3, .max_nodes = 9};
  setup.params.top_k = 2;
  EXPECT_LT(strangeness_of(setup), 1.0);
  setup.params.top_k = 0;
  setup.params.min_p = 0.2f;
  setup.params.temperature = 0.7f;
  EXPECT_LT(strangeness_of(setup), 1.0);
}

TEST(DrawnTrees, AreTakenAsOftenAsTheRoundsSay) {
  const RoleScope role(engine_role);
  struct Case {
    Speaking setup;
    std::vector<std::uint32_t> siblings;
  };
  for (const Case& one : {Case{{.vocab = 6, .width = 2, .max_nodes = 2, .max_depth = 1}, {2}},
                          Case{{.vocab = 6, .width = 3, .max_nodes = 3, .max_depth = 1, .apart = 6.0f}, {3}},
                          Case{{.vocab = 5, .width = 1, .members = 2, .max_nodes = 2, .max_depth = 1}, {1, 1}},
                          Case{{.vocab = 5, .width = 2, .members = 2, .max_nodes = 3, .max_depth = 1}, {2, 1}}}) {
    DrawnSpeech speech(one.setup, Flaw::kNone);
    speech.counts(1, kSeeds);
    const double expected = speech.expected_taken(one.siblings);
    EXPECT_GT(expected, 0.05);
    EXPECT_LT(expected, 0.97);
    EXPECT_NEAR(speech.taken(), expected, 0.01);
    EXPECT_EQ(speech.num_siblings(), one.setup.max_nodes);
  }
}

TEST(DrawnTrees, AreSeenToChangeTheDistributionWithoutTheResidual) {
  EXPECT_GT(strangeness_of({}, Flaw::kNoResidual), 1.5);
}

TEST(DrawnTrees, AreSeenToChangeTheDistributionWhereSiblingsAreJudgedAsIfPutBack) {
  EXPECT_GT(strangeness_of({.width = 3, .max_nodes = 12}, Flaw::kOneDistribution), 1.5);
}

TEST(DrawnTrees, AreSeenToChangeTheDistributionWithNoiseThatIsShared) {
  EXPECT_GT(strangeness_of({}, Flaw::kResidualsNoise), 1.5);
  EXPECT_GT(strangeness_of({.width = 1, .members = 2}, Flaw::kOneNoise), 1.5);
}

TEST(DrawnTrees, AreSeenToChangeTheDistributionWhereADraftTokenDecidesWhetherTheyAreUsed) {
  EXPECT_GT(strangeness_of({}, Flaw::kSizeByDraftTokens), 1.5);
}

}  // namespace
}  // namespace quire::speculate::drawn_trees_test
