// What a sequence waited for at the end of its first wait, in the last plan that left it waiting.
#pragma once

#include <cstdint>

namespace quire::flow {

enum class WaitCause : std::uint8_t {
  kNone,    // nothing but the step in flight: the first plan that knew it let it in
  kPlaces,  // max_num_seqs sequences ran
  kRows,    // the step had no row left, or no row of logits
  kBlocks,  // too few KV blocks were free
  kPrefix,  // somebody else was computing the beginning of its prompt
};

// A literal; null for kNone.
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
