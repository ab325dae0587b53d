// The layers that store K and V, cut into groups by the positions that they attend to: a block has the K and V of one
// group's layers (backend::KvLayer), so that blocks behind a sliding window are given back though other layers attend
// to all positions.
//   a model of one kind of layers is one group; else the layers of every group take at most as many values as a block
//   has, which is a multiple of some layer's size
// The block size with the least padding is taken: in the groups of the widest kind, whose blocks stay longest; then in
// all groups; then the size with the fewest groups. Every group costs each step some time on the host: more than
// kMostGroupsOfAlike are made only of layers of different sizes, where they save the most memory.
// Shape   groups of layers that attend to all positions first, then wider windows before narrower ones. The layers of a
//         group have the places [0, n), larger ones first.
// Thread  any; values.
// Fails   never.
// Source  ours; vLLM's groups of equal page size are the idea.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/backend/tensors.h"
#include "core/model/spec.h"

namespace quire::model {

struct KvGroups {
  static constexpr std::uint32_t kMostGroupsOfAlike = 8;  // of layers that are all of one size
  static constexpr std::uint32_t kMostGroups = 16;

  std::vector<std::uint32_t> windows;    // [N] positions that a group's layers attend to; 0: all
  std::vector<backend::KvLayer> layers;  // as in ModelSpec::kv_shape()

  std::uint32_t size() const { return static_cast<std::uint32_t>(windows.size()); }
  backend::KvShape shape(std::uint32_t block_tokens, std::uint32_t num_blocks, backend::KvType type) const;
  // Part of all groups' blocks that no layer uses, of 1000, by the number of values.
  std::uint32_t padding_per_mille() const;
  // "2 groups: 4 layers of all positions, 2 x 4 layers of 512 positions; 5.0 % padding"; empty for one group.
  std::string describe() const;
};

// All layers in one group. It attends to all positions if one layer does.
KvGroups one_group(const ModelSpec& model);
KvGroups cut_into_groups(const ModelSpec& model);

}  // namespace quire::model
