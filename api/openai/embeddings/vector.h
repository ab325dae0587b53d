// A pooled prompt as the vector that a client gets.
//   v = sums / rows, of that the first `dimensions`, and where wanted v / max(|v|, 1e-12): in f64, sums over ascending
//   indices, rounded once, to f32
// Thread  any; pure functions.
// Source  Matryoshka truncation: Kusupati et al. 2022; the order and the least length are PyTorch's normalize, as vLLM calls
//         it. Base64: RFC 4648, section 4.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/bridge/prompt_embedding.h"

namespace quire::api::openai {

std::vector<float> vector_of(const bridge::PromptEmbedding& embedding, std::size_t dimensions, bool normalize);

// Their bytes, little endian.
std::string base64_of(std::span<const float> numbers);

}  // namespace quire::api::openai
