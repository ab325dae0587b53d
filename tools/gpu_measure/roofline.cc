
#include "gpu/gpu_ops.h"
#include "tools/gpu_measure/kernel_shapes.h"
#include "tools/gpu_measure/random_numbers.h"
#include "tools/gpu_measure/rows.h"
#include "tools/gpu_measure/stages.h"
#include "tools/gpu_measure/step_batch.h"
#include "tools/gpu_measure/timing.h"

namespace quire::gpu::measure {
namespace {

using namespace backend;

constexpr double kColdBytes = 256e6;  // much larger than an L2 cache

class Roofline {
 public:
  Roofline(const Setup& setup, Device& device, Ops& ops) : setup_(setup), device_(device), ops_(ops), random_(device) {}

  double seconds(const KernelShape& shape) {
    if (shape.kernel == "linear") return linear(shape);
    return shape.kernel == "attend" ? attend(shape) : rows(shape);
  }

 private:
  unsigned runs() const { return setup_.tiny ? 1 : 9; }
  unsigned calls() const { return setup_.tiny ? 1 : 10; }
  std::unique_ptr<Buffer> filled(std::uint32_t rows, std::uint32_t width) {
    auto buffer = ops_.make_buffer(rows, width);
    random_.fill(static_cast<const DeviceBuffer&>(*buffer).data(), std::size_t{rows} * width * sizeof(float), 4);
    return buffer;
  }

  double linear(const KernelShape& shape) {
    std::vector<std::unique_ptr<Weight>> weights;  // used in rotation, so that caches stay cold
    const WeightShape one{shape.n, shape.k, shape.weight, false};
    const auto bytes = static_cast<double>(weight_bytes(shape.n, shape.k, shape.weight));
    const auto count = setup_.tiny ? 1u : static_cast<unsigned>(std::clamp(kColdBytes / bytes, 1.0, 64.0));
    for (unsigned i = 0; i < count; ++i) weights.push_back(random_.weight(ops_, one));
    const auto x = filled(shape.rows, shape.k);
    const auto out = ops_.make_buffer(shape.rows, shape.n);
    return seconds_of(device_, runs(), calls(),
                      [&](unsigned i) { ops_.linear(*x, *weights[i % weights.size()], shape.rows, *out); });
  }

  double attend(const KernelShape& shape) {
    const StepBatch batch(shape.rows / shape.rows_each, shape.rows_each, shape.positions);
    const HeadsOfShape& heads = shape.heads;
    const std::vector<float> angles(heads.head_dim / 2, 0.5f);
    const auto rope = ops_.upload_rope(angles, angles, heads.head_dim / 2);
    AttentionSpec spec;
    spec.num_heads = heads.num_heads;
    spec.num_kv_heads = heads.num_kv_heads;
    spec.head_dim = heads.head_dim;
    spec.scale = 0.1f;
    spec.rope = rope.get();
    // Number of layers, used in rotation, so that caches stay cold.
    const double bytes = cost_of(shape).bytes;
    const auto layers = setup_.tiny ? 1u : static_cast<unsigned>(std::clamp(kColdBytes / bytes, 1.0, 32.0));
    const auto cache = ops_.make_kv({backend::kv_layers(layers, heads.num_kv_heads, heads.head_dim),
                                     StepBatch::kBlockTokens, batch.num_blocks(), shape.kv});
    random_.fill_cache(*cache);
    const auto qkv = filled(shape.rows, spec.qkv_width());
    const auto out = ops_.make_buffer(shape.rows, spec.q_width());
    ops_.begin(batch.view());
    return seconds_of(device_, runs(), calls(), [&](unsigned i) {
      spec.layer = i % layers;
      ops_.attend(spec, *qkv, *cache, *out);
    });
  }

  double rows(const KernelShape& shape) {
    const StepBatch batch(1, shape.rows, shape.rows);
    ops_.begin(batch.view());
    const auto out = ops_.make_buffer(shape.rows, shape.n);
    if (shape.kernel == "act_mul") {
      const auto in = filled(shape.rows, 2 * shape.n);
      return seconds_of(device_, runs(), calls(),
                        [&](unsigned) { ops_.activate(*in, backend::Activation::kSilu, true, shape.rows, *out); });
    }
    const auto in = filled(shape.rows, shape.n);
    const auto scale = ops_.upload(std::vector<float>(shape.n, 1.0f));
    return seconds_of(device_, runs(), calls(), [&](unsigned) {
      ops_.norm(*in, {scale.get(), 1e-5f}, shape.rows, *out);
    });
  }

  const Setup& setup_;
  Device& device_;
  Ops& ops_;
  RandomNumbers random_;
};

boost::json::object row_of(const KernelShape& shape, double seconds, const Rates& rates) {
  const Cost cost = cost_of(shape);
  boost::json::object row = {{"kernel", shape.kernel},
                             {"of", shape.of},
                             {"type", shape.type()},
                             {"rows", shape.rows},
                             {"n", shape.n},
                             {"k", shape.k},
                             {"positions", shape.positions},
                             {"seconds", seconds},
                             {"bytes_per_s", cost.bytes / seconds},
                             {"flops_per_s", cost.flops / seconds}};
  if (rates.bytes_per_s > 0 && rates.flops_per_s > 0) {
    row["least_s"] = least_seconds(cost, rates);
    row["of_least"] = least_seconds(cost, rates) / seconds;
  }
  return row;
}

}  // namespace

boost::json::object roofline(const Setup& setup) {
  const Deadline deadline(setup.seconds);
  std::unique_ptr<Device> made = setup.make_device();
  Device& device = *made;
  const auto ops = make_gpu_ops(
      std::move(made), {.max_rows = 512, .max_table_entries = 1u << 20, .linear_warpgroups = setup.linear_warpgroups});
  Roofline roofline(setup, device, *ops);
  Rows rows;
  bool all = true;
  for (const KernelShape& shape : kernel_shapes(setup.tiny)) {
    if (!setup.kernel.empty() && shape.kernel != setup.kernel) continue;
    if (deadline.over()) {
      all = false;
      break;
    }
    rows.add(row_of(shape, roofline.seconds(shape), setup.rates));
  }
  return {{"device", device.name()}, {"rows", rows.take()}, {"failed", 0}, {"all", all}};
}

}  // namespace quire::gpu::measure
