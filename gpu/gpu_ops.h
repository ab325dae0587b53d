// The GPU backend: core/backend's ops as kernels on a device, with its equations and, but for three types of weights, its bits.
//   linear, of bf16, w16a16, int8 and int4: rows are rounded to bf16 and the tensor cores multiply, in an order that is the same for
//   any number of rows (gpu/kernels/linear.h). Everything else is the CPU's, bit for bit.
// Not yet: caches of fp8, int8 and int4, votes: refused while starting. choose() runs on the host.
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
