// Strictness: the logits of one row have the same bits in every composition of the step around it. Also, whether the
// warpgroup instructions of sm_90a give the same bits as the others: only then may they be used for some numbers of
// rows (GpuOptions::linear_warpgroups).
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "gpu/gpu_ops.h"
#include "tools/gpu_measure/kernel_shapes.h"
#include "tools/gpu_measure/measured_model.h"
#include "tools/gpu_measure/random_numbers.h"
#include "tools/gpu_measure/rows.h"
#include "tools/gpu_measure/step_batch.h"
#include "tools/gpu_measure/timing.h"

namespace quire::gpu::measure {
namespace {

// A way to compute the watched sequence: its place among others, the chunks of its prompt, the rows of its last step.
struct Way {
  std::string name;
  std::uint32_t chunk = 0;
  std::uint32_t before = 0;  // other sequences in the step, before it and after it
  std::uint32_t behind = 0;
  std::uint32_t last_rows = 1;  // more than 1: as in draft verification
  // Byte that fills the K and V that were never written; empty: random numbers.
  std::optional<std::byte> unseen{};
};

// A byte that, repeated, gives a finite number of the type with about the largest magnitude.
std::byte huge(backend::KvType type) {
  const bool is_float = type == backend::KvType::kBF16 || type == backend::KvType::kF32;
  return is_float ? std::byte{0x7f} : std::byte{0x7e};
}

std::vector<Way> ways(bool tiny, backend::KvType type) {
  const std::byte zero{0};
  const std::byte below = huge(type) | std::byte{0x80};
  if (tiny) {
    return {{"alone", 8, 0, 0},
            {"chunks of 3", 3, 0, 0},
            {"in company", 2, 1, 1},
            {"last rows 3", 8, 0, 0, 3},
            {"unseen huge", 3, 0, 0, 1, huge(type)},
            {"unseen huge below 0", 3, 0, 0, 1, below},
            {"unseen 0", 3, 0, 0, 1, zero}};
  }
  return {{"alone", 512, 0, 0},
          {"chunks of 256", 256, 0, 0},
          {"chunks of 100", 100, 0, 0},
          {"chunks of 33", 33, 0, 0},
          {"first of 7", 64, 0, 6},
          {"last of 33", 15, 32, 0},
          {"amid 256", 1, 100, 155},
          {"last rows 2", 512, 0, 0, 2},
          {"last rows 9", 512, 0, 0, 9},
          {"last rows 64", 512, 0, 0, 64},
          {"unseen huge", 512, 0, 0, 1, huge(type)},
          {"unseen huge in chunks of 33", 33, 0, 0, 1, huge(type)},
          {"unseen huge below 0", 33, 0, 0, 1, below},
          {"unseen 0", 33, 0, 0, 1, zero}};
}

// Logits of the watched sequence's last row. It is sequence 0 at every place in the step.
std::vector<float> logits_of(const Way& way, MeasuredModel& model, std::uint32_t length) REQUIRES(engine_role) {
  const std::uint32_t others = way.before + way.behind;
  const std::uint32_t vocab = model.shape().vocab;
  const auto runner = model.runner(1 + others, length);
  if (way.unseen) model.ops().random().fill_cache(runner->cache(), *way.unseen);
  std::uint32_t done = 0;
  while (done < length) {
    const std::uint32_t prompt = length - way.last_rows;
    const std::uint32_t rows = done < prompt ? std::min(way.chunk, prompt - done) : way.last_rows;
    // The other sequences have prompts of their own and run as many rows.
    std::vector<PlannedRows> step;
    for (std::uint32_t i = 0; i < way.before; ++i) step.push_back({1 + i, rows, done + rows});
    step.push_back({0, rows, done + rows});
    for (std::uint32_t i = 0; i < way.behind; ++i) step.push_back({1 + way.before + i, rows, done + rows});
    runner->submit(plan_of(step, length, vocab));
    runner->collect();
    done += rows;
  }
  std::vector<float> all(std::size_t{1 + others} * vocab);
  runner->read_logits(all);
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(std::size_t{way.before} * vocab);
  return {first, first + vocab};
}

// Result of a linear for all rows, on random numbers that are the same in each call.
std::vector<float> multiplied(const Setup& setup, backend::Format type, std::uint32_t n, std::uint32_t k,
                              std::uint32_t rows, bool warpgroups) {
  std::unique_ptr<Device> made = setup.make_device();
  Device& device = *made;
  const auto ops = make_gpu_ops(std::move(made), {.max_rows = rows, .linear_warpgroups = warpgroups});
  RandomNumbers random(device);
  const auto weight = random.weight(*ops, {n, k, type, false});
  const auto x = ops->make_buffer(rows, k);
  const auto out = ops->make_buffer(rows, n);
  random.fill(static_cast<DeviceBuffer&>(*x).data(), std::size_t{rows} * k * sizeof(float), sizeof(float));
  ops->linear(*x, *weight, rows, *out);
  std::vector<float> values(std::size_t{rows} * n);
  ops->read(*out, 0, rows, values);
  return values;
}

// Compares two results. Different bits are not a failure, as they only forbid the use of warpgroups ("may_be_used"); an
// error beyond rounding is one.
boost::json::object compared(const std::string& what, const std::vector<float>& plain, const std::vector<float>& other,
                             double tolerance) {
  std::size_t different = 0;
  double error = 0;
  double length = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (std::memcmp(&plain[i], &other[i], sizeof(float)) != 0) ++different;
    // Inf and NaN come from random scales.
    if (std::memcmp(&plain[i], &other[i], sizeof(float)) == 0 && !std::isfinite(plain[i])) continue;
    error += (double{other[i]} - plain[i]) * (double{other[i]} - plain[i]);
    length += double{plain[i]} * plain[i];
  }
  const double relative = std::sqrt(error / length);
  return {{"what", what},
          {"numbers", plain.size()},
          {"different", different},
          {"relative", std::isfinite(relative) ? relative : 1e9},
          {"may_be_used", different == 0},
          {"ok", relative <= tolerance}};
}

boost::json::object linear_by_warpgroups(const Setup& setup, backend::Format type, std::uint32_t n, std::uint32_t k,
                                         std::uint32_t rows) {
  return compared(fmt::format("warpgroups, {}, {} x {}, {} rows", backend::name_of(type), n, k, rows),
                  multiplied(setup, type, n, k, rows, false), multiplied(setup, type, n, k, rows, true), k * 0x1p-24);
}

bool has_warpgroups(const Setup& setup) {
  const std::unique_ptr<Device> device = setup.make_device();
  return device->runs(device->kernels().linear.warpgroups.bf16.many_tiles);
}

}  // namespace

boost::json::object strict(const Setup& setup) {
  const Deadline deadline(setup.seconds);
  const std::uint32_t length = setup.tiny ? 19 : 700;
  MeasuredModel model(setup, setup.tiny ? 8 : 512, setup.tiny ? 64 : 1024, 1u << 16);
  std::vector<float> alone;
  Rows rows;
  bool all = true;
  for (const Way& way : ways(setup.tiny, setup.kv)) {
    if (deadline.over()) {
      all = false;
      break;
    }
    const std::vector<float> logits = logits_of(way, model, length);
    if (alone.empty()) alone = logits;
    std::size_t different = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (std::memcmp(&logits[i], &alone[i], sizeof(float)) != 0) ++different;
    }
    rows.add({{"what", way.name}, {"numbers", logits.size()}, {"different", different}, {"ok", different == 0}});
  }
  if (has_warpgroups(setup)) {
    struct Layer {
      std::uint32_t n, k, rows;
    };
    // Tiles of few and of many outputs, of 64 and of 128 rows.
    const std::vector<Layer> layers =
        setup.tiny ? std::vector<Layer>{{48, 300, 33}}
                   : std::vector<Layer>{{4096, 4096, 33},  {4096, 14336, 64},  {4096, 14336, 128}, {4096, 4096, 256},
                                        {28672, 4096, 64}, {28672, 4096, 100}, {6144, 4096, 512}};
    for (const backend::Format type :
         {backend::Format::kBF16, backend::Format::kInt8, backend::Format::kFp8, backend::Format::kInt4}) {
      for (const auto& [n, k, count] : layers) rows.add(linear_by_warpgroups(setup, type, n, k, count));
    }
  }
  return {{"device", model.device().name()},
          {"model", model.shape().name},
          {"rows", rows.take()},
          {"failed", rows.num_failed()},
          {"all", all}};
}

}  // namespace quire::gpu::measure
