// What the CPU backend's tests share: random data, weights and buffers made of it, batches.
// Shape   letters as in core/backend/tensors.h. Everything goes through Ops: what a test proves holds for its users.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/backend/ops.h"
#include "core/base/float_bits.h"
#include "core/cpu/cpu_ops.h"

namespace quire::cpu::test {

using backend::Format;
using backend::KvType;

inline std::unique_ptr<backend::Ops> make_ops(const std::string& isa, std::uint32_t threads,
                                              std::uint32_t max_rows = 600) {
  CpuOptions options;
  options.isa = isa;
  options.num_threads = threads;
  options.max_rows = max_rows;
  return make_cpu_ops(options);
}

// The vector instruction sets to hold against "scalar".
inline std::vector<std::string> vector_isas() {
  std::vector<std::string> isas = supported_isas();
  isas.erase(isas.begin());
  return isas;
}

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  float uniform(float limit = 1.0f) { return limit * (static_cast<float>(engine_() >> 8) * 0x1p-23f - 1.0f); }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(engine_() % n); }
  std::vector<float> floats(std::size_t count, float limit = 1.0f) {
    std::vector<float> out(count);
    for (float& value : out) value = uniform(limit);
    return out;
  }
  std::mt19937& engine() { return engine_; }

 private:
  std::mt19937 engine_;
};

// A matrix in one of the three types: its bits, and what they mean.
struct Matrix {
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  Format dtype = Format::kF32;
  std::vector<std::uint8_t> bits;
  std::vector<float> values;  // [n, k]

  backend::HostMatrix view() const { return {bits.data(), dtype, n, k}; }
};

inline std::uint16_t f16_of_f32(float value) {  // to the nearest; exact ties do not matter here
  for (std::uint32_t low = 0, high = 0x7bff;;) {
    const float size = value < 0 ? -value : value;
    const std::uint32_t middle = (low + high) / 2;
    if (low == high) return static_cast<std::uint16_t>(low | (std::signbit(value) ? 0x8000u : 0u));
    if (f32_of_f16(static_cast<std::uint16_t>(middle)) < size) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
}

inline Matrix make_matrix(std::uint32_t n, std::uint32_t k, Format dtype, const std::vector<float>& values) {
  Matrix m{n, k, dtype, std::vector<std::uint8_t>(values.size() * backend::bytes_of(dtype)), values};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == Format::kF32) {
      std::memcpy(m.bits.data() + 4 * i, &values[i], 4);
    } else {
      const std::uint16_t half = dtype == Format::kBF16 ? bf16_of_f32(values[i]) : f16_of_f32(values[i]);
      std::memcpy(m.bits.data() + 2 * i, &half, 2);
      m.values[i] = dtype == Format::kBF16 ? f32_of_bf16(half) : f32_of_f16(half);
    }
  }
  return m;
}

inline Matrix random_matrix(Random& random, std::uint32_t n, std::uint32_t k, Format dtype, float limit = 1.0f) {
  return make_matrix(n, k, dtype, random.floats(std::size_t{n} * k, limit));
}

inline std::unique_ptr<backend::Weight> pack(backend::Ops& ops, const Matrix& m, std::span<const float> bias = {}) {
  const backend::HostMatrix view = m.view();
  if (bias.empty()) return ops.pack({&view, 1}, {});
  return ops.pack({&view, 1}, {&bias, 1});
}

// A batch that owns what it points to. Tokens are the rows' numbers unless set, so that fill() can put data into rows.
struct OwnedBatch {
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> positions;
  std::vector<std::uint32_t> slots;
  std::vector<backend::SequenceRows> sequences;
  std::vector<BlockId> tables;
  std::vector<backend::LogitsRow> logits_rows;
  std::vector<std::uint16_t> kept_groups;
  std::uint32_t num_accumulated_scores = 0;

  // num_rows more rows of a sequence whose first rows lie in the cache already. `table` is its whole block table.
  void add(std::uint32_t first_position, std::uint32_t num_rows, std::span<const BlockId> table,
           std::uint32_t block_tokens, std::span<const std::uint16_t> kept = {}) {
    backend::SequenceRows rows;
    rows.first_row = static_cast<std::uint32_t>(positions.size());
    rows.num_rows = num_rows;
    rows.first_position = first_position;
    rows.first_table = static_cast<std::uint32_t>(tables.size());
    rows.num_table = static_cast<std::uint32_t>(table.size());
    tables.insert(tables.end(), table.begin(), table.end());
    rows.first_kept = static_cast<std::uint32_t>(kept_groups.size());
    rows.num_kept = static_cast<std::uint32_t>(kept.size());
    kept_groups.insert(kept_groups.end(), kept.begin(), kept.end());
    for (std::uint32_t p = first_position; p < first_position + num_rows; ++p) {
      tokens.push_back(static_cast<TokenId>(positions.size()));
      positions.push_back(p);
      slots.push_back(table[p / block_tokens].value * block_tokens + p % block_tokens);
    }
    sequences.push_back(rows);
  }

  backend::Batch view() const {
    return {tokens, positions, slots, sequences, tables, logits_rows, kept_groups, num_accumulated_scores};
  }
};

// T rows of one sequence at positions 0.., for ops that look at rows alone. Slots stay within one block.
inline OwnedBatch plain_rows(std::uint32_t rows) {
  OwnedBatch batch;
  const std::vector<BlockId> table(rows, BlockId{0});
  batch.add(0, rows, table, 16);
  return batch;
}

// Rows of `buffer` := values [T, width], through embed: the batch begun must have the rows' numbers as tokens.
inline void fill(backend::Ops& ops, backend::Buffer& buffer, const std::vector<float>& values) {
  const auto rows = static_cast<std::uint32_t>(values.size() / buffer.width());
  const Matrix table = make_matrix(rows, buffer.width(), Format::kF32, values);
  ops.embed(*pack(ops, table), 1.0f, buffer);
}

inline std::vector<float> read(backend::Ops& ops, const backend::Buffer& buffer, std::uint32_t rows) {
  std::vector<float> out(std::size_t{rows} * buffer.width());
  ops.read(buffer, 0, rows, out);
  return out;
}

// Rows [rows, K] through a linear of their own.
inline std::vector<float> run_linear(backend::Ops& ops, const std::vector<float>& x, const backend::Weight& w,
                                     std::uint32_t rows) {
  auto in = ops.make_buffer(rows, w.k());
  auto out = ops.make_buffer(rows, w.n());
  const OwnedBatch batch = plain_rows(rows);
  ops.begin(batch.view());
  fill(ops, *in, x);
  ops.linear(*in, w, rows, *out);
  return read(ops, *out, rows);
}

// The same bits everywhere; says where they first differ.
inline ::testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " values vs " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) {
      return ::testing::AssertionFailure() << "value " << i << ": " << a[i] << " vs " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace quire::cpu::test
