// Quantised weights, and linear() with them, written out plainly after the equations of core/backend/step_ops.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/core/cpu/rig.h"

namespace quire::cpu::test {

inline bool has_codes_of_8_bits(std::optional<Format> kind) {
  return kind == Format::kInt8 || kind == Format::kW8A8 || kind == Format::kW8A8PerRow || kind == Format::kFp8;
}
inline bool is_in_integers(std::optional<Format> kind) { return kind && kind->in_integers(); }

// Nothing is made of a number that has no scale.
inline float code(float w, float scale, float lowest, float highest) {
  if (scale == 0.0f || std::isnan(scale)) return 0.0f;
  return std::nearbyint(std::clamp(w / scale, lowest, highest)) + 0.0f;  // a whole number's zero has no sign
}

// The nearest number that e4m3fn has, of two the one with an even fraction.
inline float nearest_e4m3(float x) {
  const float size = std::min(std::abs(x), 448.0f);
  const float step = std::ldexp(1.0f, (size < 0x1p-6f ? -6 : std::ilogb(size)) - 3);
  return std::copysign(std::nearbyint(size / step) * step, x);
}
inline float code_in_fp8(float w, float scale) {
  return scale == 0.0f || std::isnan(scale) ? 0.0f : nearest_e4m3(w / scale);
}

// Codes and, of each group of a row, the scale: one group in 8 bits, 32 inputs in 4.
struct Plain {
  std::size_t k = 0;
  std::size_t group = 0;
  std::vector<float> codes;   // [n, k]
  std::vector<float> scales;  // [n, groups]

  float scale(std::size_t row, std::size_t i) const { return scales[row * ((k + group - 1) / group) + i / group]; }
  // As embed() reads it.
  std::vector<float> widened() const {
    std::vector<float> out = codes;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = codes[i] * scale(i / k, i % k);
    return out;
  }
};

inline Plain quantised(const Matrix& w, std::optional<Format> kind) {
  if (kind == Format::kW16A16) {
    Plain out{w.k, w.k, {}, std::vector<float>(w.n, 1.0f)};
    for (const float value : w.values) out.codes.push_back(f32_of_bf16(bf16_of_f32(value)));
    return out;
  }
  const bool is_of_output = has_codes_of_8_bits(kind);
  const bool is_fp8 = kind == Format::kFp8;
  Plain out{w.k, is_of_output ? w.k : 32u, std::vector<float>(w.values.size()), {}};
  for (std::size_t n = 0; n < w.n; ++n) {
    const float* row = w.values.data() + n * w.k;
    for (std::size_t first = 0; first < w.k; first += out.group) {
      const std::size_t last = std::min<std::size_t>(w.k, first + out.group);
      float largest = 0.0f;
      for (std::size_t i = first; i < last; ++i) {
        if (!std::isfinite(row[i])) largest = NAN;
        if (std::abs(row[i]) > std::abs(largest)) largest = row[i];
      }
      const float scale =
          is_of_output ? std::abs(largest) / (is_fp8 ? 448.0f : 127.0f) : f32_of_bf16(bf16_of_f32(largest / -8.0f));
      for (std::size_t i = first; i < last; ++i) {
        out.codes[n * w.k + i] = is_fp8         ? code_in_fp8(row[i], scale)
                                 : is_of_output ? code(row[i], scale, -127, 127)
                                                : code(row[i], scale, -8, 7);
      }
      out.scales.push_back(scale);
    }
  }
  return out;
}

// A row of linear()'s input, in groups of 256.
struct PlainRow {
  std::vector<std::int64_t> codes;
  std::vector<float> scales;
};

inline PlainRow quantised_row(std::span<const float> x, std::size_t group = 256) {
  PlainRow out{std::vector<std::int64_t>(x.size()), {}};
  for (std::size_t first = 0; first < x.size(); first += group) {
    const std::size_t last = std::min<std::size_t>(x.size(), first + group);
    float largest = 0.0f;
    bool is_faulty = false;
    for (std::size_t k = first; k < last; ++k) {
      is_faulty |= !std::isfinite(x[k]);
      largest = std::max(largest, std::abs(x[k]));
    }
    const float inverse = 127.0f / largest;
    const bool has_codes = !is_faulty && std::isfinite(inverse);
    for (std::size_t k = first; k < last && has_codes; ++k) {
      out.codes[k] = static_cast<std::int64_t>(std::nearbyint(x[k] * inverse));
    }
    out.scales.push_back(is_faulty ? NAN : has_codes ? largest / 127.0f : 0.0f);
  }
  return out;
}

inline float plain_dot_in_integers(const PlainRow& x, const Plain& w, std::size_t n, std::optional<Format> kind) {
  const std::size_t step = kind == Format::kW4A8 ? 32 : 256;
  float sum = 0.0f;
  for (std::size_t first = 0; first < w.k; first += 256) {
    const std::size_t end = std::min(w.k, first + 256);
    float part = 0.0f;
    for (std::size_t start = first; start < end; start += step) {
      std::int64_t dot = 0;
      for (std::size_t k = start; k < std::min(end, start + step); ++k) {
        dot += x.codes[k] * static_cast<std::int64_t>(w.codes[n * w.k + k]);
      }
      part =
          kind != Format::kW4A8 ? static_cast<float>(dot) : std::fma(static_cast<float>(dot), w.scale(n, start), part);
    }
    sum = std::fma(part, x.scales.size() == 1 ? x.scales[0] : x.scales[first / 256], sum);
  }
  return sum;
}

// Subnormal numbers are zeros.
inline float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

inline float plain_dot_in_bf16(std::span<const float> x, const Plain& w, std::size_t n) {
  const auto add = [&](float sum, std::size_t k) {
    if (k >= w.k) return flushed(std::fma(0.0f, 0.0f, sum));
    return flushed(std::fma(flushed(f32_of_bf16(bf16_of_f32(flushed(x[k])))), flushed(w.codes[n * w.k + k]), sum));
  };
  float sum = 0.0f;
  for (std::size_t k = 0; k < w.k; k += 2) sum = add(add(sum, k + 1), k);
  return sum;
}

inline float plain_dot(std::span<const float> x, const Plain& w, std::size_t n, std::optional<Format> kind) {
  float sum = 0.0f;
  for (std::size_t k = 0; k < w.k; ++k) {
    const float q = w.codes[n * w.k + k];
    sum = std::fma(x[k], kind == Format::kInt4 ? q * w.scale(n, k) : q, sum);
  }
  return sum;
}

inline std::vector<float> plain_linear(const std::vector<float>& x, const Matrix& w, std::optional<Format> kind,
                                       std::uint32_t rows, std::span<const float> bias = {}) {
  const Plain plain = quantised(w, kind);
  std::vector<float> out;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto row = std::span(x).subspan(r * w.k, w.k);
    const PlainRow in_integers = quantised_row(row, kind == Format::kW8A8PerRow ? w.k : 256);
    for (std::size_t n = 0; n < w.n; ++n) {
      float sum = kind == Format::kW16A16 ? plain_dot_in_bf16(row, plain, n)
                  : is_in_integers(kind)  ? plain_dot_in_integers(in_integers, plain, n, kind)
                                          : plain_dot(row, plain, n, kind);
      if (has_codes_of_8_bits(kind)) sum = sum * plain.scale(n, 0);
      out.push_back(bias.empty() ? sum : sum + bias[n]);
    }
  }
  return out;
}

inline std::unique_ptr<backend::Weight> pack(backend::Ops& ops, const Matrix& m, std::optional<Format> kind) {
  const backend::HostMatrix view = m.view();
  return ops.pack({&view, 1}, {}, kind);
}

inline std::vector<float> run_embed(backend::Ops& ops, const backend::Weight& table) {
  auto out = ops.make_buffer(table.n(), table.k());
  const OwnedBatch batch = plain_rows(table.n());
  ops.begin(batch.view());
  ops.embed(table, 1.0f, *out);
  return read(ops, *out, table.n());
}

}  // namespace quire::cpu::test
