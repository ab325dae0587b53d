// The numeric mode: one line of text with everything, apart from a request itself, that the request's tokens depend on.
//   checkpoint=1f…9c backend=cpu dtype=bf16 kv=f32 model=llama E=256 … rope=default(theta=10000)
// dtype is the checkpoint's own type, or the type that --quantize requested; "blocks" for the checkpoint's own blocks.
// If there are matrices in blocks, activations=int8 or f32 follows: the form in which these take their input.
// Two servers with the same line give the same tokens for the same request. Printed at start; system_fingerprint is its
// hash.
// Thread  any; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/backend/tensors.h"
#include "core/model/spec.h"

namespace quire::model {

// `backend`: Ops::description(), used up to '/': instruction sets and threads do not change tokens.
// `blocks`: the activation form of matrices in blocks; nothing: there are none.
std::string numeric_mode(const ModelSpec& config, std::uint64_t digest, std::string_view backend,
                         backend::Format weights, backend::KvType kv_dtype,
                         std::optional<backend::Format::Activation> blocks = std::nullopt);

// "fp_" and 16 hexadecimal digits.
std::string fingerprint(std::string_view mode);

}  // namespace quire::model
