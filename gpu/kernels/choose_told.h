// Inputs and results of the sampling kernels for a step's logits rows: plain data, the same bytes on host and device.
// Shape   one packed buffer: rows, walks, nodes, then what edits list. Rows of a walk stand together, the root's first.
//         Offsets are in bytes from the buffer's beginning.
// Owner   Chooser (gpu/chooser.h) packs; everything lives as long as the kernels of its group.
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

// backend::LogitsRow.
struct RowToChoose {
  static constexpr std::uint32_t kNoEdits = ~0u;

  sample::Params params;
  std::uint32_t logits_row = 0;  // of the step: its row of logits, and where what it says goes
  std::uint32_t position = 0;
  sample::Domain domain = sample::Domain::kTarget;
  TokenId given = -1;
  std::uint32_t list = 0;         // where its likeliest begin
  std::uint32_t copy = kNoEdits;  // which of the edited rows is its; else what follows means nothing
  float repetition = 1.0f;
  float frequency = 0.0f;
  float presence = 0.0f;
  std::uint32_t num_each = 0;
  std::uint32_t num_forbidden = 0;
  std::uint32_t num_allowed = 0;  // words; 0: all are
  std::size_t each = 0;
  std::size_t forbidden = 0;
  std::size_t allowed = 0;
};

struct WalkToChoose {
  std::uint32_t first_row = 0;  // of the rows here
  std::uint32_t first_node = 0;
  std::uint32_t num_nodes = 0;
  std::uint64_t lookahead_nodes = 0;
};

struct NodeOfWalk {
  TokenId token = -1;
  std::int32_t parent = -1;  // a node, or -1: the root
};

// backend::Choice.
struct Said {
  TokenId token = -1;
  std::uint32_t finite = 1;
  float logprob = 0.0f;
  std::uint32_t rank = 0;
  std::uint32_t num_top = 0;  // in its list
};

// The highest logits of a piece of a row, as likely_key() has them: as the model gave it, and with its edits.
struct HighestOfPiece {
  std::uint64_t raw = 0;
  std::uint64_t edited = 0;
};

}  // namespace quire::gpu
