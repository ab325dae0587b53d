// Ops of the GPU that hand everything on, draw the weights on the device instead of reading them, and mark when each op
// of a step begins and ends there.
// Owner   whoever measures; `inner` is its own, and owns the device.
// Thread  the engine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/backend/ops.h"
#include "tools/gpu_measure/random_numbers.h"

namespace quire::gpu::measure {

class MeasuredOps final : public backend::Ops {
 public:
  enum Part : std::uint8_t { kBegin, kEmbed, kQkv, kAttend, kProject, kGateUp, kNorm, kHead, kOther, kNumParts };
  static constexpr std::string_view kNames[kNumParts] = {"begin",     "embed",        "norm, qkv, rope, store",
                                                         "attend",    "project, add", "norm, gate_up, act_mul",
                                                         "last norm", "head, choose", "other"};

  MeasuredOps(std::unique_ptr<backend::Ops> inner, Device& device)
      : inner_(std::move(inner)), device_(device), random_(device) {}

  // What the device did since watch(): each op with where it began and ended, seconds behind the first.
  struct Seen {
    Part part = kOther;
    double begin_s = 0;
    double end_s = 0;
  };
  void watch() {
    parts_.clear();
    watches_ = true;
  }
  std::vector<Seen> seen() {
    watches_ = false;
    std::vector<Seen> out;
    for (unsigned i = 0; i < parts_.size(); ++i) {
      out.push_back({parts_[i], device_.seconds_between(0, 2 * i), device_.seconds_between(0, 2 * i + 1)});
    }
    return out;
  }
  RandomNumbers& random() { return random_; }

  std::string description() const override { return inner_->description(); }
  std::uint32_t depth() const override { return inner_->depth(); }
  std::unique_ptr<backend::Weight> pack(std::span<const backend::HostMatrix> matrices,
                                        std::span<const std::span<const float>> biases,
                                        backend::Quantize quantize) override {
    backend::WeightShape shape;
    shape.k = matrices.front().k;
    shape.type = backend::weight_type(matrices.front().dtype, quantize);
    for (const backend::HostMatrix& matrix : matrices) shape.n += matrix.n;
    for (const auto& bias : biases) shape.has_bias = shape.has_bias || !bias.empty();
    return random_.weight(*inner_, shape);
  }
  std::string layout() const override { return inner_->layout(); }
  std::unique_ptr<backend::Weight> adopt(const backend::WeightShape& shape, std::span<const std::byte> packed,
                                         std::shared_ptr<const void> owner) override {
    return inner_->adopt(shape, packed, std::move(owner));
  }
  void for_parts(std::uint32_t count, const std::function<void(std::uint32_t)>& part) override {
    inner_->for_parts(count, part);
  }
  std::unique_ptr<backend::Vector> upload(std::span<const float> values) override {
    return inner_->upload(std::vector<float>(values.size(), 1.0f));
  }
  std::unique_ptr<backend::RopeTable> upload_rope(std::span<const float> cosines, std::span<const float> sines,
                                                  std::uint32_t half) override {
    return inner_->upload_rope(cosines, sines, half);
  }
  std::unique_ptr<backend::Buffer> make_buffer(std::uint32_t max_rows, std::uint32_t width) override {
    return inner_->make_buffer(max_rows, width);
  }
  std::unique_ptr<backend::KvCache> make_kv(const backend::KvShape& shape) override { return inner_->make_kv(shape); }

  void begin(const backend::Batch& batch) override {
    marked(kBegin, [&] { inner_->begin(batch); });
  }
  void embed(const backend::Weight& table, backend::Buffer& out) override {
    marked(kEmbed, [&] { inner_->embed(table, out); });
  }
  void norm(const backend::Buffer& x, const backend::Vector& scale, float eps, std::uint32_t rows,
            backend::Buffer& out) override {
    marked(kNorm, [&] { inner_->norm(x, scale, eps, rows, out); });
  }
  void linear(const backend::Buffer& x, const backend::Weight& w, std::uint32_t rows, backend::Buffer& out) override {
    marked(kProject, [&] { inner_->linear(x, w, rows, out); });
  }
  void rope_store(const backend::AttentionSpec& spec, backend::Buffer& qkv, backend::KvCache& cache) override {
    marked(kQkv, [&] { inner_->rope_store(spec, qkv, cache); });
  }
  void attend(const backend::AttentionSpec& spec, const backend::Buffer& qkv, const backend::KvCache& cache,
              backend::Buffer& out) override {
    marked(kAttend, [&] { inner_->attend(spec, qkv, cache, out); });
  }
  void act_mul(const backend::Buffer& gate_up, backend::Buffer& out) override {
    marked(kGateUp, [&] { inner_->act_mul(gate_up, out); });
  }
  void add(backend::Buffer& x, const backend::Buffer& y) override {
    marked(kProject, [&] { inner_->add(x, y); });
  }
  void gather_logits_rows(const backend::Buffer& x, backend::Buffer& out) override {
    marked(kNorm, [&] { inner_->gather_logits_rows(x, out); });
  }
  void choose(const backend::Buffer& logits, std::uint32_t vocab) override {
    marked(kHead, [&] { inner_->choose(logits, vocab); });
  }
  void collect(std::span<backend::Choice> choices) override { inner_->collect(choices); }
  void read_accumulated_scores(std::span<std::uint64_t> out) override { inner_->read_accumulated_scores(out); }

  void place(const backend::Buffer& x, std::uint32_t rows, std::uint32_t column, backend::Buffer& out) override {
    marked(kOther, [&] { inner_->place(x, rows, column, out); });
  }
  void cut(const backend::Buffer& x, std::uint32_t rows, std::uint32_t column, backend::Buffer& out) override {
    marked(kOther, [&] { inner_->cut(x, rows, column, out); });
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
    marked(kQkv, [&] { inner_->norm_qkv_rope_store(layer, x, scratch, qkv, cache); });
  }
  void norm_gate_up(const backend::LayerSpec& layer, const backend::Buffer& x, backend::Buffer& scratch,
                    backend::Buffer& gate_up, backend::Buffer& out) override {
    marked(kGateUp, [&] { inner_->norm_gate_up(layer, x, scratch, gate_up, out); });
  }
  void project_add(const backend::Buffer& y, const backend::Weight& w, backend::Buffer& scratch,
                   backend::Buffer& x) override {
    marked(kProject, [&] { inner_->project_add(y, w, scratch, x); });
  }
  void project_choose(const backend::Buffer& x, const backend::Weight& head, std::uint32_t vocab,
                      backend::Buffer& logits) override {
    marked(kHead, [&] { inner_->project_choose(x, head, vocab, logits); });
  }

 private:
  template <typename Op>
  void marked(Part part, const Op& op) {
    const bool marks = watches_ && 2 * parts_.size() + 1 < Device::kMarks;
    const auto number = static_cast<unsigned>(2 * parts_.size());
    if (marks) {
      parts_.push_back(part);
      device_.mark(number);
    }
    op();
    if (marks) device_.mark(number + 1);
  }

  std::unique_ptr<backend::Ops> inner_;
  Device& device_;
  RandomNumbers random_;
  bool watches_ = false;
  std::vector<Part> parts_;
};

}  // namespace quire::gpu::measure
