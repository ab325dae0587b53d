// A draft head's forward pass over a KV cache of its own, by plain ops. Row t stands at position t, holds what the
// target made of the token there, its *feature*, and the embedding of the token at t + 1; it guesses the token at t + 2
// and the next feature.
//   EAGLE-3  g = fc(states), or the last state behind the target's norm;  x = g + attend([norm(embed) | norm(g)]) Wo;
//            x += mlp(norm(x));  logits = norm(x) Whead
//   EAGLE-1  g = the last state behind the target's norm;  x = fc([embed | g]);  x += attend(x) Wo;  x += mlp(norm(x));
//            logits = x Whead of the target
//   prefix   x = a state, and nothing else;  x += attend(norm(x)) Wo;  x += mlp(norm(x));  norm(x) is what it says
// Where the target's own states are unknown, x is the feature of the next row.
// Shape   T rows; features [T,E]; R logits rows, logits [R,Vd]. The cache has the target's blocks and, behind them,
//         scratch.
// Owner   whoever drafts. Ops and the target's decoder outlive it.
// Thread  made while starting; then engine. Each call is a step of the device, begun and collected: what a caller of
//         run() wants to keep it copies before the next.
// Fails   StartError from the constructor. Rows beyond the limits are our bug: CHECK.
// Source  EAGLE (Li et al. 2024), EAGLE-3 (Li et al. 2025).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/backend/layer_spec.h"
#include "core/backend/ops.h"
#include "core/model/decoder.h"
#include "core/speculate/heads/head_config.h"
#include "core/speculate/heads/head_weights.h"
#include "core/speculate/heads/row_mover.h"

namespace quire::speculate {

struct HeadLimits {
  std::uint32_t max_rows = 512;  // T; no more than the backend's
  std::uint32_t max_logits_rows = 64;
  std::uint32_t max_model_len = 0;
  std::uint32_t block_tokens = 16;
  std::uint32_t num_blocks = 0;  // scratch included
  backend::KvType kv_dtype = backend::KvType::kBF16;
};

class DraftHead {
 public:
  DraftHead(backend::Ops& ops, const model::Decoder& target, const HeadConfig& config, HeadWeights weights,
            const HeadLimits& limits);
  DraftHead(const DraftHead&) = delete;
  DraftHead& operator=(const DraftHead&) = delete;

  // features()[i] = what the head makes of states[rows[i]]; rows ascend.
  void take_states(const backend::Buffer& states, std::span<const std::uint32_t> rows);
  const backend::Buffer& features() const { return *features_; }
  // Of rows already taken, in host memory [n, E].
  void read_features(std::uint32_t first, std::uint32_t num, std::span<float> out) const;

  // What the rows of the next store() or run() begin with: one of
  void begin_with_features();                                     // features()[i], row by row
  void begin_with_features(std::span<const std::uint32_t> rows);  // features()[rows[i]]; rows ascend, may repeat
  void begin_with_outputs(std::span<const std::uint32_t> rows);   // x[rows[i]] of the run before, likewise
  void begin_with_host(std::span<const float> rows);              // [n, E]
  void begin_with_nothing(std::uint32_t num_rows);                // zeros

  // K and V of the batch's rows; nobody speaks.
  void store(const backend::Batch& batch);
  // A prefix's pass: what the batch's logits rows say, in said() by logits row, until the next call.
  void run_prefix(const backend::Batch& batch);
  const backend::Buffer& said() const { return *normed_; }
  // The whole pass; a choice, with as many candidates as asked for, for each logits row. Tokens are the head's own ids.
  void run(const backend::Batch& batch, std::span<backend::Choice> choices);
  // Logits [R, logits_width()] of the run before, the head's own ids first: for tests.
  void read_logits(std::uint32_t num_logits_rows, std::span<float> out) const;
  std::uint32_t logits_width() const { return logits_->width(); }

  TokenId token_of(TokenId draft) const {
    return weights_.token_of.empty() ? draft : weights_.token_of[static_cast<std::size_t>(draft)];
  }
  backend::KvCache& cache() { return *cache_; }
  const backend::AttentionSpec& attention() const { return layers_.front().attention; }
  // Whether a row is a function of the next token, too.
  bool looks_ahead() const { return config_.kind != HeadKind::kPrefix; }
  const HeadConfig& config() const { return config_; }
  const HeadLimits& limits() const { return limits_; }

 private:
  void make_layers(const model::Decoder& target);
  void make_buffers();
  void norm_each_state();
  void run_layers(const backend::Batch& batch, bool store_only);
  void open_first(std::uint32_t rows);
  void attend_and_go_on(const backend::LayerSpec& layer);
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
  std::vector<backend::LayerSpec> layers_;    // borrows from weights_ and rope_
  std::unique_ptr<backend::KvCache> cache_;

  std::unique_ptr<backend::Buffer> picked_;         // [T, S] states
  std::unique_ptr<backend::Buffer> normed_states_;  // [T, S] where they are normed
  std::unique_ptr<backend::Buffer> state_;          // [T, Et] one of them, Et the target's E
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
  std::unique_ptr<backend::Buffer> logits_;         // [R, Vd]; a prefix has none

  std::uint32_t num_taken_ = 0;  // rows of features_
};

}  // namespace quire::speculate
