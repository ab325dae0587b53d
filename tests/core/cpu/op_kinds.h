// Ops of every kind on any backend: norms, rows, attention and linear layers as cases, what running a case reads back,
// and the equations of core/backend/step_ops.h taken literally in f32.
// Shape   a case brings all of its numbers, from a seed. T rows lie at positions 0.. of one sequence.
// Source  ours.
#pragma once

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/sample/exp_constants.h"
#include "core/sample/math.h"
#include "tests/core/cpu/attention_lab.h"
#include "tests/core/cpu/plain_quantised.h"

namespace quire::cpu::test {

enum class NormChoice { kNone, kRms, kLayer, kLayerWithBias };
inline constexpr NormChoice kNorms[] = {NormChoice::kRms, NormChoice::kLayer, NormChoice::kLayerWithBias};
inline constexpr backend::Activation kActivations[] = {backend::Activation::kSilu, backend::Activation::kGeluTanh,
                                                       backend::Activation::kRelu2, backend::Activation::kGelu,
                                                       backend::Activation::kRelu};
// Of half precision, as checkpoints have them: the sum of products rounds.
inline constexpr backend::Xielu kXielu = {0.81f, 0.77f, 0.5f, -1e-6f};

inline std::string name_of(NormChoice choice) {
  constexpr const char* kNames[] = {"no norm", "rms", "layer", "layer with bias"};
  return kNames[static_cast<int>(choice)];
}

inline float sum16(std::span<const float> x, bool squares) {
  float lanes[16] = {};
  for (std::size_t i = 0; i < x.size(); ++i) {
    lanes[i % 16] = squares ? std::fma(x[i], x[i], lanes[i % 16]) : lanes[i % 16] + x[i];
  }
  for (std::size_t half = 8; half != 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// The vectors of a norm, of `size` values. It may be applied to any of its groups.
struct NormVectors {
  NormVectors(NormChoice kind, std::uint32_t size, std::uint32_t seed) : choice(kind) {
    Random random(seed);
    if (choice != NormChoice::kNone) scale = random.floats(size, 2.0f);
    if (choice == NormChoice::kLayerWithBias) bias = random.floats(size);
  }
  // The norm of x by the vectors from index `first` on.
  std::vector<float> of(std::span<const float> x, std::size_t first = 0) const {
    const auto size = static_cast<float>(x.size());
    std::vector<float> out(x.begin(), x.end());
    if (choice == NormChoice::kNone) return out;
    if (choice != NormChoice::kRms) {
      const float mean = sum16(x, false) / size;
      for (float& value : out) value = value - mean;
    }
    const float r = 1.0f / std::sqrt(sum16(out, true) / size + eps);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = bias.empty() ? (out[i] * r) * scale[first + i] : std::fma(out[i] * r, scale[first + i], bias[first + i]);
    }
    return out;
  }

  NormChoice choice;
  float eps = 1e-5f;
  std::vector<float> scale, bias;
};

// The same on a device.
class OwnedNorm {
 public:
  OwnedNorm(backend::Ops& ops, const NormVectors& vectors) {
    if (vectors.choice == NormChoice::kNone) return;
    scale_ = ops.upload(vectors.scale);
    if (!vectors.bias.empty()) bias_ = ops.upload(vectors.bias);
    norm_ = {scale_.get(), vectors.eps,
             vectors.choice == NormChoice::kRms ? backend::NormKind::kRms : backend::NormKind::kLayer, bias_.get()};
  }
  const backend::Norm& get() const { return norm_; }

 private:
  std::unique_ptr<backend::Vector> scale_, bias_;
  backend::Norm norm_;
};

inline float activated(backend::Activation kind, float g) {
  if (kind == backend::Activation::kSilu) return g / (1.0f + sample::exp_f32(-g));
  if (kind == backend::Activation::kRelu2) return (0.0f > g ? 0.0f : g) * (0.0f > g ? 0.0f : g);
  if (kind == backend::Activation::kGelu) return sample::gelu_f32(g);
  if (kind == backend::Activation::kRelu) return 0.0f > g ? 0.0f : g;
  const float w = g * std::fma(sample::kGeluCubic, g * g, sample::kGeluLinear);
  return g / (1.0f + sample::exp_f32(-w));
}

inline float xielu(const backend::Xielu& numbers, float g) {
  const float line = numbers.linear * g;
  if (g > 0.0f) return std::fma(numbers.positive * g, g, line);
  return std::fma(sample::expm1_f32(numbers.most < g ? numbers.most : g) - g, numbers.negative, line);
}

inline float rescaled(float x, float scale, float cap) {
  const float z = x * scale;
  return cap == 0.0f ? z : cap * sample::tanh_f32(z / cap);
}

// Buffers with these rows, in a step that has begun.
inline std::unique_ptr<backend::Buffer> buffer_of(backend::Ops& ops, const std::vector<float>& values,
                                                  std::uint32_t rows) {
  auto buffer = ops.make_buffer(rows, static_cast<std::uint32_t>(values.size() / rows));
  ops.write(values, *buffer);
  return buffer;
}

// One sequence from its first position on, in blocks that ascend from the second one on.
inline OwnedBatch whole_sequence(std::uint32_t rows) {
  OwnedBatch batch;
  std::vector<BlockId> table;
  for (std::uint32_t first = 0; first < rows; first += 16) table.emplace_back(1 + first / 16);
  batch.add(0, rows, table, 16);
  for (TokenId& token : batch.tokens) token = 0;
  return batch;
}

// Three streams mixed, then corrected by rows of another length; two of the three rows.
inline std::vector<float> streams_numbers(backend::Ops& ops, std::uint32_t width) {
  constexpr std::uint32_t kRows = 3;
  constexpr std::uint32_t kStreams = 3;
  Random random(width + 1);
  std::vector<std::unique_ptr<backend::Buffer>> buffers;
  std::vector<backend::Buffer*> x, out;
  for (std::uint32_t i = 0; i < 2 * kStreams; ++i) {
    buffers.push_back(buffer_of(ops, random.floats(std::size_t{kRows} * width, 2.0f), kRows));
    (i < kStreams ? x : out).push_back(buffers.back().get());
  }
  const auto y = buffer_of(ops, random.floats(std::size_t{kRows} * width, 3.0f), kRows);
  const auto mixes = buffer_of(ops, random.floats(std::size_t{kRows} * kStreams * kStreams), kRows);
  const auto corrections = buffer_of(ops, random.floats(std::size_t{kRows} * kStreams), kRows);
  const OwnedBatch batch = plain_rows(kRows);
  ops.begin(batch.view());
  ops.mix(x, *mixes, 2, out);
  ops.match_length(*y, *out[1], 0.3f, 2);
  ops.correct(out, *y, *corrections, 2);
  std::vector<float> all;
  out.push_back(y.get());
  for (const backend::Buffer* buffer : out) {
    const std::vector<float> values = read(ops, *buffer, kRows);
    all.insert(all.end(), values.begin(), values.end());
  }
  ops.collect({});
  return all;
}

// Every op over rows by itself, on three rows of `width` values and more beside them.
inline std::vector<float> numbers_of_row_ops(backend::Ops& ops, std::uint32_t width) {
  constexpr std::uint32_t kRows = 3;
  Random random(width);
  const std::vector<float> wide = random.floats(std::size_t{kRows} * (5 + 2 * width), 3.0f);
  const OwnedBatch batch = plain_rows(kRows);
  std::vector<float> all;
  // One step each: rows are written between steps.
  const auto run = [&](std::uint32_t x_width, auto&& op) {
    const auto x = buffer_of(ops, std::vector<float>(wide.begin(), wide.begin() + kRows * x_width), kRows);
    const auto y = buffer_of(ops, wide, kRows);
    const auto out = ops.make_buffer(kRows, width);
    ops.begin(batch.view());
    const backend::Buffer& result = op(*x, *y, *out);
    const std::vector<float> values = read(ops, result, kRows);
    ops.collect({});
    all.insert(all.end(), values.begin(), values.end());
  };
  using backend::Buffer;
  for (const NormChoice choice : kNorms) {
    for (const bool shared : {true, false}) {
      const OwnedNorm of_row(ops, {choice, width, 1});
      const OwnedNorm of_groups(ops, {choice, shared ? width : 2 * width, 2});
      run(width,
          [&](Buffer& x, Buffer&, Buffer& out) -> Buffer& { return ops.norm(x, of_row.get(), kRows, out), out; });
      run(2 * width + 5, [&](Buffer& x, Buffer&, Buffer&) -> Buffer& {
        return ops.norm_columns(x, 3, 2 * width, width, of_groups.get(), 2), x;
      });
    }
  }
  for (const backend::Activation kind : kActivations) {
    for (const bool gated : {true, false}) {
      run(gated ? 2 * width : width,
          [&](Buffer& x, Buffer&, Buffer& out) -> Buffer& { return ops.activate(x, kind, gated, kRows, out), out; });
    }
  }
  run(width, [&](Buffer& x, Buffer&, Buffer& out) -> Buffer& {
    return ops.activate(x, backend::Activation::kXielu, false, kRows, out, kXielu), out;
  });
  run(width, [&](Buffer& x, Buffer&, Buffer&) -> Buffer& { return ops.clip(x, 0.9f, 2), x; });
  const std::unique_ptr<backend::Vector> factors = ops.upload(random.floats(width, 2.0f));
  run(width, [&](Buffer& x, Buffer&, Buffer&) -> Buffer& { return ops.multiply_columns(x, *factors, 2), x; });
  run(2 * width + 1, [&](Buffer& x, Buffer&, Buffer&) -> Buffer& { return ops.cut_below(x, width, 0.4f, 2), x; });
  const auto streams = streams_numbers(ops, width);
  all.insert(all.end(), streams.begin(), streams.end());
  run(5 + 2 * width, [&](Buffer& x, Buffer& y, Buffer&) -> Buffer& { return ops.add(x, y, 0.22f, 2), x; });
  run(width, [&](Buffer& x, Buffer& y, Buffer&) -> Buffer& { return ops.multiply_by(x, y, 4, 2), x; });
  for (const float cap : {0.0f, 0.7f}) {
    run(width, [&](Buffer& x, Buffer&, Buffer&) -> Buffer& { return ops.rescale(x, 0.3f, cap, 2), x; });
  }
  for (const Format dtype : {Format::kF32, Format::kF16, Format::kBF16}) {
    const auto table = pack(ops, random_matrix(random, kRows, width, dtype));
    run(width, [&](Buffer&, Buffer&, Buffer& out) -> Buffer& { return ops.embed(*table, 9.1f, out), out; });
    const auto positions = pack(ops, random_matrix(random, kRows + 2, width, dtype));
    run(width, [&](Buffer&, Buffer&, Buffer& out) -> Buffer& { return ops.embed_positions(*positions, 2, out), out; });
  }
  return all;
}

// ---- attention

enum class HeadVectors { kNone, kShared, kOwn, kWholeRow };

struct AttentionCase {
  LabShape shape;
  HeadVectors q = HeadVectors::kNone;
  HeadVectors k = HeadVectors::kNone;
  HeadVectors v = HeadVectors::kNone;
  NormChoice norm = NormChoice::kRms;
  std::uint32_t first = 0;  // kOwn: values of the norms' vectors before the first head's
  std::uint32_t half = 0;   // of the dimensions that turn; 0: none do
  bool scales_q = false;
  bool norms_last = false;  // of q and k, after rope
  float k_factor = 1.0f;
  float v_factor = 1.0f;
  std::uint32_t rows = 21;
  bool shares = true;  // whether a layer without K and V of its own is run, too

  std::string text() const {
    constexpr const char* kNames[] = {"none", "shared", "own", "whole row"};
    return shape.text() + ", norms " + kNames[static_cast<int>(q)] + "/" + kNames[static_cast<int>(k)] + "/" +
           kNames[static_cast<int>(v)] + " " + name_of(norm) + " from " + std::to_string(first) + ", half " +
           std::to_string(half) + (scales_q ? ", scaled q" : "") + (norms_last ? ", norms after rope" : "") +
           (k_factor != 1.0f ? ", scaled k" : "") + (v_factor != 1.0f ? ", scaled v" : "");
  }
};

// Every number of a case but those of qkv.
struct AttentionNumbers {
  explicit AttentionNumbers(const AttentionCase& c)
      : q(vectors(c, c.q, c.shape.num_heads, 31)),
        k(vectors(c, c.k, c.shape.num_kv_heads, 32)),
        v(vectors(c, c.v, c.shape.num_kv_heads, 33)) {
    Random random(34);
    cosines = random.floats(std::size_t{c.rows} * c.half);
    sines = random.floats(std::size_t{c.rows} * c.half);
    q_scale = random.floats(c.rows, 2.0f);
  }
  static NormVectors vectors(const AttentionCase& c, HeadVectors heads, std::uint32_t num_heads, std::uint32_t seed) {
    const std::uint32_t all = num_heads * c.shape.head_dim;
    const std::uint32_t size = heads == HeadVectors::kShared ? c.shape.head_dim
                               : heads == HeadVectors::kOwn  ? c.first + all
                                                             : all;
    return {heads == HeadVectors::kNone ? NormChoice::kNone : c.norm, size, seed};
  }

  NormVectors q, k, v;
  std::vector<float> cosines, sines, q_scale;
};

// q, k and v of all rows after norms, rope and q's scale.
inline std::vector<float> rows_by_equation(const AttentionCase& c, std::vector<float> x) {
  const AttentionNumbers numbers(c);
  const std::uint32_t size = c.shape.head_dim;
  const auto norm = [&](std::span<float> heads, HeadVectors how, const NormVectors& vectors) {
    const std::size_t width = how == HeadVectors::kWholeRow ? heads.size() : size;
    for (std::size_t at = 0; at < heads.size(); at += width) {
      std::ranges::copy(vectors.of(heads.subspan(at, width), how == HeadVectors::kOwn ? c.first + at : 0),
                        heads.subspan(at).begin());
    }
  };
  for (std::size_t t = 0; t < c.rows; ++t) {
    const auto row = std::span(x).subspan(t * c.shape.width(), c.shape.width());
    const auto q = row.first(c.shape.q_width());
    const auto k = row.subspan(q.size(), c.shape.kv_width());
    const auto norm_q_and_k = [&] { norm(q, c.q, numbers.q), norm(k, c.k, numbers.k); };
    if (!c.norms_last) norm_q_and_k();
    norm(row.subspan(q.size() + k.size()), c.v, numbers.v);
    for (std::size_t at = 0; at < q.size() + k.size(); at += size) {
      for (std::size_t i = 0; i < c.half; ++i) {
        const float lo = row[at + i];
        const float hi = row[at + c.half + i];
        const float cosine = numbers.cosines[t * c.half + i];
        const float sine = numbers.sines[t * c.half + i];
        row[at + i] = std::fma(-hi, sine, lo * cosine);
        row[at + c.half + i] = std::fma(lo, sine, hi * cosine);
      }
    }
    if (c.norms_last) norm_q_and_k();
    for (float& value : q) value = c.scales_q ? value * numbers.q_scale[t] : value;
    for (float& value : k) value *= c.k_factor;
    for (float& value : row.subspan(q.size() + k.size())) value *= c.v_factor;
  }
  return x;
}

class OwnedSpec {
 public:
  OwnedSpec(backend::Ops& ops, const AttentionCase& c, const AttentionNumbers& numbers)
      : q_(ops, numbers.q), k_(ops, numbers.k), v_(ops, numbers.v) {
    if (c.half != 0) rope_ = ops.upload_rope(numbers.cosines, numbers.sines, c.half);
    if (c.shape.bias != LabBias::kNone) {
      std::vector<float> slopes;
      for (std::uint32_t head = 0; head < c.shape.num_heads; ++head) slopes.push_back(c.shape.slope(head));
      slopes_ = ops.upload(slopes);
      spec_.bias = {slopes_.get(), 0, c.shape.bias == LabBias::kInBf16};
    }
    if (c.scales_q) q_scale_ = ops.upload(numbers.q_scale);
    spec_.layer = 1;
    spec_.num_heads = c.shape.num_heads;
    spec_.num_kv_heads = c.shape.num_kv_heads;
    spec_.head_dim = c.shape.head_dim;
    spec_.scale = c.shape.scale();
    spec_.window = c.shape.window;
    spec_.softcap = c.shape.softcap;
    spec_.rope = rope_.get();
    spec_.norms_after_rope = c.norms_last;
    spec_.k_factor = c.k_factor;
    spec_.v_factor = c.v_factor;
    spec_.q_scale = q_scale_.get();
    const auto norm = [&](HeadVectors heads, const OwnedNorm& of) {
      return backend::HeadNorm{of.get(), heads == HeadVectors::kWholeRow, heads == HeadVectors::kOwn ? c.first : 0};
    };
    spec_.q_norm = norm(c.q, q_);
    spec_.k_norm = norm(c.k, k_);
    spec_.v_norm = norm(c.v, v_);
  }
  const backend::AttentionSpec& get() const { return spec_; }

 private:
  OwnedNorm q_, k_, v_;
  std::unique_ptr<backend::RopeTable> rope_;
  std::unique_ptr<backend::Vector> q_scale_, slopes_;
  backend::AttentionSpec spec_;
};

inline std::unique_ptr<backend::KvCache> cache_of(backend::Ops& ops, const LabShape& shape, std::uint32_t rows) {
  return ops.make_kv({backend::kv_layers(2, shape.num_kv_heads, shape.head_dim), 16, 2 + rows / 16, shape.type, 1});
}
inline std::vector<std::byte> bytes_of(backend::Ops& ops, const backend::KvCache& cache) {
  std::vector<std::byte> bytes(cache.block_bytes() * cache.shape().num_blocks);
  for (std::uint32_t block = 0; block < cache.shape().num_blocks; ++block) {
    ops.read_block(cache, BlockId{block}, std::span(bytes).subspan(block * cache.block_bytes(), cache.block_bytes()));
  }
  return bytes;
}

inline std::vector<float> random_qkv(const AttentionCase& c) {
  return Random(35).floats(std::size_t{c.rows} * c.shape.width(), 2.0f);
}

struct Attended {
  std::vector<float> qkv, out;
  std::vector<float> q, shared_out;  // of a layer of the same q, and of K and V of the first one
  bool same_cache = true;            // after that layer
};

inline Attended attended(backend::Ops& ops, const AttentionCase& c) {
  const OwnedSpec owned(ops, c, AttentionNumbers(c));
  backend::AttentionSpec spec = owned.get();
  const auto cache = cache_of(ops, c.shape, c.rows);
  const std::vector<float> x = random_qkv(c);
  std::vector<float> queries;
  for (std::size_t at = 0; at < x.size(); at += c.shape.width()) {
    queries.insert(queries.end(), x.begin() + at, x.begin() + at + c.shape.q_width());
  }
  const auto qkv = buffer_of(ops, x, c.rows);
  const auto q = buffer_of(ops, queries, c.rows);
  const auto out = ops.make_buffer(c.rows, c.shape.q_width());
  const OwnedBatch batch = whole_sequence(c.rows);
  for (std::uint32_t block = 0; block < cache->shape().num_blocks; ++block) ops.poison_block(*cache, BlockId{block});
  ops.begin(batch.view());
  ops.rope_store(spec, *qkv, *cache);
  ops.attend(spec, *qkv, *cache, *out);
  Attended result;
  result.out = read(ops, *out, c.rows);
  result.qkv = read(ops, *qkv, c.rows);
  if (c.shares) {
    const std::vector<std::byte> bytes = bytes_of(ops, *cache);
    spec.stores = false;
    ops.rope_store(spec, *q, *cache);
    ops.attend(spec, *q, *cache, *out);
    result.shared_out = read(ops, *out, c.rows);
    result.q = read(ops, *q, c.rows);
    result.same_cache = bytes == bytes_of(ops, *cache);
  }
  ops.collect({});
  return result;
}

inline std::vector<float> numbers_of(const Attended& a) {
  std::vector<float> all = a.qkv;
  for (const auto* more : {&a.out, &a.q, &a.shared_out}) all.insert(all.end(), more->begin(), more->end());
  return all;
}

// Norms of every sort, NoPE, partial rotation, soft caps, biases.
inline std::vector<AttentionCase> attention_cases(KvType type) {
  using enum HeadVectors;
  const auto shape = [&](std::uint32_t heads, std::uint32_t dims, std::uint32_t window, float cap,
                         LabBias bias = LabBias::kNone) {
    return LabShape{heads, heads / 2, dims, 16, type, window, cap, bias};
  };
  return {
      {.shape = shape(4, 16, 0, 0.0f), .half = 8},
      {.shape = shape(4, 16, 0, 0.0f)},
      {.shape = shape(4, 16, 0, 0.0f, LabBias::kDistance)},
      {.shape = shape(8, 18, 9, 0.7f, LabBias::kInBf16), .q = kShared},
      {.shape = shape(4, 18, 0, 1.5f), .q = kShared, .k = kShared, .half = 4},
      {.shape = shape(4, 32, 7, 0.0f), .q = kShared, .v = kShared, .half = 16, .scales_q = true},
      {.shape = shape(8, 16, 0, 0.0f), .q = kOwn, .k = kOwn, .v = kOwn, .first = 5, .half = 8},
      {.shape = shape(4, 18, 0, 0.5f), .q = kOwn, .k = kOwn, .norm = NormChoice::kLayer, .half = 9},
      {.shape = shape(4, 16, 0, 0.0f), .q = kWholeRow, .k = kWholeRow, .half = 8},
      {.shape = shape(8, 18, 0, 0.0f), .k = kWholeRow, .v = kWholeRow, .norm = NormChoice::kLayerWithBias, .half = 3},
      {.shape = shape(4, 16, 9, 0.0f),
       .q = kShared,
       .k = kShared,
       .v = kShared,
       .norm = NormChoice::kLayerWithBias,
       .half = 8,
       .scales_q = true},
      {.shape = shape(4, 16, 0, 0.0f), .q = kWholeRow, .k = kShared, .v = kOwn, .norm = NormChoice::kLayer},
      {.shape = shape(4, 18, 0, 0.0f), .q = kShared, .k = kShared, .half = 9, .norms_last = true, .k_factor = 7.3f},
      {.shape = shape(8, 16, 0, 0.0f), .k = kShared, .half = 8, .k_factor = 0.3f, .v_factor = 1.7f},
      {.shape = shape(4, 32, 7, 0.0f), .v = kShared, .v_factor = 11.0f},
      {.shape = shape(4, 32, 7, 0.0f),
       .q = kShared,
       .k = kShared,
       .v = kShared,
       .half = 8,
       .scales_q = true,
       .norms_last = true},
  };
}

}  // namespace quire::cpu::test
