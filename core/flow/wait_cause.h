// Cause of a sequence's first wait, as of the last plan that left it waiting.
#pragma once

#include <cstdint>

namespace quire::flow {

enum class WaitCause : std::uint8_t {
  kNone,    // none but the step in flight: the first plan after its arrival admitted it
  kPlaces,  // max_num_seqs sequences were running
  kRows,    // the step had no row, or no logits row, left
  kBlocks,  // too few KV blocks were free
  kPrefix,  // a running sequence was computing a prefix of its prompt
};

// Name of the cause, a literal; null for kNone.
constexpr const char* name_of(WaitCause cause) {
  switch (cause) {
    case WaitCause::kNone:
      return nullptr;
    case WaitCause::kPlaces:
      return "places";
    case WaitCause::kRows:
      return "rows";
    case WaitCause::kBlocks:
      return "blocks";
    case WaitCause::kPrefix:
      return "prefix";
  }
  return nullptr;
}

}  // namespace quire::flow
