// Ops that forward every call to other ops; a subclass hears of each op of a step before and after it.
// Owner   owns `inner`.
// Thread  as the inner ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "core/backend/ops.h"

namespace quire::tools {

class ForwardingOps : public backend::Ops {
 public:
  enum class Op : std::uint8_t {
    kBegin,
    kEmbed,
    kQkv,  // linear() with ThenRopeStore
    kAttend,
    kAdd,     // linear() with ThenAdd
    kGateUp,  // linear() with ThenActivate
    kChoose,  // linear() with ThenChoose
    kRows,    // norm, gather_logits_rows
    kOther,
  };

  explicit ForwardingOps(std::unique_ptr<backend::Ops> inner) : inner_(std::move(inner)) {}

  std::string description() const override { return inner_->description(); }
  std::unique_ptr<backend::Weight> pack(std::span<const backend::HostMatrix> matrices,
                                        std::span<const std::span<const float>> biases,
                                        std::optional<backend::Format> quantize) override {
    return inner_->pack(matrices, biases, quantize);
  }
  bool takes(backend::Format format) const override { return inner_->takes(format); }
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
  std::unique_ptr<backend::Routes> make_routes(std::uint32_t max_rows, std::uint32_t num_experts,
                                               std::uint32_t top_k) override {
    return inner_->make_routes(max_rows, num_experts, top_k);
  }

  std::uint32_t depth() const override { return inner_->depth(); }
  void begin(const backend::Batch& batch) override {
    around(Op::kBegin, [&] { inner_->begin(batch); });
  }
  void embed(const backend::Weight& table, float scale, backend::Buffer& out, std::uint32_t num_tokens) override {
    around(Op::kEmbed, [&] { inner_->embed(table, scale, out, num_tokens); });
  }
  void embed_positions(const backend::Weight& table, std::uint32_t offset, backend::Buffer& out) override {
    around(Op::kEmbed, [&] { inner_->embed_positions(table, offset, out); });
  }
  void norm(const backend::Buffer& x, const backend::Norm& norm, std::uint32_t rows, backend::Buffer& out) override {
    around(Op::kRows, [&] { inner_->norm(x, norm, rows, out); });
  }
  void multiply(const backend::Buffer& x, const backend::Weight& w, std::uint32_t rows, std::uint32_t column,
                backend::Buffer& out) override {
    around(Op::kOther, [&] { inner_->multiply(x, w, rows, column, out); });
  }
  void linear(const backend::Buffer& x, const backend::WeightList& weights, std::uint32_t rows, backend::Buffer& out,
              const backend::Before& before, const backend::After& after) override {
    constexpr Op kOps[] = {Op::kOther, Op::kQkv, Op::kGateUp, Op::kAdd, Op::kChoose};
    static_assert(std::variant_size_v<backend::After> == std::size(kOps));
    around(kOps[after.index()], [&] { inner_->linear(x, weights, rows, out, before, after); });
  }
  void rope_store(const backend::AttentionSpec& spec, backend::Buffer& qkv, backend::KvCache& cache) override {
    around(Op::kQkv, [&] { inner_->rope_store(spec, qkv, cache); });
  }
  void attend(const backend::AttentionSpec& spec, const backend::Buffer& qkv, const backend::KvCache& cache,
              backend::Buffer& out) override {
    around(Op::kAttend, [&] { inner_->attend(spec, qkv, cache, out); });
  }
  void norm_columns(backend::Buffer& x, std::uint32_t column, std::uint32_t width, std::uint32_t group,
                    const backend::Norm& norm, std::uint32_t rows) override {
    around(Op::kOther, [&] { inner_->norm_columns(x, column, width, group, norm, rows); });
  }
  void activate(const backend::Buffer& x, backend::Activation kind, bool gated, std::uint32_t rows,
                backend::Buffer& out, const backend::Xielu& xielu) override {
    around(Op::kGateUp, [&] { inner_->activate(x, kind, gated, rows, out, xielu); });
  }
  void add(backend::Buffer& x, const backend::Buffer& y, float scale, std::uint32_t rows) override {
    around(Op::kAdd, [&] { inner_->add(x, y, scale, rows); });
  }
  void multiply_by(backend::Buffer& x, const backend::Buffer& y, std::uint32_t column, std::uint32_t rows) override {
    around(Op::kOther, [&] { inner_->multiply_by(x, y, column, rows); });
  }
  void rescale(backend::Buffer& x, float scale, float cap, std::uint32_t rows) override {
    around(Op::kOther, [&] { inner_->rescale(x, scale, cap, rows); });
  }
  void multiply_columns(backend::Buffer& x, const backend::Vector& factors, std::uint32_t rows) override {
    around(Op::kOther, [&] { inner_->multiply_columns(x, factors, rows); });
  }
  void match_length(backend::Buffer& x, const backend::Buffer& y, float least, std::uint32_t rows) override {
    around(Op::kOther, [&] { inner_->match_length(x, y, least, rows); });
  }
  void cut_below(backend::Buffer& x, std::uint32_t width, float c, std::uint32_t rows) override {
    around(Op::kOther, [&] { inner_->cut_below(x, width, c, rows); });
  }
  void mix(backend::Streams x, const backend::Buffer& coefs, std::uint32_t rows, backend::Streams out) override {
    around(Op::kOther, [&] { inner_->mix(x, coefs, rows, out); });
  }
  void correct(backend::Streams x, backend::Buffer& y, const backend::Buffer& coefs, std::uint32_t rows) override {
    around(Op::kOther, [&] { inner_->correct(x, y, coefs, rows); });
  }
  void clip(backend::Buffer& x, float limit, std::uint32_t rows) override {
    around(Op::kOther, [&] { inner_->clip(x, limit, rows); });
  }
  void place(const backend::Buffer& x, std::uint32_t rows, std::uint32_t column, backend::Buffer& out) override {
    around(Op::kOther, [&] { inner_->place(x, rows, column, out); });
  }
  void cut(const backend::Buffer& x, std::uint32_t rows, std::uint32_t column, backend::Buffer& out) override {
    around(Op::kOther, [&] { inner_->cut(x, rows, column, out); });
  }
  void route(backend::Buffer& logits, const backend::RouteRule& rule, const backend::RouteVectors& vectors,
             std::uint32_t rows, backend::Routes& routes) override {
    around(Op::kOther, [&] { inner_->route(logits, rule, vectors, rows, routes); });
  }
  void gather_by_expert(const backend::Buffer& x, const backend::Routes& routes, std::uint32_t rows,
                        backend::Buffer& out) override {
    around(Op::kOther, [&] { inner_->gather_by_expert(x, routes, rows, out); });
  }
  void route_to_all(std::uint32_t rows, backend::Routes& routes) override { inner_->route_to_all(rows, routes); }
  void gather_heads(const backend::Buffer& x, std::uint32_t column, const backend::Routes& routes, std::uint32_t rows,
                    backend::Buffer& out) override {
    around(Op::kOther, [&] { inner_->gather_heads(x, column, routes, rows, out); });
  }
  void place_heads(const backend::Buffer& x, const backend::Routes& routes, std::uint32_t rows, std::uint32_t column,
                   std::uint32_t stride, backend::Buffer& out) override {
    around(Op::kOther, [&] { inner_->place_heads(x, routes, rows, column, stride, out); });
  }
  void linear_by_expert(const backend::Buffer& x, backend::ExpertWeights weights, const backend::Routes& routes,
                        std::uint32_t rows, backend::Buffer& out, const backend::ThenActivate* then) override {
    around(then != nullptr ? Op::kGateUp : Op::kAdd,
           [&] { inner_->linear_by_expert(x, weights, routes, rows, out, then); });
  }
  void combine_experts(const backend::Buffer& y, const backend::Routes& routes, const backend::SharedExpert& shared,
                       std::uint32_t rows, backend::Buffer& out) override {
    around(Op::kOther, [&] { inner_->combine_experts(y, routes, shared, rows, out); });
  }
  void gather_logits_rows(const backend::Buffer& x, backend::Buffer& out) override {
    around(Op::kRows, [&] { inner_->gather_logits_rows(x, out); });
  }
  void choose(const backend::Buffer& logits, std::uint32_t vocab) override {
    around(Op::kChoose, [&] { inner_->choose(logits, vocab); });
  }
  void collect(std::span<backend::Choice> choices) override { inner_->collect(choices); }
  void read_accumulated_scores(std::span<std::uint64_t> out) override { inner_->read_accumulated_scores(out); }
  void read(const backend::Buffer& buffer, std::uint32_t first_row, std::uint32_t num_rows,
            std::span<float> out) override {
    inner_->read(buffer, first_row, num_rows, out);
  }
  void read_routes(const backend::Routes& routes, std::uint32_t rows, std::span<std::uint32_t> experts,
                   std::span<float> weights) override {
    inner_->read_routes(routes, rows, experts, weights);
  }
  void write(std::span<const float> rows, backend::Buffer& buffer) override { inner_->write(rows, buffer); }

  void copy_blocks(backend::KvCache& cache, std::span<const backend::BlockCopy> copies) override {
    inner_->copy_blocks(cache, copies);
  }
  void copy_rows(backend::KvCache& cache, std::span<const backend::RowCopy> copies) override {
    inner_->copy_rows(cache, copies);
  }
  void poison_block(backend::KvCache& cache, BlockId block) override { inner_->poison_block(cache, block); }
  void read_block(const backend::KvCache& cache, BlockId block, std::span<std::byte> out) override {
    inner_->read_block(cache, block, out);
  }
  void write_block(backend::KvCache& cache, BlockId block, std::span<const std::byte> bytes) override {
    inner_->write_block(cache, block, bytes);
  }
  void copy_residual_group(backend::KvCache& cache, std::uint32_t from, std::uint32_t to) override {
    inner_->copy_residual_group(cache, from, to);
  }

 protected:
  backend::Ops& inner() { return *inner_; }
  virtual void op_begins(Op op) = 0;
  virtual void op_ends(Op op) = 0;

 private:
  template <typename Call>
  void around(Op op, const Call& call) {
    op_begins(op);
    call();
    op_ends(op);
  }

  std::unique_ptr<backend::Ops> inner_;
};

}  // namespace quire::tools
