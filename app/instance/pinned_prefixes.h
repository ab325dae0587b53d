// The prefixes of --pin-prefix: whole text files, tokenised as prompts are.
// Shape   1 to max_model_len - 1 tokens each, so that a sequence has room for an answer.
// Owner   values.
// Thread  any.
// Fails   StartError with the problems of all files: a file that is missing, not a plain file, empty or too long, or
//         whose tokens include one that the model has no row for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "app/model/memory_plan.h"
#include "core/base/ids.h"
#include "core/text/tokenizer.h"

namespace quire::app {

struct PinnedPrefix {
  std::string file;
  std::vector<TokenId> tokens;
};

std::vector<PinnedPrefix> read_pinned_prefixes(std::span<const std::string> files, const text::Tokenizer& tokenizer,
                                               std::uint32_t logits_width, std::uint32_t max_model_len);

// Adds the prefixes' blocks and the longest length to the request. Counted as if they shared no blocks: an upper bound.
MemoryRequest with_pinned(MemoryRequest request, std::span<const PinnedPrefix> prefixes);

}  // namespace quire::app
