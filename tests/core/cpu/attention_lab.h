// The paged attention lab: sequences with random q, k and v, a cache with shuffled blocks, steps that feed their rows.
// Two references that share nothing with core/cpu: dense attention in f64, and the contract of core/backend/step_ops.h taken
// literally in f32, one row and one head at a time.
// Shape   rope is the identity here (cos 1, sin 0), so the cache holds k and v themselves, in its type (stored_kv.h).
// Source  lab "Paged Attention in Pure Numpy": poison what must not be read; a layout must not be visible.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/float_bits.h"
#include "core/sample/math.h"
#include "tests/core/cpu/rig.h"
#include "tests/core/cpu/stored_kv.h"

namespace quire::cpu::test {

// Biases of scores by position: none, of the distance, or of the position in bf16.
enum class LabBias { kNone, kDistance, kInBf16 };

struct LabShape {
  std::uint32_t num_heads = 4;
  std::uint32_t num_kv_heads = 2;
  std::uint32_t head_dim = 64;
  std::uint32_t block_tokens = 16;
  KvType type = KvType::kBF16;
  std::uint32_t window = 0;
  float softcap = 0.0f;
  LabBias bias = LabBias::kNone;
  bool sinks = false;
  std::uint32_t latent = 0;  // not 0, G = 1: a value is the last numbers of its key

  std::string text() const {
    return "H " + std::to_string(num_heads) + " G " + std::to_string(num_kv_heads) + " D " + std::to_string(head_dim) +
           " P " + std::to_string(block_tokens) + " " + backend::name_of(type) + " window " + std::to_string(window) +
           (softcap == 0.0f ? "" : " softcap " + std::to_string(softcap)) +
           (bias == LabBias::kNone       ? ""
            : bias == LabBias::kDistance ? " biases"
                                         : " biases in bf16") +
           (sinks ? " sinks" : "") + (latent == 0 ? "" : " latent " + std::to_string(latent));
  }
  std::uint32_t value_dim() const { return latent == 0 ? head_dim : latent; }
  std::uint32_t out_width() const { return num_heads * value_dim(); }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_dim)); }
  // Above and below the scores.
  float sink(std::uint32_t head) const { return head % 2 == 0 ? 0.7f - static_cast<float>(head) : 3.3f; }
  // Not powers of two, so that products round; those of heads after the first are smaller.
  float slope(std::uint32_t head) const {
    const float slope = 0.3f / static_cast<float>(1 + head);
    return bias == LabBias::kInBf16 ? as_bf16(slope) : slope;
  }
  static float as_bf16(float x) { return f32_of_bf16(bf16_of_f32(x)); }
  float bias_in_bf16(std::uint32_t head, std::uint32_t j) const {
    return as_bf16(slope(head) * as_bf16(static_cast<float>(j)));
  }
  // The scaled score of a head's row at p and of position j, as the softmax takes it.
  float finished(float z, std::uint32_t head, std::uint32_t p, std::uint32_t j) const {
    if (softcap != 0.0f) z = softcap * sample::tanh_f32(z / softcap);
    if (bias == LabBias::kDistance) return std::fma(slope(head), -static_cast<float>(p - j), z);
    return bias == LabBias::kNone ? z : std::fma(bias_in_bf16(head, j), scale(), z);
  }
  std::uint32_t q_width() const { return num_heads * head_dim; }
  std::uint32_t kv_width() const { return num_kv_heads * head_dim; }
  std::uint32_t width() const { return q_width() + (latent == 0 ? 2 : 1) * kv_width(); }
};

// One sequence's rows q | k | v, [length, width].
struct LabSequence {
  std::uint32_t length = 0;
  std::vector<float> rows;
  std::vector<float> stored{};  // the same, keys and values as the cache gives them back
  // What rows of span s still have: kept[s] is a word for each span before s (backend::SequenceRows). Empty:
  // everything.
  std::vector<std::vector<std::uint16_t>> kept{};

  bool accumulated_scores = false;  // whether its accumulated scores are wanted

  // Whether the row at p sees position j <= p, windows aside.
  bool has(std::uint32_t p, std::uint32_t j) const {
    if (kept.empty() || j / 256 == p / 256) return true;
    return (kept[p / 256][j / 256] >> (j % 256 / 16) & 1) != 0;
  }
  const float* q(const LabShape& s, std::uint32_t p, std::uint32_t head) const {
    return rows.data() + std::size_t{p} * s.width() + head * s.head_dim;
  }
  // Key and value at position j as the row at p reads them: int4 leaves a row's own group as it was.
  const float* k(const LabShape& s, std::uint32_t p, std::uint32_t j, std::uint32_t head) const {
    const std::vector<float>& from = s.type == KvType::kInt4 && j / 16 == p / 16 ? rows : stored;
    return from.data() + std::size_t{j} * s.width() + s.q_width() + head / (s.num_heads / s.num_kv_heads) * s.head_dim;
  }
  const float* v(const LabShape& s, std::uint32_t p, std::uint32_t j, std::uint32_t head) const {
    return k(s, p, j, head) + (s.latent == 0 ? s.kv_width() : s.head_dim - s.latent);
  }
};

inline std::vector<LabSequence> lab_sequences(const LabShape& shape, std::span<const std::uint32_t> lengths,
                                              std::uint32_t seed) {
  Random random(seed);
  std::vector<LabSequence> out;
  for (const std::uint32_t length : lengths) {
    LabSequence& sequence = out.emplace_back();
    sequence.length = length;
    sequence.rows = random.floats(std::size_t{length} * shape.width(), 2.0f);
    sequence.stored = sequence.rows;
    const auto at = [&](std::uint32_t j, std::uint32_t i) {  // key i, and behind the keys the values
      return std::size_t{j} * shape.width() + shape.q_width() + i * shape.head_dim;
    };
    for (std::uint32_t j = 0; j < length; ++j) {
      const auto store = [&](std::size_t from, std::uint32_t count) {
        const auto stored = as_stored(shape.type, std::span(sequence.rows).subspan(from, count));
        std::copy(stored.begin(), stored.end(), sequence.stored.data() + from);
      };
      if (shape.latent != 0) {
        store(at(j, 0), shape.head_dim - shape.latent);
        store(at(j, 0) + shape.head_dim - shape.latent, shape.latent);
        continue;
      }
      for (std::uint32_t i = 0; i < 2 * shape.num_kv_heads; ++i) store(at(j, i), shape.head_dim);
    }
    if (shape.type != KvType::kInt4) continue;
    for (std::uint32_t start = 0; start + 16 <= length; start += 16) {
      for (std::uint32_t i = 0; i < shape.num_kv_heads; ++i) {
        std::vector<float> group;
        for (std::uint32_t j = start; j < start + 16; ++j) {
          const float* key = sequence.rows.data() + at(j, i);
          group.insert(group.end(), key, key + shape.head_dim);
        }
        group = keys_as_int4(group);
        for (std::uint32_t t = 0; t < 16; ++t) {
          std::copy_n(group.data() + t * shape.head_dim, shape.head_dim, sequence.stored.data() + at(start + t, i));
        }
      }
    }
  }
  return out;
}

inline std::uint32_t lowest_seen(const LabShape& shape, std::uint32_t p) {
  return shape.window == 0 || p + 1 < shape.window ? 0 : p + 1 - shape.window;
}

// out[H * D] (of a latent [H * L]) of the row at p, dense and in f64; `tolerance` is what f32 may differ by: per score (D + 2) roundings of
// sum |q k|, with a softcap 5 ulp of it, with a bias one of that, then exp to 2 ulp, the sums to one rounding a
// position, all of them on values not above max |v|.
inline std::vector<double> dense_f64(const LabShape& s, const LabSequence& sequence, std::uint32_t p, double* tolerance,
                                     std::vector<double>* accumulated_scores = nullptr) {
  std::vector<double> out(s.out_width());
  double score_error = 0;
  double largest_v = 0;
  for (std::uint32_t h = 0; h < s.num_heads; ++h) {
    const std::uint32_t first = lowest_seen(s, p);
    std::vector<double> z(p + 1 - first);
    for (std::uint32_t j = first; j <= p; ++j) {
      if (!sequence.has(p, j)) {
        z[j - first] = -std::numeric_limits<double>::infinity();
        continue;
      }
      double size = 0;
      for (std::uint32_t d = 0; d < s.head_dim; ++d) {
        const double product = double{sequence.q(s, p, h)[d]} * double{sequence.k(s, p, j, h)[d]};
        z[j - first] += product * double{s.scale()};
        size += std::abs(product) * double{s.scale()};
      }
      for (std::uint32_t d = 0; d < s.value_dim(); ++d) {
        largest_v = std::max(largest_v, std::abs(double{sequence.v(s, p, j, h)[d]}));
      }
      double& score = z[j - first];
      if (s.softcap != 0.0f) score = double{s.softcap} * std::tanh(score / double{s.softcap});
      double bias = 0.0;
      if (s.bias == LabBias::kDistance) bias = -double{s.slope(h)} * (p - j);
      if (s.bias == LabBias::kInBf16) bias = double{s.bias_in_bf16(h, j)} * double{s.scale()};
      score += bias;
      score_error = std::max(
          score_error, size * (s.head_dim + 2) * 0x1p-24 + double{s.softcap} * 5 * 0x1p-23 + std::abs(bias) * 0x1p-23);
    }
    double highest = *std::max_element(z.begin(), z.end());
    if (s.sinks) highest = std::max(highest, double{s.sink(h)});
    double sum = s.sinks ? std::exp(double{s.sink(h)} - highest) : 0.0;
    for (double& value : z) sum += value = std::exp(value - highest);
    for (std::uint32_t j = first; j <= p; ++j) {
      if (!sequence.has(p, j)) continue;
      if (accumulated_scores != nullptr) (*accumulated_scores)[j / 16] += z[j - first] / sum;
      for (std::uint32_t d = 0; d < s.value_dim(); ++d) {
        out[h * s.value_dim() + d] += z[j - first] / sum * double{sequence.v(s, p, j, h)[d]};
      }
    }
  }
  *tolerance = largest_v * (2 * score_error + (p + 16) * 0x1p-23);
  return out;
}

// The contract, literally.
inline std::vector<float> contract_f32(const LabShape& s, const LabSequence& sequence, std::uint32_t p) {
  std::vector<float> out(s.out_width());
  for (std::uint32_t h = 0; h < s.num_heads; ++h) {
    const std::uint32_t lowest = lowest_seen(s, p);
    float max = 0;
    float sum = 0;
    std::vector<float> o(s.value_dim());
    bool begun = false;
    for (std::uint32_t span = lowest / 256; span <= p / 256; ++span) {
      const std::uint32_t first = std::max(lowest, span * 256);
      const std::uint32_t last = std::min(p + 1, (span + 1) * 256);
      std::vector<float> e(last - first);
      float span_max = -std::numeric_limits<float>::infinity();
      bool any = false;
      for (std::uint32_t j = first; j < last; ++j) {
        if (!sequence.has(p, j)) continue;
        any = true;
        float dot = 0;
        for (std::uint32_t d = 0; d < s.head_dim; ++d) {
          dot = std::fma(sequence.q(s, p, h)[d], sequence.k(s, p, j, h)[d], dot);
        }
        e[j - first] = s.finished(dot * s.scale(), h, p, j);
        span_max = std::max(span_max, e[j - first]);
      }
      if (!any) continue;
      float lanes[16] = {};
      std::vector<float> span_o(s.value_dim());
      for (std::uint32_t j = first; j < last; ++j) {
        if (!sequence.has(p, j)) continue;
        float& weight = e[j - first];
        weight = sample::exp_f32(weight - span_max);
        lanes[j % 16] += weight;
        for (std::uint32_t d = 0; d < s.value_dim(); ++d) {
          span_o[d] = std::fma(weight, sequence.v(s, p, j, h)[d], span_o[d]);
        }
      }
      for (std::uint32_t half = 8; half != 0; half /= 2) {
        for (std::uint32_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
      }
      if (!begun) {
        begun = true;
        max = span_max;
        sum = lanes[0];
        o = span_o;
        continue;
      }
      const float both = std::max(max, span_max);
      const float a = sample::exp_f32(max - both);
      const float b = sample::exp_f32(span_max - both);
      sum = std::fma(sum, a, lanes[0] * b);
      for (std::uint32_t d = 0; d < s.value_dim(); ++d) o[d] = std::fma(o[d], a, span_o[d] * b);
      max = both;
    }
    if (s.sinks) {
      const float both = std::max(max, s.sink(h));
      const float a = sample::exp_f32(max - both);
      sum = std::fma(sum, a, 1.0f * sample::exp_f32(s.sink(h) - both));
      for (float& value : o) value = std::fma(value, a, 0.0f);
    }
    for (std::uint32_t d = 0; d < s.value_dim(); ++d) out[h * s.value_dim() + d] = o[d] * (1.0f / sum);
  }
  return out;
}

// Rows of one step: sequence, first position, number of rows.
struct LabRows {
  std::uint32_t sequence;
  std::uint32_t first;
  std::uint32_t count;
};

class Lab {
 public:
  // Blocks are dealt out in an order that `layout` shuffles.
  Lab(backend::Ops& ops, const LabShape& shape, std::vector<LabSequence> sequences, std::uint32_t layout)
      : ops_(ops), shape_(shape), sequences_(std::move(sequences)) {
    std::vector<BlockId> blocks;
    std::uint32_t num_blocks = 3;  // some belong to nobody
    for (const LabSequence& s : sequences_) num_blocks += (s.length + shape.block_tokens - 1) / shape.block_tokens;
    for (std::uint32_t i = 0; i < num_blocks; ++i) blocks.emplace_back(i);
    Random random(layout);
    std::shuffle(blocks.begin(), blocks.end(), random.engine());
    for (const LabSequence& s : sequences_) {
      const std::uint32_t count = (s.length + shape.block_tokens - 1) / shape.block_tokens;
      tables_.emplace_back(blocks.end() - count, blocks.end());
      blocks.resize(blocks.size() - count);
      out_.emplace_back(std::size_t{s.length} * shape.out_width());
      accumulated_scores_.emplace_back();
    }
    std::vector<backend::KvLayer> layers = backend::kv_layers(2, shape.num_kv_heads, shape.head_dim);
    for (backend::KvLayer& layer : layers) layer.latent = shape.latent;
    cache_ = ops.make_kv(
        {std::move(layers), shape.block_tokens, num_blocks, shape.type, static_cast<std::uint32_t>(sequences_.size())});
    if (shape.bias != LabBias::kNone) {
      std::vector<float> slopes = {NAN};  // of a head before
      for (std::uint32_t head = 0; head < shape.num_heads; ++head) slopes.push_back(shape.slope(head));
      slopes_ = ops.upload(slopes);
    }
    if (shape.sinks) {
      std::vector<float> scores = {NAN};  // of a head before
      for (std::uint32_t head = 0; head < shape.num_heads; ++head) scores.push_back(shape.sink(head));
      sinks_ = ops.upload(scores);
    }
    const std::uint32_t half = shape.head_dim / 2;
    const std::uint32_t positions = num_blocks * shape.block_tokens;
    rope_ = ops.upload_rope(std::vector<float>(std::size_t{positions} * half, 1.0f),
                            std::vector<float>(std::size_t{positions} * half, 0.0f), half);
  }

  // Every slot of the cache := value, as K and as V.
  void poison(float value) {
    const std::uint32_t num_blocks = cache_->shape().num_blocks;
    for (std::uint32_t block = 0; block < num_blocks; ++block) {
      OwnedBatch batch;
      const std::vector<BlockId> table = {BlockId{block}};
      batch.add(0, shape_.block_tokens, table, shape_.block_tokens);
      step(batch, std::vector<float>(std::size_t{shape_.block_tokens} * shape_.width(), value), nullptr);
    }
  }

  void step(std::span<const LabRows> rows) {
    OwnedBatch batch;
    std::vector<float> qkv;
    for (const LabRows& r : rows) {
      const LabSequence& sequence = sequences_[r.sequence];
      if (sequence.kept.empty()) {
        batch.add(r.first, r.count, tables_[r.sequence], shape_.block_tokens);
      } else {
        drop_blocks(r.sequence, r.first);
        batch.add(r.first, r.count, tables_[r.sequence], shape_.block_tokens, sequence.kept[r.first / 256]);
      }
      backend::SequenceRows& added = batch.sequences.back();
      added.residual_group = r.sequence;
      if (sequence.accumulated_scores) {
        added.first_accumulated_score = batch.num_accumulated_scores;
        added.num_accumulated_scores = (r.first + r.count + 15) / 16;
        batch.num_accumulated_scores += added.num_accumulated_scores;
      }
      const auto begin =
          sequences_[r.sequence].rows.begin() + static_cast<std::ptrdiff_t>(std::size_t{r.first} * shape_.width());
      qkv.insert(qkv.end(), begin, begin + static_cast<std::ptrdiff_t>(std::size_t{r.count} * shape_.width()));
    }
    std::vector<float> out;
    step(batch, qkv, &out);
    std::vector<std::uint64_t> accumulated_scores(batch.num_accumulated_scores);
    ops_.read_accumulated_scores(accumulated_scores);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::vector<std::uint64_t>& sums = accumulated_scores_[rows[i].sequence];
      const backend::SequenceRows& added = batch.sequences[i];
      if (sums.size() < added.num_accumulated_scores) sums.resize(added.num_accumulated_scores);
      for (std::uint32_t group = 0; group < added.num_accumulated_scores; ++group)
        sums[group] += accumulated_scores[added.first_accumulated_score + group];
    }
    auto from = out.begin();
    for (const LabRows& r : rows) {
      const auto count = static_cast<std::ptrdiff_t>(std::size_t{r.count} * shape_.out_width());
      std::copy(from, from + count,
                out_[r.sequence].begin() + static_cast<std::ptrdiff_t>(std::size_t{r.first} * shape_.out_width()));
      from += count;
    }
  }

  // Every sequence in chunks of `chunk` rows (dividing 256 where something is dropped: rows lie in one span), all
  // sequences in each step or one after the other.
  void prefill(std::uint32_t chunk, bool together) {
    std::uint32_t longest = 0;
    for (const LabSequence& s : sequences_) longest = std::max(longest, s.length);
    const auto count = static_cast<std::uint32_t>(sequences_.size());
    for (std::uint32_t turn = 0; turn < (together ? 1 : count); ++turn) {
      for (std::uint32_t first = 0; first < longest; first += chunk) {
        std::vector<LabRows> rows;
        for (std::uint32_t s = 0; s < count; ++s) {
          if (first < sequences_[s].length && (together || s == turn)) {
            rows.push_back({s, first, std::min(chunk, sequences_[s].length - first)});
          }
        }
        if (!rows.empty()) step(rows);
      }
    }
  }

  const std::vector<std::vector<float>>& out() const { return out_; }
  // Of all steps together, by sequence and group of 16 positions.
  const std::vector<std::vector<std::uint64_t>>& accumulated_scores() const { return accumulated_scores_; }
  const std::vector<LabSequence>& sequences() const { return sequences_; }
  const std::vector<BlockId>& table(std::size_t sequence) const { return tables_[sequence]; }
  backend::KvCache& cache() { return *cache_; }
  void set_table(std::size_t sequence, std::vector<BlockId> table) { tables_[sequence] = std::move(table); }
  void set_rows(std::size_t sequence, std::vector<float> rows) { sequences_[sequence].rows = std::move(rows); }

  // Blocks that rows from `position` on do not look at any more are given back, and whoever gets them leaves NaN in
  // them.
  void drop_blocks(std::size_t index, std::uint32_t position) {
    const LabSequence& sequence = sequences_[index];
    std::vector<BlockId>& table = tables_[index];
    for (std::uint32_t b = 0; b < position / 256 * 256 / shape_.block_tokens; ++b) {
      bool needed = false;
      for (std::uint32_t i = 0; i < shape_.block_tokens; ++i) {
        const std::uint32_t j = b * shape_.block_tokens + i;
        needed = needed || (j >= lowest_seen(shape_, position) && sequence.has(position, j));
      }
      if (needed || table[b].value == ~0u) continue;
      ops_.poison_block(*cache_, table[b]);
      table[b] = BlockId(~0u);
      ++num_dropped;
    }
  }
  std::uint32_t num_dropped = 0;

 private:
  void step(const OwnedBatch& batch, const std::vector<float>& values, std::vector<float>* out) {
    const auto rows = static_cast<std::uint32_t>(batch.positions.size());
    auto qkv = ops_.make_buffer(rows, shape_.width());
    auto result = ops_.make_buffer(rows, shape_.out_width());
    backend::AttentionSpec spec;
    spec.layer = 1;
    spec.num_heads = shape_.num_heads;
    spec.num_kv_heads = shape_.num_kv_heads;
    spec.head_dim = shape_.head_dim;
    spec.latent = shape_.latent;
    spec.scale = shape_.scale();
    spec.window = shape_.window;
    spec.softcap = shape_.softcap;
    if (slopes_ != nullptr) spec.bias = {slopes_.get(), 1, shape_.bias == LabBias::kInBf16};
    if (sinks_ != nullptr) spec.sinks = {sinks_.get(), 1};
    spec.rope = rope_.get();
    ops_.begin(batch.view());
    fill(ops_, *qkv, values);
    ops_.rope_store(spec, *qkv, *cache_);
    if (out == nullptr) return;
    ops_.attend(spec, *qkv, *cache_, *result);
    *out = read(ops_, *result, rows);
  }

  backend::Ops& ops_;
  LabShape shape_;
  std::vector<LabSequence> sequences_;
  std::vector<std::vector<BlockId>> tables_;
  std::vector<std::vector<float>> out_;
  std::vector<std::vector<std::uint64_t>> accumulated_scores_;
  std::unique_ptr<backend::KvCache> cache_;
  std::unique_ptr<backend::RopeTable> rope_;
  std::unique_ptr<backend::Vector> slopes_, sinks_;
};

}  // namespace quire::cpu::test
