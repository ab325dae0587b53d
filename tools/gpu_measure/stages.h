// The stages of a measurement: each makes a device, measures one thing and returns one JSON object.
//   ceilings  limits of the device                  kernels  each op against the CPU's, on random numbers
//   roofline  each op's time against its minimum    decode   steps of a whole model by sequences and context
//   strict    bits of a row: alone, with other sequences, in chunks, after a draft        gaps  time of a step by op
// Shape   {"device": name, "rows": [{…}, …]}, and "failed": the number of rows with "ok": false.
// Thread  main, in the engine's role.
// Fails   StartError: no device, no memory for the model. A failure of a single row is reported in the row.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/tensors.h"
#include "core/base/thread_role.h"
#include "gpu/costs.h"
#include "gpu/runtime/device.h"

namespace quire::gpu::measure {

struct Setup {
  std::function<std::unique_ptr<Device>()> make_device;
  bool tiny = false;  // so small that a simulator can run it
  // Stage kernels: the smallest cases that reach every kernel, for tools that make it a hundred times slower.
  bool middle = false;
  std::string model = "1b";  // a name of model_shapes.h; "tiny" if `tiny`
  std::optional<backend::Format> quantize = std::nullopt;
  backend::KvType kv = backend::KvType::kBF16;
  // Uses the warpgroup instructions of sm_90a (gpu/gpu_ops.h).
  bool linear_warpgroups = true;
  bool overlap = true;          // programmatic dependent launch (gpu/gpu_ops.h)
  int carveout = -1;            // percentage of shared memory (gpu/gpu_ops.h)
  std::string kernel;           // roofline: measure only this kernel; empty: all
  std::uint32_t sequences = 0;  // of a step, in stages that take it; 0: the stage's default
  std::uint32_t context = 512;
  Rates rates{};         // of this machine, if known, as the basis of fractions
  double seconds = 400;  // after this time nothing new is begun
};

boost::json::object ceilings(const Setup& setup);
boost::json::object kernels(const Setup& setup);
boost::json::object roofline(const Setup& setup);
boost::json::object decode(const Setup& setup) REQUIRES(engine_role);
boost::json::object strict(const Setup& setup) REQUIRES(engine_role);
boost::json::object gaps(const Setup& setup) REQUIRES(engine_role);

}  // namespace quire::gpu::measure
