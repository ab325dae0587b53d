// The GPU backend: core/backend's ops as kernels on a device, with its equations and, but for bf16, its bits.
//   linear, of bf16 and w16a16: rows are rounded to bf16 and the tensor cores multiply, in an order that is the same for any
//   number of rows (gpu/kernels/linear.h).
//   attend, but of caches of f32: q and the weights of V are rounded to bf16 likewise (gpu/kernels/attention_tiles.h).
//   Everything else is the CPU's, bit for bit.
// Not yet: int4, w8a8, w4a8: refused while starting. choose() runs on the host.
// Thread  made by any; then the engine thread.
// Fails   StartError: what it does not have, or memory that is not there.
#pragma once

#include <cstdint>
#include <memory>

#include "core/backend/ops.h"
#include "gpu/runtime/device.h"

namespace quire::gpu {

struct GpuOptions {
  std::uint32_t max_rows = 512;  // T never exceeds this: scratch is sized by it
};

std::unique_ptr<backend::Ops> make_gpu_ops(std::unique_ptr<Device> device, const GpuOptions& options);

}  // namespace quire::gpu
