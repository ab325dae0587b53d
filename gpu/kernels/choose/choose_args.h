// Inputs and results of the sampling kernels for a step's logits rows: plain data, the same bytes on host and device.
// Shape   one packed buffer: rows, verifications, nodes, then the lists of edits. Rows of a verification are adjacent,
//         the root's first. Offsets are in bytes from the buffer's beginning.
// Owner   Chooser (gpu/chooser.h) packs it; it lives as long as the kernels of its group.
// Thread  any.
// Source  ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/ids.h"
#include "core/sample/edits.h"
#include "core/sample/noise.h"
#include "core/sample/params.h"

namespace quire::gpu {

// Kernels' form of backend::LogitsRow.
struct LogitsRowArgs {
  static constexpr std::uint32_t kNoEdits = ~0u;

  sample::Params params;
  std::uint32_t logits_row = 0;  // in the step: index of its logits and of its result
  std::uint32_t position = 0;
  sample::Domain domain = sample::Domain::kTarget;
  TokenId given = -1;
  std::uint32_t list = 0;  // offset of its likeliest tokens among the lists
  // Index of its edited copy of the logits. kNoEdits: the fields below are not used.
  std::uint32_t copy = kNoEdits;
  float repetition = 1.0f;
  float frequency = 0.0f;
  float presence = 0.0f;
  std::uint32_t num_each = 0;
  std::uint32_t num_forbidden = 0;
  std::uint32_t num_allowed = 0;  // words; 0: all tokens are allowed
  std::size_t each = 0;
  std::size_t forbidden = 0;
  std::size_t allowed = 0;
};

struct VerificationArgs {
  std::uint32_t first_row = 0;  // among the group's rows
  std::uint32_t first_node = 0;
  std::uint32_t num_nodes = 0;
  std::uint64_t lookahead_nodes = 0;
};

struct NodeToVerify {
  TokenId token = -1;
  std::int32_t parent = -1;  // a node, or -1: the root
};

// Kernels' form of backend::Choice.
struct SampledRow {
  TokenId token = -1;
  std::uint32_t finite = 1;
  float logprob = 0.0f;
  std::uint32_t rank = 0;
  std::uint32_t num_top = 0;  // entries in its list
};

// Highest logits of a piece of a row, as likely_key(): of the model's logits, and of the edited ones.
struct HighestOfPiece {
  std::uint64_t raw = 0;
  std::uint64_t edited = 0;
};

}  // namespace quire::gpu
