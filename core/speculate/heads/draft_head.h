// Forward pass of a draft head, by plain ops, with a KV cache of its own. The row at position t takes the *feature* g
// made from the target's hidden state there, and the embedding of the token at t + 1. It predicts the token at t + 2
// and the next feature.
//   EAGLE-3  g = fc(states), or the last state after the target's norm;  x = g + attend([norm(embed) | norm(g)]) Wo;
//            x += mlp(norm(x));  logits = norm(x) Whead
//   EAGLE-1  g = the last state after the target's norm;  x = fc([embed | g]);  x += attend(x) Wo;  x += mlp(norm(x));
//            logits = x Whead of the target
//   prefix   x = a state, without embedding;  x += attend(norm(x)) Wo;  x += mlp(norm(x));  output norm(x), no logits
// After the committed tokens, where the target has no state yet, x is the feature of the next row.
// Shape   T rows; features [T,E]; R logits rows, logits [R,Vd]. The cache has the target's blocks, then scratch blocks.
// Owner   the drafter. Ops and the target's decoder outlive it.
// Thread  made at startup, then engine. Each call is a complete device step; results of run() are valid until the next.
// Fails   StartError from the constructor. More rows than the limits are our bug: CHECK.
// Source  EAGLE (Li et al. 2024), EAGLE-3 (Li et al. 2025).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/backend/ops.h"
#include "core/model/decoder.h"
#include "core/model/layer.h"
#include "core/speculate/heads/head_config.h"
#include "core/speculate/heads/head_weights.h"
#include "core/speculate/heads/row_mover.h"

namespace quire::speculate {

struct HeadLimits {
  std::uint32_t max_rows = 512;  // T; at most the backend's limit
  std::uint32_t max_logits_rows = 64;
  std::uint32_t max_model_len = 0;
  std::uint32_t block_tokens = 16;
  std::uint32_t num_blocks = 0;  // scratch blocks included
  backend::KvType kv_dtype = backend::KvType::kBF16;
};

class DraftHead {
 public:
  DraftHead(backend::Ops& ops, const model::Decoder& target, const HeadConfig& config, HeadWeights weights,
            const HeadLimits& limits);
  DraftHead(const DraftHead&) = delete;
  DraftHead& operator=(const DraftHead&) = delete;

  // Computes features()[i] from states[rows[i]]; rows ascend.
  void take_states(const backend::Buffer& states, std::span<const std::uint32_t> rows);
  const backend::Buffer& features() const { return *features_; }
  // Copies rows of features() to host memory [n, E].
  void read_features(std::uint32_t first, std::uint32_t num, std::span<float> out) const;

  // Set the inputs of the next store() or run(), by row; one of these is called before it.
  void begin_with_features();                                     // features()[i]
  void begin_with_features(std::span<const std::uint32_t> rows);  // features()[rows[i]]; rows ascend, may repeat
  void begin_with_outputs(std::span<const std::uint32_t> rows);   // x[rows[i]] of the last run; rows likewise
  void begin_with_host(std::span<const float> rows);              // [n, E]
  void begin_with_zeros(std::uint32_t num_rows);                  // zeros

  // Stores K and V of the batch's rows; computes no logits.
  void store(const backend::Batch& batch);
  // Pass of a prefix layer. said() has its output for each logits row until the next call.
  void run_prefix(const backend::Batch& batch);
  const backend::Buffer& said() const { return *normed_; }
  // Full pass. Writes a choice with the requested candidates for each logits row, by the head's own token ids.
  void run(const backend::Batch& batch, std::span<backend::Choice> choices);
  // Logits [R, logits_width()] of the last run by the head's own token ids; for tests.
  void read_logits(std::uint32_t num_logits_rows, std::span<float> out) const;
  std::uint32_t logits_width() const { return logits_->width(); }

  TokenId token_of(TokenId draft) const {
    return weights_.token_of.empty() ? draft : weights_.token_of[static_cast<std::size_t>(draft)];
  }
  backend::KvCache& cache() { return *cache_; }
  const backend::AttentionSpec& attention() const { return layers_.front().attention; }
  // True if a row depends on the next token as well.
  bool looks_ahead() const { return config_.kind != HeadKind::kPrefix; }
  const HeadConfig& config() const { return config_; }
  const HeadLimits& limits() const { return limits_; }

 private:
  void make_layers(const model::Decoder& target);
  void make_buffers();
  void norm_each_state();
  void run_layers(const backend::Batch& batch, bool store_only);
  void open_first(std::uint32_t rows);
  void attend_and_go_on(const model::Layer& layer, std::uint32_t rows);
  backend::Norm norm_of(const std::unique_ptr<backend::Vector>& scale) const { return {scale.get(), config_.norm_eps}; }
  void choose(const backend::Batch& batch);

  backend::Ops& ops_;
  const HeadConfig config_;
  const HeadLimits limits_;
  HeadWeights weights_;
  const backend::Weight& embed_;
  const backend::Weight& output_;
  RowMover mover_;
  std::unique_ptr<backend::RopeTable> rope_;
  std::unique_ptr<backend::Weight> nothing_;  // [1, E] zeros
  std::vector<model::Layer> layers_;          // borrows from weights_ and rope_
  std::unique_ptr<backend::KvCache> cache_;

  std::unique_ptr<backend::Buffer> picked_;         // [T, S] states
  std::unique_ptr<backend::Buffer> normed_states_;  // [T, S]; null if they are not normed
  std::unique_ptr<backend::Buffer> state_;          // [T, Et] one of the states; Et the target's E
  std::unique_ptr<backend::Buffer> normed_state_;   // [T, Et]
  std::unique_ptr<backend::Buffer> features_;       // [T, E]
  std::unique_ptr<backend::Buffer> inputs_;         // [T, E]
  std::unique_ptr<backend::Buffer> embedded_;       // [T, E]
  std::unique_ptr<backend::Buffer> scratch_;        // [T, E]
  std::unique_ptr<backend::Buffer> wide_;           // [T, 2E]
  std::unique_ptr<backend::Buffer> x_;              // [T, E]
  std::unique_ptr<backend::Buffer> qkv_;            // [T, (H+2G)·D]
  std::unique_ptr<backend::Buffer> attention_;      // [T, H·D]
  std::unique_ptr<backend::Buffer> gate_up_;        // [T, 2F]
  std::unique_ptr<backend::Buffer> activated_;      // [T, F]
  std::unique_ptr<backend::Buffer> logits_rows_;    // [R, E]
  std::unique_ptr<backend::Buffer> normed_;         // [R, E]
  std::unique_ptr<backend::Buffer> logits_;         // [R, Vd]; null for a prefix

  std::uint32_t num_taken_ = 0;  // rows of features_
};

}  // namespace quire::speculate
