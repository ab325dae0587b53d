// The numeric mode: everything besides a request that its tokens depend on, as one line of text.
//   checkpoint=1f…9c backend=cpu dtype=bf16 kv=f32 model=llama E=256 … rope=default(theta=10000)
// dtype: the checkpoint's own, or what --quantize asked for.
// Two servers with the same line give the same tokens. Printed at start; system_fingerprint is its hash.
// Shape   the checkpoint digest covers every byte of every tensor used, its name, dtype and shape; not the files' layout:
//         a sharded copy has the digest of the original. Not cryptographic: it tells models apart, it stops no forger.
//         All bytes, not a sample, because it is cheap: 14 GB/s of bytes in cache, where packing is about to read them.
// Thread  any; pure.
// Source  ours: four lanes of xor and 64x64→128-bit multiply folding, the mixing of wyhash (Wang Yi 2019).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/model/config.h"
#include "core/model/safetensors.h"

namespace quire::model {

// 64 bits over all bytes.
std::uint64_t hash_bytes(FileBytes bytes, std::uint64_t seed);

// Of a tensor's name, dtype, shape and bytes.
std::uint64_t tensor_digest(const Tensor& tensor);

// The sum of its tensors' digests: it has no order, so that loading can add them up as it packs.
std::uint64_t checkpoint_digest(const Checkpoint& checkpoint);

// `backend`: Ops::description(), of which the part up to '/' counts: instruction sets and threads do not change tokens.
std::string numeric_mode(const Config& config, std::uint64_t digest, std::string_view backend,
                         backend::WeightType weight_type, backend::KvType kv_dtype);

// "fp_" and 16 hexadecimal digits.
std::string fingerprint(std::string_view mode);

}  // namespace quire::model
