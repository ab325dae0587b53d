// Ops over whole rows, which every rank does for itself: they are not worth a collective.
// Owner   the ops that derive from it.
// Thread  engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/backend/device_cast.h"
#include "core/backend/ops.h"
#include "gpu/parallel/sharded_tensors.h"

namespace quire::gpu {

class WholeRowOps : public backend::Ops {
 public:
  void activate(const backend::Buffer& x, backend::Activation kind, bool gated, std::uint32_t rows,
                backend::Buffer& out, const backend::Xielu& xielu) override {
    const auto& in = whole(x);
    auto& to = made_whole(out);
    on_each([&](std::uint32_t r) { ranks_[r]->activate(in.whole(r), kind, gated, rows, to.whole(r), xielu); });
  }
  void add(backend::Buffer& x, const backend::Buffer& y, float scale, std::uint32_t rows) override {
    const auto& to = whole(x);
    const auto& from = whole(y);
    on_each([&](std::uint32_t r) { ranks_[r]->add(to.whole(r), from.whole(r), scale, rows); });
  }
  void multiply_by(backend::Buffer& x, const backend::Buffer& y, std::uint32_t column, std::uint32_t rows) override {
    const auto& to = whole(x);
    const auto& from = whole(y);
    on_each([&](std::uint32_t r) { ranks_[r]->multiply_by(to.whole(r), from.whole(r), column, rows); });
  }
  void multiply_columns(backend::Buffer& x, const backend::Vector& factors, std::uint32_t rows) override {
    const auto& to = whole(x);
    const auto& by = backend::device_cast<const ShardedVector>(factors);
    on_each([&](std::uint32_t r) { ranks_[r]->multiply_columns(to.whole(r), by.of(r), rows); });
  }
  void rescale(backend::Buffer& x, float scale, float cap, std::uint32_t rows) override {
    const auto& to = whole(x);
    on_each([&](std::uint32_t r) { ranks_[r]->rescale(to.whole(r), scale, cap, rows); });
  }
  void clip(backend::Buffer& x, float limit, std::uint32_t rows) override {
    const auto& to = whole(x);
    on_each([&](std::uint32_t r) { ranks_[r]->clip(to.whole(r), limit, rows); });
  }
  void match_length(backend::Buffer& x, const backend::Buffer& y, float least, std::uint32_t rows) override {
    const auto& to = whole(x);
    const auto& like = whole(y);
    on_each([&](std::uint32_t r) { ranks_[r]->match_length(to.whole(r), like.whole(r), least, rows); });
  }
  void cut_below(backend::Buffer& x, std::uint32_t width, float c, std::uint32_t rows) override {
    const auto& to = whole(x);
    on_each([&](std::uint32_t r) { ranks_[r]->cut_below(to.whole(r), width, c, rows); });
  }
  std::unique_ptr<backend::Routes> make_routes(std::uint32_t max_rows, std::uint32_t num_experts,
                                               std::uint32_t top_k) override {
    OfRanks<backend::Routes> made;
    on_each([&](std::uint32_t r) { made.push_back(ranks_[r]->make_routes(max_rows, num_experts, top_k)); });
    return std::make_unique<ShardedRoutes>(std::move(made));
  }
  void read_routes(const backend::Routes& routes, std::uint32_t rows, std::span<std::uint32_t> experts,
                   std::span<float> weights) override {
    ranks_.front()->read_routes(routes_of(routes, 0), rows, experts, weights);
  }
  void route(backend::Buffer& logits, const backend::RouteRule& rule, const backend::RouteVectors& vectors,
             std::uint32_t rows, backend::Routes& routes) override {
    const auto& in = whole(logits);
    const auto of_rank = [](const backend::Vector* vector, std::uint32_t r) {
      return vector == nullptr ? nullptr : &backend::device_cast<const ShardedVector>(*vector).of(r);
    };
    on_each([&](std::uint32_t r) {
      ranks_[r]->route(in.whole(r), rule, {of_rank(vectors.bias, r), of_rank(vectors.scales, r)}, rows,
                       routes_of(routes, r));
    });
  }
  void gather_by_expert(const backend::Buffer& x, const backend::Routes& routes, std::uint32_t rows,
                        backend::Buffer& out) override {
    const auto& in = whole(x);
    auto& to = made_whole(out);
    on_each(
        [&](std::uint32_t r) { ranks_[r]->gather_by_expert(in.whole(r), routes_of(routes, r), rows, to.whole(r)); });
  }
  void combine_experts(const backend::Buffer& y, const backend::Routes& routes, const backend::SharedExpert& shared,
                       std::uint32_t rows, backend::Buffer& out) override {
    const auto& in = whole(y);
    for (const backend::Buffer* buffer : {shared.rows, shared.gate}) {
      if (buffer != nullptr) whole(*buffer);
    }
    auto& to = made_whole(out);
    const auto of_rank = [this](const backend::Buffer* buffer, std::uint32_t r) {
      return buffer == nullptr ? nullptr : &whole(*buffer).whole(r);
    };
    on_each([&](std::uint32_t r) {
      const backend::SharedExpert own{of_rank(shared.rows, r), of_rank(shared.gate, r)};
      ranks_[r]->combine_experts(in.whole(r), routes_of(routes, r), own, rows, to.whole(r));
    });
  }
  void mix(backend::Streams x, const backend::Buffer& coefs, std::uint32_t rows, backend::Streams out) override {
    const auto& by = whole(coefs);
    for (const backend::Buffer* stream : x) whole(*stream);
    for (backend::Buffer* stream : out) made_whole(*stream);
    on_each([&](std::uint32_t r) { ranks_[r]->mix(of_rank(x, r), by.whole(r), rows, of_rank(out, r)); });
  }
  void correct(backend::Streams x, backend::Buffer& y, const backend::Buffer& coefs, std::uint32_t rows) override {
    const auto& to = whole(y);
    const auto& by = whole(coefs);
    for (const backend::Buffer* stream : x) whole(*stream);
    on_each([&](std::uint32_t r) { ranks_[r]->correct(of_rank(x, r), to.whole(r), by.whole(r), rows); });
  }
  void place(const backend::Buffer& x, std::uint32_t rows, std::uint32_t column, backend::Buffer& out) override {
    const auto& from = whole(x);
    const auto& to = whole(out);
    on_each([&](std::uint32_t r) { ranks_[r]->place(from.whole(r), rows, column, to.whole(r)); });
  }
  void cut(const backend::Buffer& x, std::uint32_t rows, std::uint32_t column, backend::Buffer& out) override {
    const auto& from = whole(x);
    auto& to = made_whole(out);
    on_each([&](std::uint32_t r) { ranks_[r]->cut(from.whole(r), rows, column, to.whole(r)); });
  }

 protected:
  static backend::Routes& routes_of(const backend::Routes& routes, std::uint32_t rank) {
    return backend::device_cast<const ShardedRoutes>(routes).of(rank);
  }
  // The buffer with whole rows on every rank.
  virtual ShardedBuffer& whole(const backend::Buffer& buffer) = 0;
  // For a buffer that is overwritten as a whole.
  static ShardedBuffer& made_whole(backend::Buffer& buffer) {
    auto& all = backend::device_cast<ShardedBuffer>(buffer);
    all.is_now_whole();
    return all;
  }
  void on_each(const auto& body) const {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) body(r);
  }

  std::vector<std::unique_ptr<backend::Ops>> ranks_;  // they own the devices

 private:
  struct OfRank {
    std::array<backend::Buffer*, backend::kMaxStreams> buffers{};
    std::size_t count = 0;
    operator backend::Streams() const { return {buffers.data(), count}; }  // NOLINT(google-explicit-constructor)
  };
  static OfRank of_rank(backend::Streams all, std::uint32_t r) {
    OfRank out;
    for (backend::Buffer* stream : all)
      out.buffers[out.count++] = &backend::device_cast<ShardedBuffer>(*stream).whole(r);
    return out;
  }
};

}  // namespace quire::gpu
