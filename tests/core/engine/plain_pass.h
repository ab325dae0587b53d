// A plain forward pass of the invented family in f64, and the tolerance of f32 logits against it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/model/spec.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::engine::invented_family_test {

using model::ModelSpec;
using model::testing::TestTensor;

using Row = std::vector<double>;

// The equations of this family in f64 for all positions of one sequence; nothing is shared with core/.
class PlainPass {
 public:
  PlainPass(const ModelSpec& spec, const std::vector<TestTensor>& tensors) : spec_(spec) {
    for (const TestTensor& tensor : tensors) {
      Row& values = tensors_[tensor.name];
      for (std::size_t i = 0; i < tensor.data.size(); i += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, tensor.data.data() + i, sizeof(value));
        values.push_back(value);
      }
    }
  }

  // Logits [T, V].
  std::vector<Row> logits(const std::vector<TokenId>& tokens) {
    std::vector<Row> x;
    for (const TokenId token : tokens) {
      const auto first = tensors_.at("model.trunk.embed_tokens.weight").begin() + token * spec_.hidden;
      x.emplace_back(first, first + spec_.hidden);
    }
    for (std::size_t index = 0; index < spec_.layers.size(); ++index) {
      layer_ = "model.trunk.layers." + std::to_string(index) + ".";
      const std::vector<Row> mixed = mix(spec_.layers[index].attention, x);
      for (std::size_t t = 0; t < x.size(); ++t) {
        add(x[t], normed(mixed[t], layer_ + "after_mix"));
        add(x[t], normed(think(normed(x[t], layer_ + "before_think")), layer_ + "after_think"));
      }
    }
    for (Row& row : x) {
      row = normed(row, "model.trunk.last");
      lengths.push_back(length(row));
      row = multiplied("speak", row);
      for (double& logit : row) logit = capped(logit, spec_.logit_softcap);
    }
    return x;
  }

  // Length of the longest row of the head.
  double widest() const {
    const Row& head = tensors_.at("speak.weight");
    double most = 0.0;
    for (auto row = head.begin(); row != head.end(); row += spec_.hidden) {
      most = std::max(most, length({row, row + spec_.hidden}));
    }
    return most;
  }

  std::vector<double> lengths;  // [T] of the rows before the head

 private:
  static double length(const Row& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }
  static void add(Row& x, const Row& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  static double capped(double z, double cap) { return cap == 0.0 ? z : cap * std::tanh(z / cap); }

  // (x - mean) / sqrt(variance + eps) * w + b
  Row normed(const Row& x, const std::string& name) {
    const auto size = static_cast<double>(x.size());
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / size;
    double squares = 0.0;
    for (const double value : x) squares += (value - mean) * (value - mean);
    const double r = 1.0 / std::sqrt(squares / size + double{spec_.final_norm->eps});
    const Row& w = tensors_.at(name + ".weight");
    const Row& b = tensors_.at(name + ".bias");
    Row out;
    for (std::size_t i = 0; i < x.size(); ++i) {
      out.push_back((x[i] - mean) * r * w[i] + (spec_.final_norm->bias ? b[i] : 0.0));
    }
    return out;
  }

  // W x
  Row multiplied(const std::string& name, const Row& x) {
    const Row& w = tensors_.at(name + ".weight");
    Row out;
    for (auto row = w.begin(); row != w.end(); row += static_cast<std::ptrdiff_t>(x.size())) {
      out.push_back(std::inner_product(x.begin(), x.end(), row, 0.0));
    }
    return out;
  }

  // W2 relu(W1 x)²
  Row think(const Row& x) {
    Row wide = multiplied(layer_ + "think.widen", x);
    for (double& g : wide) g = g > 0.0 ? g * g : 0.0;
    return multiplied(layer_ + "think.narrow", wide);
  }

  // Dimensions i and i + r/2 of each head turn by position · theta^(-2i/r).
  void turn(Row& heads, std::size_t position) const {
    const std::size_t head_dim = spec_.layers[0].attention.head_dim;
    const std::size_t half = spec_.ropes[0].rotary_dims(spec_.layers[0].attention.head_dim) / 2;
    for (std::size_t head = 0; head < heads.size(); head += head_dim) {
      for (std::size_t i = 0; i < half; ++i) {
        const double frequency = std::pow(spec_.ropes[0].theta, -static_cast<double>(i) / static_cast<double>(half));
        const double cosine = std::cos(static_cast<double>(position) * frequency);
        const double sine = std::sin(static_cast<double>(position) * frequency);
        const double low = heads[head + i], high = heads[head + i + half];
        heads[head + i] = low * cosine - high * sine;
        heads[head + i + half] = high * cosine + low * sine;
      }
    }
  }

  std::vector<Row> mix(const model::AttentionLayer& attention, const std::vector<Row>& x) {
    std::vector<Row> q, k, v, out;
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Row n = normed(x[t], layer_ + "before_mix");
      q.push_back(multiplied(layer_ + "mix.ask", n));
      k.push_back(multiplied(layer_ + "mix.key", n));
      v.push_back(multiplied(layer_ + "mix.value", n));
      turn(q.back(), t);
      turn(k.back(), t);
      Row heads;
      for (std::uint32_t head = 0; head < attention.num_heads; ++head) {
        const Row of_head = look(attention, head, q.back(), k, v);
        heads.insert(heads.end(), of_head.begin(), of_head.end());
      }
      out.push_back(multiplied(layer_ + "mix.out", heads));
    }
    return out;
  }

  // sum over j of softmax_j(cap(q·k_j · scale)) v_j, of one head.
  static Row look(const model::AttentionLayer& attention, std::uint32_t head, const Row& q, const std::vector<Row>& k,
                  const std::vector<Row>& v) {
    const std::uint32_t size = attention.head_dim;
    const std::uint32_t shared = head / (attention.num_heads / attention.num_kv_heads) * size;
    const std::size_t seen = attention.window == 0 ? k.size() : std::min<std::size_t>(k.size(), attention.window);
    Row out(size);
    double total = 0.0;
    for (std::size_t j = k.size() - seen; j < k.size(); ++j) {
      const auto mine = q.begin() + head * size;
      const double z = std::inner_product(mine, mine + size, k[j].begin() + shared, 0.0) * double{attention.scale};
      const double weight = std::exp(capped(z, attention.softcap));
      total += weight;
      for (std::uint32_t d = 0; d < size; ++d) out[d] += weight * v[j][shared + d];
    }
    for (double& value : out) value /= total;
    return out;
  }

  ModelSpec spec_;
  std::map<std::string, Row> tensors_;
  std::string layer_;
};

// Tolerance, derived as in tests/golden/golden_support.py: rounding errors of sums of n products add up to more than
// 6 sqrt(n) u of their size with probability 2 exp(-18) (Higham and Mary, SIAM J. Sci. Comput. 41, 2019). N adds up the
// sums on the longest path from a token to a logit; the norms bring the residual stream back to length one, so that a
// logit x·w is off by 6 sqrt(N) u |x||w|. In every layer position p's angle is off by p · 4u: two roundings of its
// frequency (the exponents i/4 are exact), the product's and the sine's. Caps enlarge nothing.
inline double tolerance(const ModelSpec& spec, std::size_t position, double length_of_x, double widest) {
  const model::LayerSpec& layer = spec.layers[0];
  const double norms = 4 * 2 * spec.hidden;  // a mean and a variance each
  const double attention =
      spec.hidden + layer.attention.head_dim + 2.0 * static_cast<double>(position + 1) + layer.attention.q_width();
  const double mlp = spec.hidden + layer.mlp.width;
  const double chain = spec.num_layers() * (norms + attention + mlp + 16) + 3 * spec.hidden;
  const double angle = static_cast<double>(position) * 4;
  return (6 * std::sqrt(chain) + spec.num_layers() * angle) * 0x1p-24 * length_of_x * widest;
}

}  // namespace quire::engine::invented_family_test
