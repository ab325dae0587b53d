// The vector that a client gets for a pooled prompt.
//   v = the first `dimensions` numbers of sums / rows; with `normalize` v / max(|v|, 1e-12): in f64, summed over
//   ascending indices, rounded once, to f32
// Thread  any; pure functions.
// Source  Matryoshka truncation: Kusupati et al. 2022; truncation before normalisation, and the least length, are those
//         of vLLM, which calls PyTorch's normalize. Base64: RFC 4648, section 4.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/bridge/prompt_embedding.h"

namespace quire::api {

std::vector<float> vector_of(const bridge::PromptEmbedding& embedding, std::size_t dimensions, bool normalize);

// Base64 of the numbers' bytes: f32, little endian.
std::string base64_of(std::span<const float> numbers);

}  // namespace quire::api
