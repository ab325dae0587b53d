// Hashes of bytes, of tensors and of a checkpoint.
// Shape   a checkpoint's digest covers every byte of every tensor used, its name, dtype and shape, but not the files'
//         layout: a sharded copy has the digest of the original. It is not cryptographic: it distinguishes models, but
//         does not detect forgery. All bytes are hashed, not a sample, since that is cheap: 14 GB/s for bytes in cache,
//         and packing reads the same bytes next.
// Thread  any; pure.
// Source  ours: four lanes of xor and 64x64→128-bit multiply folding, the mixing of wyhash (Wang Yi 2019).
#pragma once

#include <cstdint>

#include "core/model/source/model_files.h"
#include "core/model/source/safetensors.h"

namespace quire::model {

// 64-bit hash of all bytes.
std::uint64_t hash_bytes(FileBytes bytes, std::uint64_t seed);

// Digest of a tensor's name, dtype, shape and bytes.
std::uint64_t tensor_digest(const Tensor& tensor);

// Sum of the tensors' digests. It does not depend on their order, so that loading can add them up while packing.
std::uint64_t checkpoint_digest(const Checkpoint& checkpoint);

}  // namespace quire::model
