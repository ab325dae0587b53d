// What is measured, a stage at a time: each makes a device, does its part and answers with one JSON object.
//   ceilings  what the device can do at all        kernels  each op beside the CPU's, on random numbers
//   roofline  each op's time beside the least      decode   steps of a whole model by sequences and context
//   strict    a row's bits alone, in company, in chunks, behind a draft        gaps  where a step's time goes
// Shape   {"device": name, "rows": [{…}, …]}, and "failed": how many rows say "ok": false.
// Thread  main, as the engine's.
// Fails   StartError: no device, no memory for the model. What a row cannot do it says.
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
  bool tiny = false;         // so little that a simulator does it
  bool middle = false;       // kernels: as little as reaches every kernel, for tools that take a hundred times as long
  std::string model = "1b";  // model_shapes.h; "tiny" where all is
  backend::Quantize quantize = backend::Quantize::kNone;
  backend::KvType kv = backend::KvType::kBF16;
  bool linear_warpgroups = true;  // with instructions of sm_90a's own (gpu/gpu_ops.h)
  bool overlap = true;            // kernels begin before their turn (gpu/gpu_ops.h)
  int carveout = -1;              // shared memory's percentage of what a multiprocessor has (gpu/gpu_ops.h)
  std::string kernel;             // roofline: of these alone; empty: of all
  std::uint32_t sequences = 0;    // of a step, where a stage asks for it; 0: the stage's own
  std::uint32_t context = 512;
  Rates rates{};         // of this machine, where known: fractions are of these
  double seconds = 400;  // begin nothing new behind these
};

boost::json::object ceilings(const Setup& setup);
boost::json::object kernels(const Setup& setup);
boost::json::object roofline(const Setup& setup);
boost::json::object decode(const Setup& setup) REQUIRES(engine_role);
boost::json::object strict(const Setup& setup) REQUIRES(engine_role);
boost::json::object gaps(const Setup& setup) REQUIRES(engine_role);

}  // namespace quire::gpu::measure
