// Ops of mixtures of experts, and of heads with weights of their own, which are experts that every row has: rows are
// gathered by expert, and an expert's weights are read once a step for all of its
// rows; threads share the experts' outputs in chunks of equal length.
// Equals  the equations of core/backend/step_ops.h.
// Owner   the ops that derive from it.
// Thread  engine; chunks run on the team.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/backend/ops.h"
#include "core/cpu/expert_chunks.h"
#include "core/cpu/linear.h"

namespace quire::cpu {

class ExpertOps : public backend::Ops {
 public:
  std::unique_ptr<backend::Routes> make_routes(std::uint32_t max_rows, std::uint32_t num_experts,
                                               std::uint32_t top_k) override;
  void route(backend::Buffer& logits, const backend::RouteRule& rule, const backend::RouteVectors& vectors,
             std::uint32_t rows, backend::Routes& routes) override;
  void gather_by_expert(const backend::Buffer& x, const backend::Routes& routes, std::uint32_t rows,
                        backend::Buffer& out) override;
  void route_to_all(std::uint32_t rows, backend::Routes& routes) override;
  void gather_heads(const backend::Buffer& x, std::uint32_t column, const backend::Routes& routes, std::uint32_t rows,
                    backend::Buffer& out) override;
  void place_heads(const backend::Buffer& x, const backend::Routes& routes, std::uint32_t rows, std::uint32_t column,
                   std::uint32_t stride, backend::Buffer& out) override;
  void linear_by_expert(const backend::Buffer& x, backend::ExpertWeights weights, const backend::Routes& routes,
                        std::uint32_t rows, backend::Buffer& out, const backend::ThenActivate* then) override;
  void combine_experts(const backend::Buffer& y, const backend::Routes& routes, const backend::SharedExpert& shared,
                       std::uint32_t rows, backend::Buffer& out) override;
  void read_routes(const backend::Routes& routes, std::uint32_t rows, std::span<std::uint32_t> experts,
                   std::span<float> weights) override;

 protected:
  virtual const KernelContext& context() = 0;

 private:
  // Runs body(chunk) for all planned chunks once the rows of x are coded, if the weights need it.
  template <typename Body>
  void run(const HostBuffer& x, backend::ExpertWeights weights, std::size_t part, const HostRoutes& routes,
           std::uint32_t num_places, HostBuffer& out, const Body& body);

  void multiply_activate(const HostBuffer& x, backend::ExpertWeights weights, const HostRoutes& routes,
                         std::uint32_t num_places, HostBuffer& products, const backend::ThenActivate& then);

  ExpertChunks chunks_;
  std::vector<float> scores_;  // [workers, X] of route()
};

}  // namespace quire::cpu
