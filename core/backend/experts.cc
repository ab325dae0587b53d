// Devices without kernels for mixtures of experts: they make no Routes, so that no op of a mixture is called. GPUs have
// none for heads as experts.
#include "core/backend/experts.h"

#include "core/backend/factory.h"
#include "core/backend/step_ops.h"
#include "core/base/check.h"
#include "core/base/start_error.h"

namespace quire::backend {

std::unique_ptr<Routes> Factory::make_routes(std::uint32_t, std::uint32_t, std::uint32_t) {
  throw StartError("mixtures of experts run on CPUs and GPUs: this device has no kernels for them");
}

void StepOps::route(Buffer&, const RouteRule&, const RouteVectors&, std::uint32_t, Routes&) { CHECK(false); }
void StepOps::gather_by_expert(const Buffer&, const Routes&, std::uint32_t, Buffer&) { CHECK(false); }
void StepOps::linear_by_expert(const Buffer&, ExpertWeights, const Routes&, std::uint32_t, Buffer&,
                               const ThenActivate*) {
  CHECK(false);
}
void StepOps::combine_experts(const Buffer&, const Routes&, const SharedExpert&, std::uint32_t, Buffer&) {
  CHECK(false);
}
void StepOps::route_to_all(std::uint32_t, Routes&) { CHECK(false); }
void StepOps::gather_heads(const Buffer&, std::uint32_t, const Routes&, std::uint32_t, Buffer&) { CHECK(false); }
void StepOps::place_heads(const Buffer&, const Routes&, std::uint32_t, std::uint32_t, std::uint32_t, Buffer&) {
  CHECK(false);
}
void StepOps::read_routes(const Routes&, std::uint32_t, std::span<std::uint32_t>, std::span<float>) { CHECK(false); }

}  // namespace quire::backend
