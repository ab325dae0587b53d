// The prefixes of --pin-prefix: whole text files, tokenised as prompts are.
// Shape   tokens: 1 .. the longest sequence - 1, so that an answer fits behind them.
// Owner   values.
// Thread  any.
// Fails   StartError with the problems of all files: missing, no plain file, empty, too long, with tokens that the model
//         has no row for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "app/memory_plan.h"
#include "core/base/ids.h"
#include "core/text/tokenizer.h"

namespace quire::app {

struct PinnedPrefix {
  std::string file;
  std::vector<TokenId> tokens;
};

std::vector<PinnedPrefix> read_pinned_prefixes(std::span<const std::string> files, const text::Tokenizer& tokenizer,
                                               std::uint32_t logits_width, std::uint32_t max_model_len);

// The blocks that `prefixes` never give back, and the longest. Counted as if they shared nothing: never too few.
MemoryRequest with_pinned(MemoryRequest request, std::span<const PinnedPrefix> prefixes);

}  // namespace quire::app
