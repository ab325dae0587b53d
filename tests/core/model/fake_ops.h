// Test support: a backend that computes nothing and writes down what it was asked.
// Owner   the test. Thread  one.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/backend/ops.h"
#include "core/backend/weights/quantize.h"

namespace quire::model::testing {

// A byte an element.
class FakeWeight final : public backend::Weight {
 public:
  FakeWeight(std::uint32_t n, std::uint32_t k, backend::Format type)
      : n_(n), k_(k), type_(type), bytes_(std::size_t{n} * k) {}
  std::uint32_t n() const override { return n_; }
  std::uint32_t k() const override { return k_; }
  backend::Format format() const override { return type_; }
  std::span<const std::byte> packed() const override { return bytes_; }
  void free_host_copy() override { is_forgotten = true; }
  bool is_forgotten = false;

 private:
  std::uint32_t n_, k_;
  backend::Format type_;
  std::vector<std::byte> bytes_;
};

class FakeVector final : public backend::Vector {
 public:
  explicit FakeVector(std::span<const float> given) : values(given.begin(), given.end()) {}
  std::uint32_t size() const override { return static_cast<std::uint32_t>(values.size()); }
  std::vector<float> values;
};

class FakeRope final : public backend::RopeTable {
 public:
  explicit FakeRope(std::uint32_t positions) : positions_(positions) {}
  std::uint32_t positions() const override { return positions_; }

 private:
  std::uint32_t positions_;
};

class FakeBuffer final : public backend::Buffer {
 public:
  FakeBuffer(std::uint32_t max_rows, std::uint32_t width) : max_rows_(max_rows), width_(width) {}
  std::uint32_t max_rows() const override { return max_rows_; }
  std::uint32_t width() const override { return width_; }

 private:
  std::uint32_t max_rows_, width_;
};

class FakeKv final : public backend::KvCache {
 public:
  explicit FakeKv(const backend::KvShape& shape) : shape_(shape) {}
  const backend::KvShape& shape() const override { return shape_; }
  std::size_t bytes() const override { return 0; }
  std::size_t block_bytes() const override { return 8; }

 private:
  backend::KvShape shape_;
};

struct PackCall {
  std::vector<backend::HostMatrix> matrices;
  std::vector<std::vector<float>> biases;
  std::vector<float> row_starts;  // the first value of every row of all matrices
  std::optional<backend::Format> quantize;
};

class FakeOps final : public backend::Ops {
 public:
  std::vector<std::string> calls;        // of the ops, in order
  std::vector<std::string> block_calls;  // what was done to whole blocks, in order
  std::size_t block_calls_before_begin = 0;
  std::vector<PackCall> packs;
  std::uint32_t num_steps = 1;                                             // depth()
  backend::Batch batch;                                                    // of the last begin()
  std::deque<backend::Batch> begun;                                        // and not collected
  TokenId next_token = 100;                                                // choices count up from here
  const sample::Candidate list[3] = {{3, -0.5f}, {1, -1.0f}, {2, -2.0f}};  // what every choice's top is cut from
  std::uint32_t chosen_vocab = 0;

  std::string description() const override { return "fake/none 1 thread"; }
  std::unique_ptr<backend::Weight> pack(std::span<const backend::HostMatrix> matrices,
                                        std::span<const std::span<const float>> biases,
                                        std::optional<backend::Format> quantize) override {
    PackCall& call = packs.emplace_back();
    call.quantize = quantize;
    call.matrices.assign(matrices.begin(), matrices.end());
    for (const auto& bias : biases) call.biases.emplace_back(bias.begin(), bias.end());
    std::uint32_t n = 0;
    for (const backend::HostMatrix& matrix : matrices) {
      const auto* const bytes = static_cast<const std::byte*>(matrix.data);
      const std::size_t row_bytes = std::size_t{matrix.k} * bytes_of(matrix.format);
      for (std::uint32_t row = 0; row < matrix.n; ++row) {
        backend::widen(bytes + row * row_bytes, matrix.format, {&call.row_starts.emplace_back(), 1});
      }
      n += matrix.n;
    }
    return std::make_unique<FakeWeight>(n, matrices[0].k, quantize.value_or(matrices[0].format));
  }
  std::string layout() const override { return "fake/1"; }
  std::unique_ptr<backend::Weight> adopt(const backend::WeightShape&, std::span<const std::byte>,
                                         std::shared_ptr<const void>) override {
    return nullptr;
  }
  void for_parts(std::uint32_t count, const std::function<void(std::uint32_t)>& part) override {
    for (std::uint32_t i = 0; i < count; ++i) part(i);
  }
  std::unique_ptr<backend::Vector> upload(std::span<const float> values) override {
    return std::make_unique<FakeVector>(values);
  }
  std::unique_ptr<backend::RopeTable> upload_rope(std::span<const float> cosines, std::span<const float>,
                                                  std::uint32_t half) override {
    return std::make_unique<FakeRope>(static_cast<std::uint32_t>(cosines.size() / half));
  }
  std::unique_ptr<backend::Buffer> make_buffer(std::uint32_t max_rows, std::uint32_t width) override {
    return std::make_unique<FakeBuffer>(max_rows, width);
  }
  std::unique_ptr<backend::KvCache> make_kv(const backend::KvShape& shape) override {
    return std::make_unique<FakeKv>(shape);
  }

  std::uint32_t depth() const override { return num_steps; }
  void begin(const backend::Batch& given) override {
    batch = given;
    begun.push_back(given);
    calls = {"begin"};
    block_calls_before_begin = block_calls.size();
  }
  void embed_positions(const backend::Weight&, std::uint32_t, backend::Buffer&) override {
    calls.push_back("embed_positions");
  }
  void embed(const backend::Weight&, float, backend::Buffer&, std::uint32_t) override { calls.push_back("embed"); }
  void norm(const backend::Buffer&, const backend::Norm&, std::uint32_t, backend::Buffer&) override {
    calls.push_back("norm");
  }
  void multiply(const backend::Buffer&, const backend::Weight&, std::uint32_t, std::uint32_t,
                backend::Buffer&) override {
    calls.push_back("multiply");
  }
  void rope_store(const backend::AttentionSpec&, backend::Buffer&, backend::KvCache&) override {
    calls.push_back("rope_store");
  }
  void attend(const backend::AttentionSpec&, const backend::Buffer&, const backend::KvCache&,
              backend::Buffer&) override {
    calls.push_back("attend");
  }
  void norm_columns(backend::Buffer&, std::uint32_t, std::uint32_t, std::uint32_t, const backend::Norm&,
                    std::uint32_t) override {
    calls.push_back("norm_columns");
  }
  void activate(const backend::Buffer&, backend::Activation, bool, std::uint32_t, backend::Buffer&,
                const backend::Xielu&) override {
    calls.push_back("activate");
  }
  void add(backend::Buffer&, const backend::Buffer&, float, std::uint32_t) override { calls.push_back("add"); }
  void multiply_by(backend::Buffer&, const backend::Buffer&, std::uint32_t, std::uint32_t) override {
    calls.push_back("multiply_by");
  }
  void rescale(backend::Buffer&, float, float, std::uint32_t) override { calls.push_back("rescale"); }
  void multiply_columns(backend::Buffer&, const backend::Vector&, std::uint32_t) override {
    calls.push_back("multiply_columns");
  }
  void match_length(backend::Buffer&, const backend::Buffer&, float, std::uint32_t) override {
    calls.push_back("match_length");
  }
  void cut_below(backend::Buffer&, std::uint32_t, float, std::uint32_t) override { calls.push_back("cut_below"); }
  void mix(backend::Streams, const backend::Buffer&, std::uint32_t, backend::Streams) override {
    calls.push_back("mix");
  }
  void correct(backend::Streams, backend::Buffer&, const backend::Buffer&, std::uint32_t) override {
    calls.push_back("correct");
  }
  void clip(backend::Buffer&, float, std::uint32_t) override { calls.push_back("clip"); }
  void place(const backend::Buffer&, std::uint32_t rows, std::uint32_t column, backend::Buffer&) override {
    calls.push_back("place " + std::to_string(rows) + " " + std::to_string(column));
  }
  void cut(const backend::Buffer&, std::uint32_t rows, std::uint32_t column, backend::Buffer&) override {
    calls.push_back("cut " + std::to_string(rows) + " " + std::to_string(column));
  }
  void gather_logits_rows(const backend::Buffer&, backend::Buffer&) override { calls.push_back("gather"); }
  void choose(const backend::Buffer&, std::uint32_t vocab) override {
    calls.push_back("choose");
    chosen_vocab = vocab;
  }
  void collect(std::span<backend::Choice> choices) override {
    calls.push_back("collect");
    const backend::Batch oldest = begun.front();
    begun.pop_front();
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const sample::Params& params = oldest.logits_rows[i].params;
      choices[i] = {next_token++, choices[i].finite, params.logprob ? -0.25f : 0.0f,
                    std::span(list).first(params.num_top)};
    }
  }
  void read_accumulated_scores(std::span<std::uint64_t> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = i;
  }
  void copy_blocks(backend::KvCache&, std::span<const backend::BlockCopy> copies) override {
    for (const backend::BlockCopy& copy : copies) {
      block_calls.push_back("copy " + std::to_string(copy.from.value) + " " + std::to_string(copy.to.value));
    }
  }
  void copy_rows(backend::KvCache&, std::span<const backend::RowCopy> copies) override {
    for (const backend::RowCopy& copy : copies) {
      block_calls.push_back("row " + std::to_string(copy.from) + " " + std::to_string(copy.to));
    }
  }
  void poison_block(backend::KvCache&, BlockId block) override {
    block_calls.push_back("poison " + std::to_string(block.value));
  }
  void read_block(const backend::KvCache&, BlockId block, std::span<std::byte>) override {
    block_calls.push_back("read " + std::to_string(block.value));
  }
  void write_block(backend::KvCache&, BlockId block, std::span<const std::byte>) override {
    block_calls.push_back("write " + std::to_string(block.value));
  }
  void copy_residual_group(backend::KvCache&, std::uint32_t from, std::uint32_t to) override {
    block_calls.push_back("open " + std::to_string(from) + " " + std::to_string(to));
  }
  // Element i of row t is 100 t + i.
  void read(const backend::Buffer& buffer, std::uint32_t first_row, std::uint32_t, std::span<float> out) override {
    calls.push_back("read");
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(100 * (first_row + i / buffer.width()) + i % buffer.width());
    }
  }
  void write(std::span<const float>, backend::Buffer&) override { calls.push_back("write"); }
};

}  // namespace quire::model::testing
