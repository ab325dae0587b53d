// A layer's mixture of experts as it runs: the router's product, the route, and the experts' two products for the rows
// that each has.
//   h = rows by expert of x;  y = down(act(gate_up(h)));  out = sum of y by row + shared expert
//   with norms of its own, out = norm(sum of y by row) + norm(shared expert)
// Shape   x, out, shared [T, E]; rows by expert [T·k, E], [T·k, 2F] and [T·k, F].
// Owner   a mixture borrows weights; the workspace of a step owns the buffers; run_mixture() queues ops.
// Thread  made at start; run_mixture() engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/spec.h"
#include "core/model/weights.h"

namespace quire::model {

struct Mixture {
  backend::RouteRule rule;
  backend::WeightList router;       // [X, E]
  backend::RouteVectors vectors{};  // [X]
  backend::Norm router_norm;        // [E] of the layer's rows; none: the router takes those of the layer's norm
  backend::Norm norm;               // [E] of the layer's rows, likewise for the experts
  backend::Norm out_norm;           // [E] of their sum
  backend::Norm shared_norm;        // [E] of the shared expert
  std::vector<backend::WeightList> gate_up;  // [X] of [2F, E]; [F, E] if they are not gated
  std::vector<backend::WeightList> down;     // [X] of [E, F]
  backend::WeightList shared_gate;           // [1, E]; empty: the shared expert has no gate
  backend::Activation activation = backend::Activation::kSilu;
  std::optional<backend::Clamp> clamp{};
  bool gated = true;
};

// Sets how the checkpoint stores experts, by the first mixture: one layout for all. Of square matrices the shape says
// nothing, and the family's layout holds.
void fit_experts(const Checkpoint& checkpoint, ModelSpec& spec);

Mixture make_mixture(const Weights& weights, const LayerSpec& spec, std::uint32_t layer);

// The rows that a mixture takes: those of the layer, the same by the layer's norm, and a buffer for another norm, which
// may be that of the second ones.
struct MixtureInput {
  const backend::Buffer* rows;
  const backend::Buffer* normed;
  backend::Buffer* scratch;
};

// For mixtures of one shape.
class MixtureBuffers {
 public:
  MixtureBuffers() = default;
  MixtureBuffers(backend::Factory& factory, const ModelSpec& spec, const MixtureSpec& mixture, std::uint32_t max_rows);

  backend::Buffer& shared() const { return *shared_; }  // of the shared expert, if there is one

 private:
  friend void run_mixture(backend::Ops& ops, const Mixture& mixture, const MixtureInput& in, bool has_shared,
                          std::uint32_t rows, const MixtureBuffers& buffers, backend::Buffer& out);

  std::unique_ptr<backend::Routes> routes_;
  std::unique_ptr<backend::Buffer> logits_;     // [T, X]
  std::unique_ptr<backend::Buffer> by_expert_;  // [T·k, E]
  std::unique_ptr<backend::Buffer> gate_up_;    // [T·k, 2F]; not gated [T·k, F]
  std::unique_ptr<backend::Buffer> activated_;  // [T·k, F]
  std::unique_ptr<backend::Buffer> shared_;     // [T, E]
  std::unique_ptr<backend::Buffer> gate_;       // [T, 1]
};

// has_shared: buffers.shared() has the rows of the shared expert.
void run_mixture(backend::Ops& ops, const Mixture& mixture, const MixtureInput& in, bool has_shared, std::uint32_t rows,
                 const MixtureBuffers& buffers, backend::Buffer& out);

}  // namespace quire::model
