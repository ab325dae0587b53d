// Ops of core/backend on several GPUs, the ranks of a tensor-parallel model: each rank runs its shard of every layer by
// ops of its own (gpu/gpu_ops.h); collectives in between give all ranks what the next op needs.
//   Layer      norm (the same on all ranks) · q, k, v and attention of a rank's heads → all-gather · a rank's outputs
//              of O → all-gather and add · norm · a rank's gates and products → all-gather · a rank's outputs of down →
//              all-gather and add
//   Embedding  a rank has the rows of its tokens, and −0 for others → all-reduce
//   Logits     a rank's tokens → all-gather; then every rank samples, for itself and with the same results
// Bits    those of one GPU, for any number of ranks: every sum is finished on one rank in that GPU's order, and the one
//         sum over ranks adds nothing but −0. Megatron-LM cuts O and down by their inputs and adds partial sums over
//         ranks: half as many collectives, but results depend on the number of ranks and, in NCCL, on the length of the
//         message, that is on the number of rows of a step. No numeric mode could name that.
// Shape   sharded_tensors.h.
// Owner   owns the devices.
// Thread  engine, after start. Every op is queued on all ranks before anything waits for one of them
//         (gpu/runtime/ranks.h).
// Fails   StartError: as one GPU; or the kv heads do not divide evenly by the number of ranks.
#pragma once

#include <memory>

#include "core/backend/ops.h"
#include "gpu/gpu_ops.h"
#include "gpu/parallel/collective.h"
#include "gpu/parallel/nccl.h"
#include "gpu/runtime/ranks.h"

namespace quire::gpu {

// options: of each rank. Steps are not captured: a rank whose graph is instantiated could wait for one whose step has
// not begun. library: for long messages; null if ranks share a GPU.
std::unique_ptr<backend::Ops> make_sharded_ops(Ranks ranks, const GpuOptions& options,
                                               const CollectiveOptions& collective = {},
                                               std::unique_ptr<Nccl> library = nullptr);

}  // namespace quire::gpu
