// Ops that hand everything on to others and keep how long each kind of op of a step took.
// Owner   the model; `inner` is its own.
// Thread  the engine's.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/backend/ops.h"

namespace quire::tools {

class TimedOps final : public backend::Ops {
 public:
  // What a decoder asks for in one step, in its order.
  enum Part : std::uint8_t { kEmbed, kQkv, kAttend, kOut, kGateUp, kDown, kLastNorm, kHead, kNumParts };
  static constexpr std::string_view kNames[kNumParts] = {"embedding",
                                                         "norm, q|k|v, rope, store",
                                                         "attention",
                                                         "output projection, add",
                                                         "norm, gate|up, activation",
                                                         "down projection, add",
                                                         "last norm, rows that speak",
                                                         "head, choice"};

  explicit TimedOps(std::unique_ptr<backend::Ops> inner) : inner_(std::move(inner)) {}

  // Seconds since the last clear().
  const std::array<double, kNumParts>& seconds() const { return seconds_; }
  void clear() { seconds_.fill(0); }

  std::string description() const override { return inner_->description(); }
  std::unique_ptr<backend::Weight> pack(std::span<const backend::HostMatrix> matrices,
                                        std::span<const std::span<const float>> biases,
                                        backend::Quantize quantize) override {
    return inner_->pack(matrices, biases, quantize);
  }
  std::string layout() const override { return inner_->layout(); }
  std::unique_ptr<backend::Weight> adopt(const backend::WeightShape& shape, std::span<const std::byte> packed,
                                         std::shared_ptr<const void> owner) override {
    return inner_->adopt(shape, packed, std::move(owner));
  }
  void for_parts(std::uint32_t count, const std::function<void(std::uint32_t)>& part) override {
    inner_->for_parts(count, part);
  }
  std::unique_ptr<backend::Vector> upload(std::span<const float> values) override { return inner_->upload(values); }
  std::unique_ptr<backend::RopeTable> upload_rope(std::span<const float> cosines, std::span<const float> sines,
                                                  std::uint32_t half) override {
    return inner_->upload_rope(cosines, sines, half);
  }
  std::unique_ptr<backend::Buffer> make_buffer(std::uint32_t max_rows, std::uint32_t width) override {
    return inner_->make_buffer(max_rows, width);
  }
  std::unique_ptr<backend::KvCache> make_kv(const backend::KvShape& shape) override { return inner_->make_kv(shape); }

  void begin(const backend::Batch& batch) override { inner_->begin(batch); }
  void embed(const backend::Weight& table, backend::Buffer& out) override {
    timed(kEmbed, [&] { inner_->embed(table, out); });
  }
  void norm(const backend::Buffer& x, const backend::Vector& scale, float eps, std::uint32_t rows,
            backend::Buffer& out) override {
    timed(kLastNorm, [&] { inner_->norm(x, scale, eps, rows, out); });
  }
  void linear(const backend::Buffer& x, const backend::Weight& w, std::uint32_t rows, backend::Buffer& out) override {
    inner_->linear(x, w, rows, out);
  }
  void rope_store(const backend::AttentionSpec& spec, backend::Buffer& qkv, backend::KvCache& cache) override {
    inner_->rope_store(spec, qkv, cache);
  }
  void attend(const backend::AttentionSpec& spec, const backend::Buffer& qkv, const backend::KvCache& cache,
              backend::Buffer& out) override {
    timed(kAttend, [&] { inner_->attend(spec, qkv, cache, out); });
  }
  void act_mul(const backend::Buffer& gate_up, backend::Buffer& out) override { inner_->act_mul(gate_up, out); }
  void add(backend::Buffer& x, const backend::Buffer& y) override { inner_->add(x, y); }
  void gather_logits_rows(const backend::Buffer& x, backend::Buffer& out) override {
    timed(kLastNorm, [&] { inner_->gather_logits_rows(x, out); });
  }
  void choose(const backend::Buffer& logits, std::uint32_t vocab) override { inner_->choose(logits, vocab); }
  void collect(std::span<backend::Choice> choices) override { inner_->collect(choices); }
  void read_accumulated_scores(std::span<std::uint64_t> out) override { inner_->read_accumulated_scores(out); }

  void place(const backend::Buffer& x, std::uint32_t rows, std::uint32_t column, backend::Buffer& out) override {
    inner_->place(x, rows, column, out);
  }
  void cut(const backend::Buffer& x, std::uint32_t rows, std::uint32_t column, backend::Buffer& out) override {
    inner_->cut(x, rows, column, out);
  }
  void copy_rows(backend::KvCache& cache, std::span<const backend::RowCopy> copies) override {
    inner_->copy_rows(cache, copies);
  }
  void copy_blocks(backend::KvCache& cache, std::span<const backend::BlockCopy> copies) override {
    inner_->copy_blocks(cache, copies);
  }
  void poison_block(backend::KvCache& cache, BlockId block) override { inner_->poison_block(cache, block); }
  void read_block(const backend::KvCache& cache, BlockId block, std::span<std::byte> out) override {
    inner_->read_block(cache, block, out);
  }
  void write_block(backend::KvCache& cache, BlockId block, std::span<const std::byte> bytes) override {
    inner_->write_block(cache, block, bytes);
  }
  void copy_open_group(backend::KvCache& cache, std::uint32_t from, std::uint32_t to) override {
    inner_->copy_open_group(cache, from, to);
  }
  void read_tail(const backend::KvCache& cache, BlockId block, std::span<std::byte> out) override {
    inner_->read_tail(cache, block, out);
  }
  void write_tail(backend::KvCache& cache, BlockId block, std::span<const std::byte> bytes) override {
    inner_->write_tail(cache, block, bytes);
  }
  void read(const backend::Buffer& buffer, std::uint32_t first_row, std::uint32_t num_rows,
            std::span<float> out) override {
    inner_->read(buffer, first_row, num_rows, out);
  }
  void write(std::span<const float> rows, backend::Buffer& buffer) override { inner_->write(rows, buffer); }

  void norm_qkv_rope_store(const backend::LayerSpec& layer, const backend::Buffer& x, backend::Buffer& scratch,
                           backend::Buffer& qkv, backend::KvCache& cache) override {
    next_projection_ = kOut;
    timed(kQkv, [&] { inner_->norm_qkv_rope_store(layer, x, scratch, qkv, cache); });
  }
  void norm_gate_up(const backend::LayerSpec& layer, const backend::Buffer& x, backend::Buffer& scratch,
                    backend::Buffer& gate_up, backend::Buffer& out) override {
    next_projection_ = kDown;
    timed(kGateUp, [&] { inner_->norm_gate_up(layer, x, scratch, gate_up, out); });
  }
  void project_add(const backend::Buffer& y, const backend::Weight& w, backend::Buffer& scratch,
                   backend::Buffer& x) override {
    timed(next_projection_, [&] { inner_->project_add(y, w, scratch, x); });
  }
  void project_choose(const backend::Buffer& x, const backend::Weight& head, std::uint32_t vocab,
                      backend::Buffer& logits) override {
    timed(kHead, [&] { inner_->project_choose(x, head, vocab, logits); });
  }

 private:
  template <typename Op>
  void timed(Part part, const Op& op) {
    const auto start = std::chrono::steady_clock::now();
    op();
    seconds_[part] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  std::unique_ptr<backend::Ops> inner_;
  Part next_projection_ = kOut;
  std::array<double, kNumParts> seconds_{};
};

}  // namespace quire::tools
