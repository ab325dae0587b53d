// The composition of plain ops that defines the result of a linear layer with its neighbours.
#include "core/backend/linear.h"

#include "core/backend/step_ops.h"

namespace quire::backend {

void StepOps::linear(const Buffer& x, const WeightList& weights, std::uint32_t rows, Buffer& out, const Before& before,
                     const After& after) {
  if (before.norm) norm(x, before.norm, rows, *before.normed);
  const Buffer& input = before.norm ? *before.normed : x;
  std::uint32_t column = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    multiply(input, weights[i], rows, column, out);
    column += weights[i].n();
  }
  finish(out, rows, after);
}

void StepOps::finish(Buffer& out, std::uint32_t rows, const After& after) {
  if (const auto* then = std::get_if<ThenRopeStore>(&after)) rope_store(*then->attention, out, *then->cache);
  if (const auto* then = std::get_if<ThenActivate>(&after))
    activate(out, then->kind, then->gated, rows, *then->out, then->xielu);
  if (const auto* then = std::get_if<ThenAdd>(&after)) {
    if (then->norm) norm(out, then->norm, rows, out);
    add(*then->x, out, then->scale, rows);
  }
  if (const auto* then = std::get_if<ThenChoose>(&after)) {
    if (then->rescales()) rescale(out, then->scale, then->softcap, rows);
    choose(out, then->vocab);
  }
}

}  // namespace quire::backend
