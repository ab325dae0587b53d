// A tiny decoder over Ops: embedding, two layers (head norms, one with a sliding window) and a tied head; odd sizes.
// Shape   E 76, H 6, G 2, D 18, F 106, V 203; or, in whole panels, D 32, F 112.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/cpu/rig.h"

namespace quire::cpu::test {

struct DecoderConfig {
  std::string isa = "auto";
  std::uint32_t threads = 1;
  Format dtype = Format::kBF16;
  KvType kv = KvType::kBF16;
  std::optional<backend::Format> quantize = std::nullopt;
  std::uint32_t block_tokens = 16;
  bool fused = true;
  bool whole_panels = false;                              // the sizes that the CPU backend has fused ops for
  std::function<std::unique_ptr<backend::Ops>()> make{};  // another backend's

  std::uint32_t head() const { return whole_panels ? 32 : 18; }
  std::uint32_t feed() const { return whole_panels ? 112 : 106; }
};

inline constexpr std::uint32_t kHidden = 76;
inline constexpr std::uint32_t kHeads = 6;
inline constexpr std::uint32_t kKvHeads = 2;
inline constexpr std::uint32_t kVocab = 203;
inline constexpr std::uint32_t kPositions = 400;
inline constexpr std::uint32_t kMaxRows = 400;

struct TinyLayer {
  backend::AttentionSpec attention;
  backend::Norm input_norm;
  backend::Norm post_norm;
  const backend::Weight* qkv;
  const backend::Weight* out;
  const backend::Weight* gate_up;
  const backend::Weight* down;
};

class Decoder {
 public:
  explicit Decoder(const DecoderConfig& config)
      : config_(config), ops_(config.make ? config.make() : make_ops(config.isa, config.threads, kMaxRows)) {
    const std::uint32_t head = config.head();
    const std::uint32_t feed = config.feed();
    Random random(4);
    table_ = random_weight(random, kVocab, kHidden);
    for (Layer& layer : layers_) {
      layer.vectors.push_back(ops_->upload(random.floats(kHidden)));
      layer.vectors.push_back(ops_->upload(random.floats(kHidden)));
      layer.vectors.push_back(ops_->upload(random.floats(head, 2.0f)));
      layer.vectors.push_back(ops_->upload(random.floats(head, 2.0f)));
      layer.weights.push_back(random_weight(random, (kHeads + 2 * kKvHeads) * head, kHidden));
      layer.weights.push_back(random_weight(random, kHidden, kHeads * head));
      layer.weights.push_back(random_weight(random, 2 * feed, kHidden));
      layer.weights.push_back(random_weight(random, kHidden, feed));
    }
    norm_ = ops_->upload(random.floats(kHidden));
    rope_ = ops_->upload_rope(random.floats(kPositions * head / 2), random.floats(kPositions * head / 2), head / 2);
    const std::uint32_t num_blocks = 4 * kPositions / config.block_tokens;
    cache_ = ops_->make_kv({backend::kv_layers(2, kKvHeads, head), config.block_tokens, num_blocks, config.kv, 8});
    for (auto [buffer, width] : {std::pair{&x_, kHidden},
                                 {&y_, kHidden},
                                 {&qkv_, (kHeads + 2 * kKvHeads) * head},
                                 {&attended_, kHeads * head},
                                 {&gate_up_, 2 * feed},
                                 {&product_, feed},
                                 {&logits_, kVocab}}) {
      *buffer = ops_->make_buffer(kMaxRows, width);
    }
    for (std::uint32_t i = 0; i < 2; ++i) specs_[i] = spec_of(i);
  }

  void step(const backend::Batch& batch, std::span<backend::Choice> choices) {
    ops_->begin(batch);
    ops_->embed(*table_, 1.0f, *x_);
    const std::uint32_t rows = batch.num_rows();
    for (const TinyLayer& layer : specs_) {
      if (config_.fused) {
        ops_->linear(*x_, *layer.qkv, rows, *qkv_, {layer.input_norm, y_.get()},
                     backend::ThenRopeStore{&layer.attention, cache_.get()});
      } else {
        ops_->norm(*x_, layer.input_norm, rows, *y_);
        ops_->linear(*y_, *layer.qkv, rows, *qkv_);
        ops_->rope_store(layer.attention, *qkv_, *cache_);
      }
      ops_->attend(layer.attention, *qkv_, *cache_, *attended_);
      if (config_.fused) {
        ops_->linear(*attended_, *layer.out, rows, *y_, {}, backend::ThenAdd{x_.get()});
        ops_->linear(*x_, *layer.gate_up, rows, *gate_up_, {layer.post_norm, y_.get()},
                     backend::ThenActivate{product_.get()});
        ops_->linear(*product_, *layer.down, rows, *y_, {}, backend::ThenAdd{x_.get()});
      } else {
        ops_->linear(*attended_, *layer.out, rows, *y_);
        ops_->add(*x_, *y_, 1.0f, rows);
        ops_->norm(*x_, layer.post_norm, rows, *y_);
        ops_->linear(*y_, *layer.gate_up, rows, *gate_up_);
        ops_->activate(*gate_up_, backend::Activation::kSilu, true, rows, *product_);
        ops_->linear(*product_, *layer.down, rows, *y_);
        ops_->add(*x_, *y_, 1.0f, rows);
      }
    }
    const auto logits_rows = static_cast<std::uint32_t>(batch.logits_rows.size());
    ops_->gather_logits_rows(*x_, *y_);
    ops_->norm(*y_, {norm_.get(), 1e-5f}, logits_rows, *x_);
    if (config_.fused) {
      ops_->linear(*x_, *table_, logits_rows, *logits_, {}, backend::ThenChoose{kVocab});
    } else {
      ops_->linear(*x_, *table_, logits_rows, *logits_);
      ops_->choose(*logits_, kVocab);
    }
    ops_->collect(choices);
  }

  backend::Ops& ops() { return *ops_; }
  std::vector<float> logits(std::uint32_t rows) { return read(*ops_, *logits_, rows); }

 private:
  struct Layer {
    std::vector<std::unique_ptr<backend::Vector>> vectors;
    std::vector<std::unique_ptr<backend::Weight>> weights;
  };

  std::unique_ptr<backend::Weight> random_weight(Random& random, std::uint32_t n, std::uint32_t k) {
    const Matrix matrix = random_matrix(random, n, k, config_.dtype, 0.3f);
    const backend::HostMatrix view = matrix.view();
    return ops_->pack({&view, 1}, {}, config_.quantize);
  }

  TinyLayer spec_of(std::uint32_t index) const {
    const Layer& layer = layers_[index];
    TinyLayer spec;
    spec.attention.layer = index;
    spec.attention.num_heads = kHeads;
    spec.attention.num_kv_heads = kKvHeads;
    spec.attention.head_dim = config_.head();
    spec.attention.scale = 0.25f;
    spec.attention.window = index == 0 ? 0 : 150u;
    spec.attention.q_norm.norm = {layer.vectors[2].get(), 1e-6f};
    spec.attention.k_norm.norm = {layer.vectors[3].get(), 1e-6f};
    spec.attention.rope = rope_.get();
    spec.input_norm = {layer.vectors[0].get(), 1e-5f};
    spec.post_norm = {layer.vectors[1].get(), 1e-5f};
    spec.qkv = layer.weights[0].get();
    spec.out = layer.weights[1].get();
    spec.gate_up = layer.weights[2].get();
    spec.down = layer.weights[3].get();
    return spec;
  }

  DecoderConfig config_;
  std::unique_ptr<backend::Ops> ops_;
  std::unique_ptr<backend::Weight> table_;
  Layer layers_[2];
  TinyLayer specs_[2];
  std::unique_ptr<backend::Vector> norm_;
  std::unique_ptr<backend::RopeTable> rope_;
  std::unique_ptr<backend::KvCache> cache_;
  std::unique_ptr<backend::Buffer> x_, y_, qkv_, attended_, gate_up_, product_, logits_;
};

// Random prompts, each with its blocks.
struct Prompts {
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::vector<BlockId>> tables;

  Prompts(std::span<const std::uint32_t> lengths, std::uint32_t block_tokens) {
    Random random(9);
    std::uint32_t next_block = 0;
    for (const std::uint32_t length : lengths) {
      tokens.emplace_back();
      for (std::uint32_t i = 0; i < length; ++i) tokens.back().push_back(static_cast<TokenId>(random.below(kVocab)));
      tables.emplace_back();
      for (std::uint32_t i = 0; i < length; i += block_tokens) tables.back().emplace_back(next_block++);
    }
  }
};

// The next `chunk` tokens, from `first` on, of the prompts named in `who`; every row speaks.
inline OwnedBatch make_step(const Prompts& prompts, std::uint32_t first, std::uint32_t chunk,
                            std::uint32_t block_tokens, std::span<const std::uint32_t> who) {
  OwnedBatch batch;
  for (const std::uint32_t s : who) {
    const auto& tokens = prompts.tokens[s];
    if (first >= tokens.size()) continue;
    const std::uint32_t count = std::min(chunk, static_cast<std::uint32_t>(tokens.size()) - first);
    batch.add(first, count, prompts.tables[s], block_tokens);
    batch.sequences.back().residual_group = s;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto row = static_cast<std::uint32_t>(batch.positions.size()) - count + i;
      batch.tokens[row] = tokens[first + i];
      sample::Params params;
      params.temperature = s % 2 == 0 ? 0.0f : 0.8f;
      params.top_p = 0.9f;
      params.seed = s + 1;
      batch.logits_rows.push_back({row, first + i + 1, params});
    }
  }
  return batch;
}

}  // namespace quire::cpu::test
