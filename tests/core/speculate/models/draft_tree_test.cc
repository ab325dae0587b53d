// Trees: of one model that branches, and of several models merged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/base/start_error.h"
#include "core/sample/noise.h"
#include "core/speculate/models/draft_children.h"
#include "core/speculate/models/merged_drafter.h"
#include "core/speculate/models/model_drafter.h"
#include "tests/core/speculate/draft_rig.h"

namespace quire::speculate::draft_tree_test {
namespace {

using ::testing::ElementsAreArray;
using namespace testing;
using sample::TokenTree;

using PathOf = std::vector<TokenId>;

PathOf path_to(const TokenTree& tree, std::uint32_t node) {
  PathOf path;
  for (std::uint32_t i = 0; i <= node; ++i) {
    if ((tree.ancestors(node) >> i & 1) != 0) path.push_back(tree.token(i));
  }
  return path;
}

std::map<PathOf, float> paths_of(const TokenTree& tree) {
  std::map<PathOf, float> paths;
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    float& likely = paths[path_to(tree, i)];
    likely = std::max(likely, tree.likely(i));
  }
  return paths;
}

class DraftTree : public ::testing::Test {
 protected:
  DraftTree() : ops_(cpu::make_cpu_ops({.num_threads = 2})), target_(*ops_, tiny_config(2)) {}

  static ModelDraftLimits limits() {
    ModelDraftLimits limits;
    limits.max_sequences = 4;
    limits.max_rows = 64;
    limits.num_blocks = 40;
    limits.kv_type = backend::KvType::kF32;
    return limits;
  }
  std::unique_ptr<ModelDrafter> drafter(std::vector<std::uint32_t> widths, bool shared_noise = true) {
    ModelDraftOptions options;
    options.min_likely = 0.0f;
    options.widths = std::move(widths);
    options.shared_noise = shared_noise;
    return std::make_unique<ModelDrafter>(*ops_, *target_.decoder, kTinyVocab, limits(), options);
  }
  Talker talker(std::uint32_t prompt, std::uint32_t length, const sample::Params& params, std::uint32_t seq = 1) {
    Teller teller(*ops_, target_);
    Talker made{SeqId(seq), teller.tell(random_text(prompt, seq), params, length - prompt), params,
                blocks_from(10 * seq, 9)};
    made.length = prompt + 1;
    return made;
  }
  // The best tokens behind a text, by logit or by what the noise makes of it.
  std::vector<TokenId> best(std::vector<TokenId> text, const sample::Params& params, std::uint32_t count) {
    Teller teller(*ops_, target_);
    const std::vector<float> logits = teller.logits(text);
    std::vector<std::pair<double, TokenId>> ranked;
    for (TokenId token = 0; token < static_cast<TokenId>(kTinyVocab); ++token) {
      double strength = logits[static_cast<std::size_t>(token)];
      if (params.temperature > 0) {
        strength =
            strength / params.temperature + sample::gumbel(params.seed, token, static_cast<std::uint32_t>(text.size()),
                                                           params.choice_index, sample::Domain::kTarget);
      }
      ranked.emplace_back(-strength, token);
    }
    std::ranges::sort(ranked);
    std::vector<TokenId> tokens;
    for (std::uint32_t i = 0; i < count; ++i) tokens.push_back(ranked[i].second);
    return tokens;
  }
  // All paths of a tree with these widths, that deep.
  void grow(std::vector<TokenId> text, PathOf path, const std::vector<std::uint32_t>& widths, std::uint32_t depth,
            const sample::Params& params, std::set<PathOf>& paths) {
    if (path.size() == depth) return;
    for (const TokenId token : best(text, params, path.size() < widths.size() ? widths[path.size()] : 1)) {
      PathOf longer = path;
      longer.push_back(token);
      paths.insert(longer);
      std::vector<TokenId> more = text;
      more.push_back(token);
      grow(more, longer, widths, depth, params, paths);
    }
  }

  std::unique_ptr<backend::Ops> ops_;
  TinyModel target_;
};

TEST_F(DraftTree, HasTheBestChildrenOfEveryNodeAtEveryTemperature) {
  const RoleScope role(engine_role);
  const std::vector<std::vector<std::uint32_t>> shapes{{3}, {2, 2, 2}, {1, 1, 3, 1}, {4, 1, 2}};
  sample::Params warm = drawn(5);
  warm.top_p = 1.0f;
  for (const auto& params : {greedy(), warm}) {
    for (const auto& widths : shapes) {
      Talker talker = this->talker(44, 50, params);  // a block ends among its nodes
      const TokenTree tree = draft(*drafter(widths), talker, 64, 5);
      const auto committed = talker.committed();
      std::set<PathOf> expected, drafted;
      grow({committed.begin(), committed.end()}, {}, widths, 5, params, expected);
      for (std::uint32_t i = 0; i < tree.size(); ++i) drafted.insert(path_to(tree, i));
      EXPECT_EQ(drafted, expected);
      EXPECT_EQ(drafted.size(), tree.size());
    }
  }
}

TEST_F(DraftTree, IsAsLargeAndAsDeepAsIsAskedFor) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(44, 60, greedy());
  const auto drafter = this->drafter({2, 2, 2});
  for (std::uint32_t nodes = 1; nodes < 20; ++nodes) {
    EXPECT_EQ(draft(*drafter, talker, nodes, 3).size(), std::min(nodes, 14u));
    const TokenTree tree = draft(*drafter, talker, 64, nodes);
    std::uint32_t deepest = 0;
    for (std::uint32_t i = 0; i < tree.size(); ++i) deepest = std::max(deepest, tree.depth(i));
    EXPECT_EQ(deepest, std::min(nodes, limits().max_depth));
  }
}

TEST_F(DraftTree, OfManySequencesIsThatOfEachAloneThoughNotAllBranchesGoOn) {
  const RoleScope role(engine_role);
  const auto together = this->drafter({4, 4, 2});
  std::vector<Talker> talkers;
  std::vector<Asked> asked;
  for (std::uint32_t i = 0; i < 3; ++i) {
    talkers.push_back(this->talker(30 + i, 50, i == 1 ? drawn(8) : greedy(), i + 1));
  }
  for (const Talker& each : talkers) asked.push_back(each.asked(64, 5));
  for (std::uint32_t turn = 0; turn < 3; ++turn) {
    std::vector<TokenTree> trees(3);
    together->propose(asked, trees);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(paths_of(trees[i]), paths_of(draft(*drafter({4, 4, 2}), talkers[i], 64, 5)));
    }
  }
}

TEST_F(DraftTree, ProposesTheLikeliestWhereTheNoiseIsNotShared) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(44, 60, drawn(5, 1.5f));
  const TokenTree blind = draft(*drafter({}, false), talker, 6, 6);
  Talker cold = talker;
  cold.params = greedy();
  EXPECT_EQ(tokens_of(blind), tokens_of(draft(*drafter({}), cold, 6, 6)));
}

TEST(DraftChildren, AreLessLikelyOneAfterTheOtherAndNoMoreThanCertainTogether) {
  std::vector<sample::Candidate> top;
  for (TokenId token = 0; token < 64; ++token) top.push_back({token, std::log(0.5f) * static_cast<float>(token + 1)});
  for (const auto& request : {greedy(), drawn(3), drawn(4)}) {
    const sample::Params asked = draft_params(request, 6, true);
    Children room;
    float sum = 0;
    float last = 0;
    std::set<TokenId> tokens;
    for (const Child& child : draft_children({0, true, top[0].logprob, top}, asked, 17, 6, room)) {
      sum += std::exp(child.log_likely);
      EXPECT_LE(child.log_likely, last);
      last = child.log_likely;
      tokens.insert(child.token);
    }
    EXPECT_LE(sum, 1.0001f);
    EXPECT_GT(tokens.size(), 1u);
    EXPECT_LE(tokens.size(), 6u);
  }
}

TEST(DraftChildren, OfALoneDrawAreWhatWasDrawn) {
  Children room;
  for (const auto& request : {greedy(), drawn(3)}) {
    const auto children = draft_children({7, true, -4.0f}, draft_params(request, 1, true), 17, 1, room);
    ASSERT_EQ(children.size(), 1u);
    EXPECT_EQ(children[0].token, 7);
    EXPECT_GE(children[0].log_likely, -4.0f);
  }
}

TEST(DraftChildren, AreNoneOfARowThatIsNotFinite) {
  Children room;
  EXPECT_TRUE(draft_children({-1, false, 0.0f}, draft_params(greedy(), 1, true), 3, 1, room).empty());
}

TokenTree random_tree(std::mt19937& random) {
  TokenTree tree;
  const std::uint32_t size = random() % 30;
  for (std::uint32_t i = 0; i < size; ++i) {
    const int parent = static_cast<int>(random() % (tree.size() + 1)) - 1;
    const float limit = parent < 0 ? 1.0f : tree.likely(static_cast<std::uint32_t>(parent));
    tree.add(static_cast<TokenId>(random() % 4), parent, limit * static_cast<float>(random() % 9) / 8.0f);
  }
  return tree;
}

TEST(TreeMerger, HasTheLikeliestPathsOfAllTreesEachOnce) {
  std::mt19937 random(11);
  TreeMerger merger;
  for (std::uint32_t round = 0; round < 300; ++round) {
    std::map<PathOf, float> all;
    for (std::uint32_t i = 0; i < 1 + round % 4; ++i) {
      const TokenTree tree = random_tree(random);
      for (const auto& [path, likely] : paths_of(tree)) all[path] = std::max(all[path], likely);
      merger.add(tree);
    }
    std::vector<float> likelihoods;
    for (const auto& [path, likely] : all) likelihoods.push_back(likely);
    std::ranges::sort(likelihoods, std::greater<>());
    const std::uint32_t most = random() % 70;
    TokenTree merged;
    merger.take(most, merged);
    ASSERT_EQ(merged.size(), std::min<std::size_t>({most, all.size(), TokenTree::kMaxNodes}));
    const auto kept = paths_of(merged);
    ASSERT_EQ(kept.size(), merged.size());
    for (const auto& [path, likely] : kept) ASSERT_EQ(likely, all.at(path));
    for (std::uint32_t i = 0; i < merged.size(); ++i) ASSERT_EQ(merged.likely(i), likelihoods[i]);
  }
}

TEST_F(DraftTree, OfSeveralModelsHasTheTokensOfEachOfThem) {
  const RoleScope role(engine_role);
  const TinyModel other(*ops_, tiny_config(1), "other");
  ModelDraftOptions options;
  options.min_likely = 0.0f;
  std::vector<std::unique_ptr<Drafter>> members;
  members.push_back(std::make_unique<ModelDrafter>(*ops_, *target_.decoder, kTinyVocab, limits(), options));
  members.push_back(std::make_unique<ModelDrafter>(*ops_, *other.decoder, kTinyVocab, limits(), options));
  MergedDrafter merged("specinfer", std::move(members));
  Talker talker = this->talker(30, 80, drawn(4));
  talker.length = 1;
  talker.read_prompt(merged, 30, 30);
  ModelDrafter lone(*ops_, *other.decoder, kTinyVocab, limits(), options);
  for (std::uint32_t turn = 0; turn < 6; ++turn) {
    const auto both = paths_of(draft(merged, talker, 64, 5));
    const auto truth = next_of(talker, 5);
    const auto wrong = tokens_of(draft(lone, talker, 64, 5));
    for (const auto& each : {truth, wrong}) {
      for (std::size_t depth = 1; depth <= 5; ++depth) {
        EXPECT_TRUE(both.contains({each.begin(), each.begin() + static_cast<std::ptrdiff_t>(depth)}));
      }
    }
    EXPECT_LE(both.size(), 10u);
    talker.go_on(merged, 1 + turn);
  }
}

TEST(MergedDrafter, RefusesToBeOfNobody) { EXPECT_THROW(MergedDrafter("specinfer", {}), StartError); }

}  // namespace
}  // namespace quire::speculate::draft_tree_test
