// Latent attention as a layer: what it computes is what expanding K and V of every head computes, and the absorbed form is
// the naive one to the last digits of f64.
#include "core/model/latent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "core/cpu/cpu_ops.h"

namespace quire::model::latent_test {
namespace {

using Matrix = std::vector<std::vector<double>>;

constexpr std::uint32_t kHeads = 3;
constexpr std::uint32_t kRows = 21;
constexpr std::uint32_t kHidden = 24;

Matrix random_matrix(std::mt19937& draw, std::size_t rows, std::size_t columns) {
  std::normal_distribution<double> numbers(0.0, 1.0 / std::sqrt(static_cast<double>(columns)));
  Matrix out(rows, std::vector<double>(columns));
  for (auto& row : out) {
    for (double& number : row) number = static_cast<float>(numbers(draw));
  }
  return out;
}

std::vector<double> times(const Matrix& matrix, const std::vector<double>& x) {
  std::vector<double> out;
  for (const auto& row : matrix) out.push_back(std::inner_product(row.begin(), row.end(), x.begin(), 0.0));
  return out;
}

std::vector<double> normed(std::vector<double> x, double eps) {
  const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
  for (double& number : x) number /= std::sqrt(squares / static_cast<double>(x.size()) + eps);
  return x;
}

// By halves, as RoPE tables turn them.
std::vector<double> turned(const std::vector<double>& x, std::uint32_t position) {
  const std::size_t half = x.size() / 2;
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < half; ++i) {
    const double angle = position * std::pow(0.3, static_cast<double>(i + 1));
    const double cosine = static_cast<float>(std::cos(angle));
    const double sine = static_cast<float>(std::sin(angle));
    out[i] = x[i] * cosine - x[i + half] * sine;
    out[i + half] = x[i + half] * cosine + x[i] * sine;
  }
  return out;
}

std::vector<double> softmax(std::vector<double> z) {
  const double most = *std::ranges::max_element(z);
  double sum = 0.0;
  for (double& score : z) sum += score = std::exp(score - most);
  for (double& score : z) score /= sum;
  return z;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// One layer's matrices, and what its rows are.
struct Lab {
  explicit Lab(std::uint32_t query_rank) {
    spec = {.rank = 20, .rope_dim = 4, .nope_dim = 6, .value_dim = 10, .query_rank = query_rank, .norm_eps = 1e-6f};
    std::mt19937 draw(7);
    x = random_matrix(draw, kRows, kHidden);
    for (auto& row : x) {
      for (double& number : row) number *= 4.0;
    }
    const std::size_t queries = kHeads * (spec.nope_dim + spec.rope_dim);
    first_query = random_matrix(draw, query_rank != 0 ? query_rank : queries, kHidden);
    second_query = random_matrix(draw, queries, std::max(query_rank, 1u));
    kv_rope = random_matrix(draw, spec.rope_dim, kHidden);
    kv_latent = random_matrix(draw, spec.rank, kHidden);
    for (std::uint32_t head = 0; head < kHeads; ++head) {
      keys.push_back(random_matrix(draw, spec.nope_dim, spec.rank));
      values.push_back(random_matrix(draw, spec.value_dim, spec.rank));
    }
  }
  double scale() const { return static_cast<float>(1.0 / std::sqrt(spec.nope_dim + spec.rope_dim)); }

  struct Row {
    std::vector<std::vector<double>> nope, rope;  // [H] of a query
    std::vector<double> key_rope, latent;
  };
  Row row(std::uint32_t position) const {
    Row out;
    std::vector<double> q = times(first_query, x[position]);
    if (spec.query_rank != 0) q = times(second_query, normed(q, spec.norm_eps));
    for (std::uint32_t head = 0; head < kHeads; ++head) {
      const auto nope = q.begin() + head * spec.nope_dim;
      const auto rope = q.begin() + kHeads * spec.nope_dim + head * spec.rope_dim;
      out.nope.emplace_back(nope, nope + spec.nope_dim);
      out.rope.push_back(turned({rope, rope + spec.rope_dim}, position));
    }
    out.key_rope = turned(times(kv_rope, x[position]), position);
    out.latent = normed(times(kv_latent, x[position]), spec.norm_eps);
    return out;
  }

  // [H·V] of the row at `position`.
  std::vector<double> naive(std::uint32_t position) const {
    std::vector<double> out;
    const Row query = row(position);
    for (std::uint32_t head = 0; head < kHeads; ++head) {
      std::vector<double> z;
      for (std::uint32_t j = 0; j <= position; ++j) {
        const Row seen = row(j);
        const double own = dot(query.nope[head], times(keys[head], seen.latent));
        z.push_back((own + dot(query.rope[head], seen.key_rope)) * scale());
      }
      z = softmax(z);
      std::vector<double> sum(spec.value_dim);
      for (std::uint32_t j = 0; j <= position; ++j) {
        const std::vector<double> value = times(values[head], row(j).latent);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += z[j] * value[i];
      }
      out.insert(out.end(), sum.begin(), sum.end());
    }
    return out;
  }
  std::vector<double> absorbed(std::uint32_t position) const {
    std::vector<double> out;
    const Row query = row(position);
    for (std::uint32_t head = 0; head < kHeads; ++head) {
      std::vector<double> taken(spec.rank);
      for (std::size_t c = 0; c < taken.size(); ++c) {
        for (std::size_t n = 0; n < query.nope[head].size(); ++n) taken[c] += query.nope[head][n] * keys[head][n][c];
      }
      std::vector<double> z;
      for (std::uint32_t j = 0; j <= position; ++j) {
        const Row seen = row(j);
        z.push_back((dot(taken, seen.latent) + dot(query.rope[head], seen.key_rope)) * scale());
      }
      z = softmax(z);
      std::vector<double> sum(spec.rank);
      for (std::uint32_t j = 0; j <= position; ++j) {
        const std::vector<double> latent = row(j).latent;
        for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += z[j] * latent[c];
      }
      const std::vector<double> value = times(values[head], sum);
      out.insert(out.end(), value.begin(), value.end());
    }
    return out;
  }

  LatentSpec spec;
  Matrix x, first_query, second_query, kv_rope, kv_latent;
  std::vector<Matrix> keys, values;  // [H] of [N, C] and [V, C]
};

std::vector<float> floats(const Matrix& matrix) {
  std::vector<float> out;
  for (const auto& row : matrix) {
    for (const double number : row) out.push_back(static_cast<float>(number));
  }
  return out;
}

Matrix transposed(const Matrix& matrix) {
  Matrix out(matrix.front().size(), std::vector<double>(matrix.size()));
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    for (std::size_t j = 0; j < matrix[i].size(); ++j) out[j][i] = matrix[i][j];
  }
  return out;
}

// The same by ops, in chunks of so many rows.
std::vector<float> by_ops(const Lab& lab, std::uint32_t chunk) {
  const auto ops = cpu::make_cpu_ops({.num_threads = 2, .isa = "auto", .max_rows = kRows});
  std::vector<std::unique_ptr<backend::Weight>> weights;
  const auto pack = [&](const Matrix& matrix) -> backend::WeightList {
    const std::vector<float> values = floats(matrix);
    const backend::HostMatrix host{values.data(), backend::Format::kF32, static_cast<std::uint32_t>(matrix.size()),
                                   static_cast<std::uint32_t>(matrix.front().size())};
    weights.push_back(ops->pack({&host, 1}, {}, std::nullopt));
    return backend::WeightList(*weights.back());
  };
  Matrix first = lab.first_query;
  first.insert(first.end(), lab.kv_rope.begin(), lab.kv_rope.end());
  first.insert(first.end(), lab.kv_latent.begin(), lab.kv_latent.end());
  const backend::WeightList all = pack(first);
  const auto ones = ops->upload(std::vector<float>(lab.spec.rank, 1.0f));
  const auto query_ones = ops->upload(std::vector<float>(std::max(lab.spec.query_rank, 1u), 1.0f));
  LatentAttention latent{lab.spec};
  if (lab.spec.query_rank != 0) {
    latent.query = pack(lab.second_query);
    latent.query_norm = {query_ones.get(), lab.spec.norm_eps};
  }
  latent.norm = {ones.get(), lab.spec.norm_eps};
  for (std::uint32_t head = 0; head < kHeads; ++head) {
    latent.keys.push_back(pack(transposed(lab.keys[head])));
    latent.values.push_back(pack(lab.values[head]));
  }

  std::vector<float> cosines, sines;
  for (std::uint32_t position = 0; position < kRows; ++position) {
    for (std::uint32_t i = 0; i < lab.spec.rope_dim / 2; ++i) {
      const double angle = position * std::pow(0.3, i + 1.0);
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  const auto rope = ops->upload_rope(cosines, sines, lab.spec.rope_dim / 2);
  const std::uint32_t width = lab.spec.rank + lab.spec.rope_dim;
  AttentionLayer layer;
  layer.num_heads = kHeads;
  layer.num_kv_heads = 1;
  layer.head_dim = width;
  layer.latent = lab.spec;
  backend::AttentionSpec attention;
  attention.num_heads = kHeads;
  attention.num_kv_heads = 1;
  attention.head_dim = width;
  attention.latent = lab.spec.rank;
  attention.scale = static_cast<float>(lab.scale());
  attention.rope = rope.get();
  const LatentBuffers buffers(*ops, layer, kRows);
  const auto cache = ops->make_kv({{backend::KvLayer{1, width, 0, 0, lab.spec.rank}}, 16, 2, backend::KvType::kF32});
  const auto x = ops->make_buffer(kRows, kHidden);
  const auto product = ops->make_buffer(kRows, all.n());
  const std::vector<float> rows = floats(lab.x);
  const std::vector<BlockId> table = {BlockId{1}, BlockId{0}};
  std::vector<float> out;
  for (std::uint32_t begin = 0; begin < kRows; begin += chunk) {
    const std::uint32_t count = std::min(chunk, kRows - begin);
    std::vector<TokenId> tokens(count);
    std::vector<std::uint32_t> positions, slots;
    for (std::uint32_t p = begin; p < begin + count; ++p) {
      positions.push_back(p);
      slots.push_back(table[p / 16].value * 16 + p % 16);
    }
    const std::vector<backend::SequenceRows> sequences = {
        {.num_rows = count, .first_position = begin, .num_table = static_cast<std::uint32_t>(table.size())}};
    ops->begin({tokens, positions, slots, sequences, table});
    ops->write(std::span(rows).subspan(begin * kHidden, count * kHidden), *x);
    ops->linear(*x, all, count, *product);
    const backend::Buffer& heads = attend_latent(*ops, latent, attention, *product, count, *cache, buffers);
    out.resize(out.size() + count * heads.width());
    ops->read(heads, 0, count, std::span(out).last(count * heads.width()));
  }
  return out;
}

TEST(LatentAttention, AbsorbedIsNaiveInF64) {
  for (const std::uint32_t query_rank : {0u, 8u}) {
    const Lab lab(query_rank);
    for (std::uint32_t position = 0; position < kRows; ++position) {
      const std::vector<double> expected = lab.naive(position);
      const std::vector<double> found = lab.absorbed(position);
      for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-12) << position;
    }
  }
}

TEST(LatentAttention, ByOpsIsNaiveWithinF32) {
  for (const std::uint32_t query_rank : {0u, 8u}) {
    const Lab lab(query_rank);
    const std::vector<float> found = by_ops(lab, kRows);
    double largest = 0.0;
    for (std::uint32_t position = 0; position < kRows; ++position) {
      const std::vector<double> expected = lab.naive(position);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(found[position * expected.size() + i], expected[i], 1e-5) << position << " " << i;
        largest = std::max(largest, std::abs(expected[i]));
      }
    }
    EXPECT_GT(largest, 0.5);
  }
}

TEST(LatentAttention, ItsBitsDoNotDependOnChunks) {
  for (const std::uint32_t query_rank : {0u, 8u}) {
    const Lab lab(query_rank);
    const std::vector<float> whole = by_ops(lab, kRows);
    for (const std::uint32_t chunk : {1u, 2u, 7u, 16u}) EXPECT_EQ(by_ops(lab, chunk), whole) << chunk;
  }
}

}  // namespace
}  // namespace quire::model::latent_test
