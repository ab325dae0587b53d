#include "core/model/run/kv_groups.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace quire::model {
namespace {

struct Layer {
  std::uint32_t window = 0;
  std::uint32_t head_dim = 64;
  std::optional<std::uint32_t> source{};
  std::uint32_t num_kv_heads = 2;
};

ModelSpec model_of(const std::vector<Layer>& layers) {
  ModelSpec model;
  for (const Layer& layer : layers) {
    AttentionLayer& attention = model.layers.emplace_back().attention;
    attention.window = layer.window;
    attention.num_kv_heads = layer.num_kv_heads;
    attention.head_dim = layer.head_dim;
    attention.kv_source = layer.source;
  }
  return model;
}

// Every `cycle`-th layer attends to all positions.
ModelSpec interleaved(std::uint32_t num_layers, std::uint32_t cycle) {
  std::vector<Layer> layers;
  for (std::uint32_t i = 0; i < num_layers; ++i) layers.push_back({.window = (i + 1) % cycle == 0 ? 0u : 512u});
  return model_of(layers);
}

// Every sixth layer attends to all positions, with few heads of 512; the others have heads of 256.
ModelSpec with_large_heads(std::uint32_t num_layers, std::uint32_t heads_of_window, std::uint32_t heads_of_all) {
  std::vector<Layer> layers;
  for (std::uint32_t i = 0; i < num_layers; ++i) {
    layers.push_back({.window = 1024, .head_dim = 256, .num_kv_heads = heads_of_window});
    if ((i + 1) % 6 == 0) layers.back() = {.window = 0, .head_dim = 512, .num_kv_heads = heads_of_all};
  }
  return model_of(layers);
}

using Windows = std::vector<std::uint32_t>;

// Layers of each group.
std::vector<std::uint32_t> counts(const KvGroups& groups) {
  std::vector<std::uint32_t> out(groups.size());
  for (const backend::KvLayer& layer : groups.layers) ++out[layer.group];
  return out;
}

// Values of each group's layers.
std::vector<std::uint32_t> values(const KvGroups& groups) {
  std::vector<std::uint32_t> out(groups.size());
  for (const backend::KvLayer& layer : groups.layers) out[layer.group] += layer.num_kv_heads * layer.head_dim;
  return out;
}

// The layers of each group have the places [0, n).
void expect_sound(const KvGroups& groups) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> places;
  for (const backend::KvLayer& layer : groups.layers) {
    EXPECT_LT(layer.group, groups.size());
    EXPECT_TRUE(places.emplace(layer.group, layer.place).second);
  }
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    EXPECT_TRUE(places.contains({group, counts(groups)[group] - 1}));
  }
}

TEST(KvGroups, AModelOfOneKindOfLayersIsOneGroup) {
  for (const std::uint32_t window : {0u, 512u}) {
    const KvGroups groups = cut_into_groups(model_of({{window}, {window}, {window}}));
    EXPECT_EQ(groups.windows, Windows{window});
    EXPECT_EQ(groups.layers, model_of({{window}, {window}, {window}}).kv_shape(16, 1, backend::KvType::kF32).layers);
    EXPECT_EQ(groups.describe(), "");
  }
}

TEST(KvGroups, GroupsHaveEqualNumbersOfLayersAndThoseThatSeeAllComeFirst) {
  const KvGroups groups = cut_into_groups(interleaved(24, 4));  // 6 of all positions, 18 of a window
  expect_sound(groups);
  EXPECT_EQ(groups.windows, (Windows{0, 512, 512, 512}));
  EXPECT_EQ(groups.padding_per_mille(), 0u);
  EXPECT_EQ(counts(groups), (Windows{6, 6, 6, 6}));
  EXPECT_EQ(groups.describe(),
            "4 groups of layers: 1 of 6 layers that attend to all positions, 3 of 18 layers that "
            "attend to 512 positions; 0.0 % of the blocks are padding");
}

TEST(KvGroups, TheBlocksThatStayLongestHaveNoPaddingWhereOthersMust) {
  const KvGroups groups = cut_into_groups(interleaved(62, 6));  // 10 and 52
  expect_sound(groups);
  EXPECT_EQ(groups.windows.size(), 7u);
  EXPECT_EQ(counts(groups), (Windows{10, 10, 10, 10, 10, 10, 2}));
  EXPECT_EQ(groups.padding_per_mille(), 114u) << "8 of 70";
}

TEST(KvGroups, ThereAreNoMoreThanTheMost) {
  const KvGroups groups = cut_into_groups(interleaved(47, 47));  // one of all positions
  expect_sound(groups);
  EXPECT_EQ(groups.size(), KvGroups::kMostGroupsOfAlike);
  EXPECT_EQ(groups.windows.front(), 0u);
  EXPECT_EQ(counts(groups), (Windows{1, 7, 7, 7, 7, 7, 7, 4}));
}

TEST(KvGroups, LayersOfOtherSizesAreCutByTheirValues) {
  const KvGroups groups = cut_into_groups(with_large_heads(60, 16, 4));  // 10 of 2048 values, 50 of 4096
  expect_sound(groups);
  EXPECT_EQ(counts(groups), (Windows{10, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}));
  EXPECT_EQ(values(groups), Windows(11, 20480));
  EXPECT_EQ(groups.padding_per_mille(), 0u);
  EXPECT_FALSE(groups.shape(16, 1, backend::KvType::kF32).groups_are_alike());
}

TEST(KvGroups, TheBlocksThatStayLongestHaveNoPaddingWhereSizesDoNotDivide) {
  const KvGroups groups = cut_into_groups(with_large_heads(30, 8, 2));  // 5 of 1024 values, 25 of 2048
  expect_sound(groups);
  EXPECT_EQ(counts(groups).front(), 5u);
  EXPECT_EQ(values(groups).front(), 5120u);
  EXPECT_EQ(groups.size(), 14u) << "two layers of a window a group";
  EXPECT_EQ(groups.padding_per_mille(), 214u) << "15 of 70";
}

TEST(KvGroups, LayersOfManySizesAreNoMoreThanTheMost) {
  for (const std::uint32_t num_layers : {6u, 35u, 47u, 200u}) {
    const KvGroups groups = cut_into_groups(with_large_heads(num_layers, 3, 1));
    expect_sound(groups);
    EXPECT_LE(groups.size(), KvGroups::kMostGroups) << num_layers;
  }
}

TEST(KvGroups, WiderWindowsComeBeforeNarrowerOnes) {
  EXPECT_EQ(cut_into_groups(model_of({{64}, {128}, {64}, {128}})).windows, (Windows{128, 64}));
}

TEST(KvGroups, LayersOfAGroupLieLargestFirst) {
  const KvGroups groups = cut_into_groups(model_of({{512, 64}, {0, 64}, {512, 128}, {0, 128}}));
  expect_sound(groups);
  EXPECT_EQ(groups.padding_per_mille(), 0u);
  EXPECT_EQ(groups.layers[2].place, 0u);
  EXPECT_EQ(groups.layers[0].place, 1u);
  EXPECT_EQ(groups.layers[3].place, 0u);
}

TEST(KvGroups, ALayerThatReadsTheKAndVOfAnotherBelongsToItsGroupWhichKeepsAllThatItReads) {
  const KvGroups groups =
      cut_into_groups(model_of({{512}, {0}, {512}, {.window = 512, .source = 0}, {.window = 0, .source = 2}}));
  ASSERT_EQ(groups.layers.size(), 3u);
  EXPECT_EQ(groups.windows[groups.layers[0].group], 512u);
  EXPECT_EQ(groups.windows[groups.layers[1].group], 0u);
  EXPECT_EQ(groups.windows[groups.layers[2].group], 0u) << "a layer that attends to all positions reads it";
}

TEST(KvGroups, OneGroupAttendsToAsMuchAsItsWidestLayer) {
  EXPECT_EQ(one_group(model_of({{512}, {0}})).windows, Windows{0});
  EXPECT_EQ(one_group(model_of({{512}, {64}})).windows, Windows{512});
  EXPECT_EQ(one_group(model_of({{512}, {64}})).layers[1].place, 1u);
}

}  // namespace
}  // namespace quire::model
