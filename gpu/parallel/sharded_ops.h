// core/backend's ops on several GPUs at once, the ranks of a tensor-parallel model: each does its share of every layer by ops of its own
// (gpu/gpu_ops.h), and what the next op needs of all of them is exchanged in between.
//   A layer     norm (all ranks, the same) · q, k, v and attention of a rank's heads → gather · a rank's outputs of O → gather and add ·
//               norm · a rank's gates and products → gather · a rank's outputs of down → gather and add
//   Embedding   a rank has the rows of its tokens, and −0 for others: summed over ranks
//   Logits      a rank's tokens → gather; then every rank chooses, for itself and alike
// Bits    those of one GPU, for any number of ranks: every sum is finished on one rank in that GPU's order, and the one sum over ranks adds
//         nothing but −0. The usual way (Megatron-LM) cuts O and down by their inputs and adds partial sums over ranks: half as
//         many exchanges, but what comes out depends on how many ranks there are and, in NCCL, on how long the message is: on the number
//         of rows of a step. No numeric mode could name that.
// Shape   sharded_tensors.h.
// Owner   owns the devices.
// Thread  engine, after start. Every op is asked of all ranks before anything waits for one of them (gpu/runtime/ranks.h).
// Fails   StartError: as one GPU; or kv heads that the ranks cannot share out evenly.
#pragma once

#include <memory>

#include "core/backend/ops.h"
#include "gpu/gpu_ops.h"
#include "gpu/parallel/exchange.h"
#include "gpu/parallel/nccl.h"
#include "gpu/runtime/ranks.h"

namespace quire::gpu {

// options: each rank's. Steps are not captured: a rank whose step is instantiated could wait for one that was not begun.
// library: for long messages; null where ranks share a GPU.
std::unique_ptr<backend::Ops> make_sharded_ops(Ranks ranks, const GpuOptions& options,
                                               const ExchangeOptions& exchange = {},
                                               std::unique_ptr<Nccl> library = nullptr);

}  // namespace quire::gpu
