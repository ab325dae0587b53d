// The contract of gpu/kernels/attention_tiles.h taken literally, one row and one head at a time, as the simulator's tensor cores add:
// products with the input ascending. Nothing of gpu/ takes part but that bf16 is rounded to.
// Shape   sequences and shapes are those of tests/core/cpu/attention_lab.h.
#pragma once

#include <string>

#include "tests/core/cpu/attention_lab.h"
#include "tests/gpu/beside_cpu.h"

namespace quire::gpu::test {

// Whether a GPU stands in for the simulator (cuda_for_simulated.cc), whose tensor cores add in an order of their own.
inline bool is_on_gpu() {
  static const bool is = make_simulated_device()->name() != "simulated";
  return is;
}
// The contract's bits; of a GPU, its numbers within the roundings to bf16.
inline ::testing::AssertionResult as_contract(std::span<const float> got, std::span<const float> expected) {
  if (!is_on_gpu()) return same_bits(got, expected);
  float largest = 0.0f;
  for (const float x : expected) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!(std::abs(got[i] - expected[i]) <= 0x1p-7f * largest)) {
      return ::testing::AssertionFailure() << "number " << i << ": " << got[i] << ", expected " << expected[i];
    }
  }
  return ::testing::AssertionSuccess();
}

inline float to_bf16(float x) { return f32_of_bf16(bf16_of_f32(x)); }

// What the tensor cores are given of a key or value, and what its product is multiplied by.
struct TileNumbers {
  std::vector<float> numbers;
  float scale = 1.0f;
};
inline TileNumbers tile_numbers(const LabShape& s, const LabSequence& sequence, std::uint32_t p, std::uint32_t j,
                                std::uint32_t head, bool of_k) {
  const float* stored = of_k ? sequence.k(s, p, j, head) : sequence.v(s, p, j, head);
  TileNumbers out{{stored, stored + s.head_dim}};
  if (s.type == KvType::kInt8) {
    const auto at = static_cast<std::size_t>(stored - sequence.stored.data());
    float largest = 0.0f;
    for (std::uint32_t d = 0; d < s.head_dim; ++d) largest = std::max(largest, std::abs(sequence.rows[at + d]));
    out.scale = largest / 127.0f;
    for (float& x : out.numbers) x = out.scale == 0.0f ? 0.0f : std::nearbyint(x / out.scale);
  }
  for (float& x : out.numbers) x = to_bf16(x);
  return out;
}

// out[H * D] of the row at p.
inline std::vector<float> tiles_contract(const LabShape& s, const LabSequence& sequence, std::uint32_t p) {
  std::vector<float> out;
  const bool in_int8 = s.type == KvType::kInt8;
  for (std::uint32_t h = 0; h < s.num_heads; ++h) {
    const std::uint32_t lowest = lowest_seen(s, p);
    float max = 0.0f;
    float sum = 0.0f;
    std::vector<float> o(s.head_dim);
    bool begun = false;
    for (std::uint32_t span = lowest / 256; span <= p / 256; ++span) {
      std::vector<std::uint32_t> seen;
      for (std::uint32_t j = std::max(lowest, span * 256); j < std::min(p + 1, (span + 1) * 256); ++j) {
        if (sequence.has(p, j)) seen.push_back(j);
      }
      if (seen.empty()) continue;
      std::vector<float> z;
      for (const std::uint32_t j : seen) {
        const TileNumbers k = tile_numbers(s, sequence, p, j, h, true);
        float dot = 0.0f;
        for (std::uint32_t d = 0; d < s.head_dim; ++d)
          dot = std::fma(k.numbers[d], to_bf16(sequence.q(s, p, h)[d]), dot);
        z.push_back(s.finished((in_int8 ? dot * k.scale : dot) * s.scale(), h, p, j));
      }
      const float span_max = *std::max_element(z.begin(), z.end());
      float lanes[16] = {};
      std::vector<float> span_o(s.head_dim);
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const TileNumbers v = tile_numbers(s, sequence, p, seen[i], h, false);
        const float weight = sample::exp_f32(z[i] - span_max);
        lanes[seen[i] % 16] += weight;
        const float rounded = to_bf16(in_int8 ? weight * v.scale : weight);
        for (std::uint32_t d = 0; d < s.head_dim; ++d) span_o[d] = std::fma(v.numbers[d], rounded, span_o[d]);
      }
      for (std::uint32_t half = 8; half != 0; half /= 2) {
        for (std::uint32_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
      }
      const float both = begun ? std::max(max, span_max) : span_max;
      const float a = sample::exp_f32(max - both);
      const float b = sample::exp_f32(span_max - both);
      sum = begun ? std::fma(sum, a, lanes[0] * b) : lanes[0];
      for (std::uint32_t d = 0; d < s.head_dim; ++d) o[d] = begun ? std::fma(o[d], a, span_o[d] * b) : span_o[d];
      max = both;
      begun = true;
    }
    if (s.sinks) {
      const float both = std::max(max, s.sink(h));
      const float a = sample::exp_f32(max - both);
      sum = std::fma(sum, a, sample::exp_f32(s.sink(h) - both));
      for (float& x : o) x = std::fma(x, a, 0.0f);
    }
    for (const float x : o) out.push_back(x * (1.0f / sum));
  }
  return out;
}

// What out may differ by from attention in f64 over K and V as they are stored (dense_f64): q, and int4's K, are rounded to bf16
// (2^-9 of each product), so that scores are off by so much and weights by its exponential; weights, and int4's V, are rounded
// likewise. And f32 adds, which dense_f64's own tolerance covers.
inline double tiles_tolerance(const LabShape& s, const LabSequence& sequence, std::uint32_t p, double of_f32) {
  double score = 0;
  double largest_v = 0;
  for (std::uint32_t h = 0; h < s.num_heads; ++h) {
    for (std::uint32_t j = lowest_seen(s, p); j <= p; ++j) {
      if (!sequence.has(p, j)) continue;
      double size = 0;
      for (std::uint32_t d = 0; d < s.head_dim; ++d) {
        size += std::abs(double{sequence.q(s, p, h)[d]} * double{sequence.k(s, p, j, h)[d]});
        largest_v = std::max(largest_v, std::abs(double{sequence.v(s, p, j, h)[d]}));
      }
      score = std::max(score, size * double{s.scale()} * (s.type == KvType::kInt4 ? 2 : 1) * 0x1p-9);
    }
  }
  return of_f32 + largest_v * (std::expm1(2 * score) + 3 * 0x1p-9);
}

// Every block, before anything is stored.
inline void fill_cache(backend::Ops& ops, backend::KvCache& cache, std::byte byte) {
  const std::vector<std::byte> bytes(cache.block_bytes(), byte);
  for (std::uint32_t block = 0; block < cache.shape().num_blocks; ++block)
    ops.write_block(cache, BlockId{block}, bytes);
}

// Random holes: rows of a span have lost about half of the groups of the spans before, some spans all of them; what is lost stays
// lost, and the first group never is.
inline void punch_holes(LabSequence& sequence, std::uint32_t seed) {
  Random random(seed);
  sequence.kept.assign((sequence.length + 255) / 256, {});
  for (std::size_t span = 1; span < sequence.kept.size(); ++span) {
    sequence.kept[span] = sequence.kept[span - 1];
    sequence.kept[span].push_back(0xffff);
    for (std::size_t s = 0; s < span; ++s) {
      const std::uint32_t mask = random.below(4) == 0 ? 0 : random.below(1u << 16) | random.below(1u << 16);
      sequence.kept[span][s] = static_cast<std::uint16_t>(sequence.kept[span][s] & mask);
    }
    sequence.kept[span][0] |= 1;
  }
}

}  // namespace quire::gpu::test
