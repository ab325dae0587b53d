// Each op on random numbers, on the GPU and on the CPU: equal bits where they are promised, else as close as f32 sums
// of that length (or of bf16, where a side rounds rows to it).
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "core/base/float_bits.h"
#include "core/cpu/cpu_ops.h"
#include "gpu/gpu_ops.h"
#include "tools/gpu_measure/kernel_shapes.h"
#include "tools/gpu_measure/rows.h"
#include "tools/gpu_measure/stages.h"
#include "tools/gpu_measure/step_batch.h"
#include "tools/gpu_measure/timing.h"

namespace quire::gpu::measure {
namespace {

using namespace backend;

std::vector<float> drawn(std::uint32_t seed, std::size_t count) {
  std::mt19937 engine(seed);
  std::vector<float> out(count);
  for (float& x : out) x = static_cast<float>(engine() >> 8) * 0x1p-23f - 1.0f;
  return out;
}

// Writes `values` to a buffer on the device: packs them as an embedding table in f32 and looks up row i for token i.
void fill(Ops& ops, Buffer& out, std::span<const float> values) {
  const auto rows = static_cast<std::uint32_t>(values.size() / out.width());
  const HostMatrix matrix{values.data(), Format::kF32, rows, out.width()};
  const auto table = ops.pack({&matrix, 1}, {});
  const StepBatch batch(1, rows, rows);
  ops.begin(batch.view());
  ops.embed(*table, 1.0f, out);
}

std::vector<float> read(Ops& ops, const Buffer& buffer, std::uint32_t rows) {
  std::vector<float> out(std::size_t{rows} * buffer.width());
  ops.read(buffer, 0, rows, out);
  return out;
}

struct Case {
  std::string what;
  bool promises_bits = true;
  double tolerance = 0;  // of |error| / |answer|, where equal bits are not promised
  std::function<std::vector<float>(Ops&)> run;
};

void add_rows(std::uint32_t width, std::uint32_t rows, std::uint32_t seed, std::vector<Case>& out) {
  out.push_back({fmt::format("norm {} x {}", rows, width), true, 0, [=](Ops& ops) {
                   const auto in = ops.make_buffer(rows, width);
                   const auto normed = ops.make_buffer(rows, width);
                   fill(ops, *in, drawn(seed, std::size_t{rows} * width));
                   ops.norm(*in, {ops.upload(drawn(seed + 1, width)).get(), 1e-5f}, rows, *normed);
                   return read(ops, *normed, rows);
                 }});
  out.push_back({fmt::format("act_mul {} x {}", rows, width), true, 0, [=](Ops& ops) {
                   const auto in = ops.make_buffer(rows, 2 * width);
                   const auto product = ops.make_buffer(rows, width);
                   fill(ops, *in, drawn(seed, std::size_t{rows} * 2 * width));
                   ops.activate(*in, Activation::kSilu, true, rows, *product);
                   return read(ops, *product, rows);
                 }});
}

void add_linear(std::uint32_t n, std::uint32_t k, std::uint32_t rows, Format format, std::uint32_t seed,
                std::vector<Case>& out) {
  const Format stored = format == Format::kF32 ? Format::kF32 : Format::kBF16;
  const bool bits = !in_tiles(format) || in_integers(format);
  // The GPU rounds rows to bf16 and the CPU does not: an error of at most 2^-9 of each number.
  const double tolerance = 0x1p-8;
  out.push_back(
      {fmt::format("linear {} {} x {}, {} rows", name_of(format), n, k, rows), bits, tolerance, [=](Ops& ops) {
         const std::vector<float> values = drawn(seed + 2, std::size_t{n} * k);
         std::vector<std::uint16_t> halves(values.size());
         std::ranges::transform(values, halves.begin(), bf16_of_f32);
         const HostMatrix matrix{stored == Format::kF32 ? static_cast<const void*>(values.data()) : halves.data(),
                                 stored, n, k};
         const std::vector<float> bias = drawn(seed + 3, n);
         const std::span<const float> biases(bias);
         const auto weight = ops.pack({&matrix, 1}, {&biases, 1}, format);
         const auto in = ops.make_buffer(rows, k);
         const auto product = ops.make_buffer(rows, n);
         fill(ops, *in, drawn(seed, std::size_t{rows} * k));
         ops.linear(*in, *weight, rows, *product);
         return read(ops, *product, rows);
       }});
}

// Block-quantised weights, times int8 and f32. Times int8, inputs of several slices are added in another order than the
// CPU's; for FP8 the GPU rounds rows to bf16.
void add_blocks(std::uint32_t n, std::uint32_t k, std::uint32_t rows, std::uint32_t seed, std::vector<Case>& out) {
  for (const backend::BlockLayout& layout : backend::block_layouts()) {
    for (const auto activation : {Format::Activation::kInt8, Format::Activation::kF32}) {
      const Format format = Format::of_blocks(layout.type, activation);
      if (!cpu::takes(format) || !gpu::takes(format) || k % layout.elements != 0) continue;
      const bool bits = !is_fp8_blocks(format) && (k <= kSliceInputs || activation == Format::Activation::kF32);
      const double tolerance = is_fp8_blocks(format) ? 0x1p-8 : 0x1p-16;
      out.push_back(
          {fmt::format("linear {} {} x {}, {} rows", name_of(format), n, k, rows), bits, tolerance, [=](Ops& ops) {
             std::vector<std::byte> blocks(n * backend::stored_bytes(format, k));
             std::uint32_t state = seed + 4;
             for (std::byte& byte : blocks) {  // two such bytes are an f16 below 1, wherever it lies
               state = state * 1664525u + 1013904223u;
               byte = static_cast<std::byte>(state >> 24 & 0x3b);
             }
             const HostMatrix matrix{blocks.data(), Format::of_blocks(layout.type), n, k};
             const auto weight = ops.pack({&matrix, 1}, {}, format);
             const auto in = ops.make_buffer(rows, k);
             const auto product = ops.make_buffer(rows, n);
             fill(ops, *in, drawn(seed, std::size_t{rows} * k));
             ops.linear(*in, *weight, rows, *product);
             return read(ops, *product, rows);
           }});
    }
  }
}

// A mixture of gated experts of width `width`: routing, products by expert, and sums with a shared expert. The router's
// logits are given, so that both sides choose the same experts.
void add_experts(std::uint32_t count, std::uint32_t top_k, std::uint32_t hidden, std::uint32_t width,
                 std::uint32_t rows, Format format, std::uint32_t seed, std::vector<Case>& out) {
  const bool bits = !in_tiles(format) || in_integers(format);
  const std::string what =
      fmt::format("{} of {} experts {} x {} {}, {} rows", top_k, count, hidden, width, name_of(format), rows);
  out.push_back({what, bits, 0x1p-7, [=](Ops& ops) {
                   const auto packed = [&](std::uint32_t n, std::uint32_t k, std::uint32_t draw) {
                     const std::vector<float> values = drawn(seed + draw, std::size_t{n} * k);
                     const HostMatrix matrix{values.data(), Format::kF32, n, k};
                     return ops.pack({&matrix, 1}, {}, format == Format::kF32 ? std::nullopt : std::optional(format));
                   };
                   std::vector<std::unique_ptr<Weight>> weights;
                   std::vector<WeightList> gate_up;
                   std::vector<WeightList> down;
                   for (std::uint32_t expert = 0; expert < count; ++expert) {
                     gate_up.emplace_back(*weights.emplace_back(packed(2 * width, hidden, 10 + 2 * expert)));
                     down.emplace_back(*weights.emplace_back(packed(hidden, width, 11 + 2 * expert)));
                   }
                   const auto buffer = [&](std::uint32_t of, std::uint32_t columns) {
                     return ops.make_buffer(of, columns);
                   };
                   const auto x = buffer(rows, hidden), shared = buffer(rows, hidden), sums = buffer(rows, hidden);
                   const auto logits = buffer(rows, count), gate = buffer(rows, 1);
                   const auto places = buffer(rows * top_k, hidden), products = buffer(rows * top_k, 2 * width);
                   const auto activated = buffer(rows * top_k, width);
                   std::uint32_t draw = 1;
                   for (Buffer* one : {x.get(), shared.get(), logits.get(), gate.get()}) {
                     fill(ops, *one, drawn(seed + draw++, std::size_t{rows} * one->width()));
                   }
                   const RouteRule rule{.num_experts = count, .top_k = top_k, .normed = true};
                   const auto routes = ops.make_routes(rows, count, top_k);
                   const ThenActivate then{activated.get()};
                   ops.route(*logits, rule, {}, rows, *routes);
                   ops.gather_by_expert(*x, *routes, rows, *places);
                   ops.linear_by_expert(*places, gate_up, *routes, rows, *products, &then);
                   ops.linear_by_expert(*activated, down, *routes, rows, *places);
                   ops.combine_experts(*places, *routes, {shared.get(), gate.get()}, rows, *sums);
                   return read(ops, *sums, rows);
                 }});
}

// A prompt of `positions` rows in steps of `chunk`. The bits equal the CPU's for f32 K and V; for other types the
// tensor cores get q and the softmax weights rounded to bf16.
void add_attention(const HeadsOfShape& shape, std::uint32_t positions, std::uint32_t chunk, KvType type,
                   std::uint32_t seed, std::vector<Case>& out) {
  out.push_back(
      {fmt::format("rope, store, attend {} over {} by {}, {} heads of {}", name_of(type), positions, chunk,
                   shape.num_heads, shape.head_dim),
       type == KvType::kF32, 0x1p-7, [=](Ops& ops) {
         const std::uint32_t half = shape.head_dim / 2;
         const auto angles = drawn(seed, std::size_t{positions} * half);
         const auto rope = ops.upload_rope(angles, angles, half);
         AttentionSpec spec;
         spec.num_heads = shape.num_heads;
         spec.num_kv_heads = shape.num_kv_heads;
         spec.head_dim = shape.head_dim;
         spec.scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
         spec.rope = rope.get();
         const StepBatch whole(1, positions, positions);
         KvShape kv{backend::kv_layers(1, shape.num_kv_heads, shape.head_dim), StepBatch::kBlockTokens,
                    whole.num_blocks(), type};
         kv.num_residual_groups = type == KvType::kInt4 ? 1 : 0;
         const auto cache = ops.make_kv(kv);
         const auto qkv = ops.make_buffer(chunk, spec.qkv_width());
         const auto attended = ops.make_buffer(chunk, spec.q_width());
         const auto rows = drawn(seed + 1, std::size_t{positions} * spec.qkv_width());
         std::vector<float> all;
         for (std::uint32_t first = 0; first < positions; first += chunk) {
           const std::uint32_t count = std::min(chunk, positions - first);
           fill(ops, *qkv,
                std::span(rows).subspan(std::size_t{first} * spec.qkv_width(), std::size_t{count} * spec.qkv_width()));
           const StepBatch step(1, count, first + count);
           ops.begin(step.view());
           ops.rope_store(spec, *qkv, *cache);
           ops.attend(spec, *qkv, *cache, *attended);
           const std::vector<float> some = read(ops, *attended, count);
           all.insert(all.end(), some.begin(), some.end());
         }
         return all;
       }});
}

// Cases for every kernel of layers and attention: tiles of few and of many outputs and rows, inputs longer than a
// slice, chunks of one and of several query tiles, one KV split and more.
std::vector<Case> middle_cases(std::uint32_t seed) {
  std::vector<Case> out;
  for (const std::uint32_t rows : {1u, 9u, 33u, 130u}) {
    add_rows(700, rows, seed, out);
    for (const Format type : kNamedFormats) {
      if (type == Format::kF16) continue;
      add_linear(400, 700, rows, type, seed, out);
      if (rows > 9 && in_tiles(type)) add_linear(17000, 66, rows, type, seed, out);
    }
    add_blocks(400, 256, rows, seed, out);
    add_blocks(400, 768, rows, seed, out);
    for (const Format type : {Format::kF32, Format::kBF16, Format::kW8A8, Format::kFp8}) {
      add_experts(20, 3, 320, 96, rows, type, seed, out);
    }
  }
  for (const KvType type : kAllKvTypes) {
    add_attention({4, 2, 64}, 280, 130, type, seed, out);
    add_attention({4, 2, 64}, 30, 1, type, seed, out);
  }
  return out;
}

std::vector<Case> cases(bool tiny, std::uint32_t seed) {
  std::vector<Case> out;
  for (const std::uint32_t rows : tiny ? std::vector{1u, 3u} : std::vector{1u, 16u, 256u}) {
    for (const std::uint32_t width : tiny ? std::vector{40u} : std::vector{2048u, 4096u, 14336u}) {
      add_rows(width, rows, seed, out);
    }
    for (const Format type : kNamedFormats) {
      if (type == Format::kF16) continue;
      add_linear(tiny ? 24 : 1000, tiny ? 40 : 4096, rows, type, seed, out);
    }
    add_blocks(tiny ? 24 : 1000, tiny ? 256 : 4096, rows, seed, out);
    for (const Format type : {Format::kF32, Format::kBF16, Format::kW8A8, Format::kInt4}) {
      if (tiny) add_experts(4, 2, 40, 16, rows, type, seed, out);
      if (!tiny) add_experts(64, 8, 2048, 768, rows, type, seed, out);
    }
  }
  for (const KvType type : kAllKvTypes) {
    if (tiny) {
      add_attention({2, 1, 8}, 20, 7, type, seed, out);
      continue;
    }
    add_attention({32, 8, 64}, 600, 512, type, seed, out);
    add_attention({8, 2, 128}, 3000, 512, type, seed, out);
    add_attention({8, 2, 128}, 300, 1, type, seed, out);
  }
  return out;
}

boost::json::object compare(const Case& one, std::uint32_t seed, Ops& gpu, Ops& cpu) {
  const std::vector<float> expected = one.run(cpu);
  const std::vector<float> got = one.run(gpu);
  std::size_t different = 0;
  double error = 0;
  double length = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(expected[i])) ++different;
    error += (double{got[i]} - expected[i]) * (double{got[i]} - expected[i]);
    length += double{expected[i]} * expected[i];
  }
  const double relative = std::sqrt(error / length);
  const bool same_again = [&] {
    const std::vector<float> again = one.run(gpu);
    return std::memcmp(again.data(), got.data(), got.size() * sizeof(float)) == 0;
  }();
  const bool ok = same_again && (one.promises_bits ? different == 0 : relative <= one.tolerance);
  return {{"what", one.what},
          {"seed", seed},
          {"numbers", got.size()},
          {"different", different},
          {"relative", std::isfinite(relative) ? relative : 1e9},
          {"promises_bits", one.promises_bits},
          {"ok", ok}};
}

}  // namespace

boost::json::object kernels(const Setup& setup) {
  const Deadline deadline(setup.seconds);
  std::unique_ptr<Device> made = setup.make_device();
  const std::string name = made->name();
  const auto gpu = make_gpu_ops(std::move(made), {.max_rows = 512, .linear_warpgroups = setup.linear_warpgroups});
  const auto cpu = cpu::make_cpu_ops({.num_threads = setup.tiny ? 1u : 0u, .max_rows = 512});
  Rows rows;
  bool all = true;
  for (std::uint32_t seed = 1; seed <= (setup.tiny || setup.middle ? 1u : 3u); ++seed) {
    for (const Case& one : setup.middle ? middle_cases(1000 * seed) : cases(setup.tiny, 1000 * seed)) {
      if (deadline.over()) {
        all = false;
        break;
      }
      rows.add(compare(one, seed, *gpu, *cpu));
    }
  }
  return {{"device", name}, {"rows", rows.take()}, {"failed", rows.num_failed()}, {"all", all}};
}

}  // namespace quire::gpu::measure
