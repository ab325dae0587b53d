// Ops over rows that are a kernel or two, bit for bit as on the CPU: activations, sums, products, limits, streams, the
// choice of experts and sums over them.
// Owner   the ops that derive from it.
// Thread  engine.
#pragma once

#include "core/backend/ops.h"
#include "gpu/runtime/device.h"

namespace quire::gpu {

class PlainOps : public backend::Ops {
 public:
  void activate(const backend::Buffer& x, backend::Activation kind, bool gated, std::uint32_t rows,
                backend::Buffer& out, const backend::Xielu& xielu) override;
  void add(backend::Buffer& x, const backend::Buffer& y, float scale, std::uint32_t rows) override;
  void multiply_by(backend::Buffer& x, const backend::Buffer& y, std::uint32_t column, std::uint32_t rows) override;
  void multiply_columns(backend::Buffer& x, const backend::Vector& factors, std::uint32_t rows) override;
  void rescale(backend::Buffer& x, float scale, float cap, std::uint32_t rows) override;
  void clip(backend::Buffer& x, float limit, std::uint32_t rows) override;
  void match_length(backend::Buffer& x, const backend::Buffer& y, float least, std::uint32_t rows) override;
  void cut_below(backend::Buffer& x, std::uint32_t width, float c, std::uint32_t rows) override;
  void mix(backend::Streams x, const backend::Buffer& coefs, std::uint32_t rows, backend::Streams out) override;
  void correct(backend::Streams x, backend::Buffer& y, const backend::Buffer& coefs, std::uint32_t rows) override;
  void route(backend::Buffer& logits, const backend::RouteRule& rule, const backend::RouteVectors& vectors,
             std::uint32_t rows, backend::Routes& routes) override;
  void gather_by_expert(const backend::Buffer& x, const backend::Routes& routes, std::uint32_t rows,
                        backend::Buffer& out) override;
  void combine_experts(const backend::Buffer& y, const backend::Routes& routes, const backend::SharedExpert& shared,
                       std::uint32_t rows, backend::Buffer& out) override;

 protected:
  // The device that starts kernels, or records them.
  virtual Device& launcher() = 0;
  // Rows that a kernel runs for `rows` rows; called before launcher().
  virtual std::uint32_t padded(std::uint32_t rows) = 0;

  static constexpr std::uint32_t pieces(std::uint32_t width, std::uint32_t size) { return (width + size - 1) / size; }
  // activate() of rows by expert, or with a clamp.
  void activate_by_expert(const backend::Buffer& x, const backend::ThenActivate& then, std::uint32_t num_places);
  template <typename Kernel>
  void start(const Entry<Kernel>& kernel, Index grid, const typename Kernel::Args& args) {
    launcher().start(kernel, grid, args);
  }

 private:
  // A thread block per row and `threads` of its columns.
  Index columns_of(const backend::Buffer& x, std::uint32_t rows, unsigned threads) {
    return {padded(rows), pieces(x.width(), threads)};
  }
  const KernelTable& kernels() { return launcher().kernels(); }
};

}  // namespace quire::gpu
