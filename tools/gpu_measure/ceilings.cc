
#include "core/backend/ops.h"
#include "gpu/gpu_ops.h"
#include "tools/gpu_measure/random_numbers.h"
#include "tools/gpu_measure/rows.h"
#include "tools/gpu_measure/stages.h"
#include "tools/gpu_measure/timing.h"

namespace quire::gpu::measure {
namespace {

// Copies the same bytes repeatedly; they are much larger than the caches. The rate counts both reads and writes.
boost::json::object copying(Device& device, RandomNumbers& random, std::size_t bytes, unsigned runs) {
  const DeviceMemory from(device, bytes, "a copy's source");
  const DeviceMemory to(device, bytes, "a copy's target");
  random.fill(from.data(), bytes, 4);
  const double seconds = seconds_of(device, runs, 4, [&](unsigned) { device.copy(to.data(), from.data(), bytes); });
  return {{"what", "copy"},
          {"bytes", bytes},
          {"seconds", seconds},
          {"bytes_per_s", 2.0 * static_cast<double>(bytes) / seconds}};
}

// Time to launch a kernel: one that adds a row of four floats, repeatedly, with or without programmatic dependent
// launch.
boost::json::object launching(Device& device, bool overlap, unsigned runs, unsigned calls) {
  device.let_kernels_overlap(overlap);
  const DeviceMemory x(device, 256, "a launch");
  device.fill(x.data(), std::byte{0}, x.bytes());
  const double seconds = seconds_of(device, runs, calls, [&](unsigned) {
    device.start(device.kernels().add, {1, 1}, {x.as<float>(), x.as<const float>(), 4});
  });
  return {{"what", overlap ? "launch, dependent" : "launch"}, {"seconds", seconds}};
}

boost::json::object bringing(Device& device, const char* what, std::size_t bytes, unsigned runs) {
  const DeviceMemory x(device, bytes, "a packet");
  device.fill(x.data(), std::byte{0}, bytes);
  std::vector<std::byte> host(bytes);
  const bool up = what[0] == 'u';
  std::vector<double> seconds;
  for (unsigned run = 0; run < runs; ++run) {
    const Deadline watch(0);
    if (up) device.upload(x.data(), host.data(), bytes);
    device.download(host.data(), x.data(), up ? 1 : bytes);  // synchronises
    seconds.push_back(watch.passed());
  }
  return {{"what", what}, {"bytes", bytes}, {"seconds", median(seconds)}};
}

// Rate of the tensor cores in this backend's own linear, with as many rows as a prompt has.
boost::json::object multiplying(const Setup& setup, bool warpgroups, std::uint32_t side, std::uint32_t rows,
                                unsigned runs) {
  std::unique_ptr<Device> made = setup.make_device();
  Device& device = *made;
  const auto made_ops = make_gpu_ops(std::move(made), {.max_rows = rows, .linear_warpgroups = warpgroups});
  backend::Ops& ops = *made_ops;
  RandomNumbers random(device);
  const auto weight = random.weight(ops, {side, side, backend::Format::kBF16, false});
  const auto x = ops.make_buffer(rows, side);
  const auto out = ops.make_buffer(rows, side);
  random.fill(static_cast<const DeviceBuffer&>(*x).data(), std::size_t{rows} * side * sizeof(float), 4);
  const double seconds = seconds_of(device, runs, 2, [&](unsigned) { ops.linear(*x, *weight, rows, *out); });
  return {{"what", warpgroups ? "own bf16 matrix by warpgroups" : "own bf16 matrix"},
          {"side", side},
          {"seconds", seconds},
          {"flops_per_s", 2.0 * side * side * rows / seconds}};
}

}  // namespace

boost::json::object ceilings(const Setup& setup) {
  const std::unique_ptr<Device> made = setup.make_device();
  Device& device = *made;
  const std::uint32_t rows = setup.tiny ? 33 : 2048;
  const std::uint32_t side = setup.tiny ? 64 : 8192;
  const unsigned runs = setup.tiny ? 2 : 20;
  RandomNumbers random(device);
  Rows out;
  for (const std::size_t mebi : setup.tiny ? std::vector<std::size_t>{1} : std::vector<std::size_t>{64, 1024, 4096}) {
    out.add(copying(device, random, mebi << 20, runs));
  }
  for (const bool overlap : {false, true}) out.add(launching(device, overlap, runs, setup.tiny ? 4 : 500));
  out.add(bringing(device, "upload, and wait", 16384, runs));
  out.add(bringing(device, "download", 4096, runs));
  for (const bool warpgroups : {false, true}) {
    if (warpgroups && !device.runs(device.kernels().linear.warpgroups.bf16.many_tiles)) continue;
    out.add(multiplying(setup, warpgroups, side, rows, setup.tiny ? 1 : 5));
  }
  return {{"device", device.name()}, {"rows", out.take()}, {"failed", 0}};
}

}  // namespace quire::gpu::measure
