// The device that runs the model (--device), with the sizes that memory planning needs before anything is allocated.
//   cpu · cuda, cuda:N · auto: the first CUDA device if this program has CUDA and there is one, else the CPU
//   for tests: simulated: the GPU backend in its simulator on the host · null: a GPU device that runs nothing
// --tensor-parallel-size: the number of GPUs, from the device's number on, or of simulated ones. All sizes and
// free_bytes() are then per rank.
// Owner   the caller. free_bytes() of a GPU reads the device that make_ops() moved into the ops: not to be called after
//         the ops are destroyed.
// Thread  one, while starting.
// Fails   StartError: the device does not exist; the model has no kernels there, or a number of kv heads that the ranks
//         cannot divide.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/config/config.h"
#include "core/backend/ops.h"
#include "core/model/spec.h"
#include "core/speculate/heads/head_config.h"
#include "gpu/limits.h"

namespace quire::app {

// Largest step that make_ops() must support: a GPU allocates room for no more.
struct StepLimits {
  std::uint32_t max_rows = 0;
  std::uint32_t max_sequences = 0;
  std::uint32_t max_model_len = 0;
  std::uint32_t num_groups = 1;  // of layers with block tables of their own
};

class ComputeDevice {
 public:
  virtual ~ComputeDevice() = default;
  // True: separate from the host's memory. The KV cache then takes what is left, and is planned after all else exists.
  virtual bool has_own_memory() const = 0;
  virtual std::optional<std::uint64_t> free_bytes() = 0;  // empty: unknown
  // StartError if the ops cannot run a model of this shape; the text names `file`, its config.json.
  virtual void expect_within_limits(const gpu::ModelShape& model, const std::string& file) const = 0;
  virtual std::uint32_t num_ranks() const { return 1; }
  virtual bool takes(backend::Format format) const { return !format.is_blocks(); }  // Factory::takes()
  virtual bool rounds_rows(backend::Format /*format*/) const { return false; }      // Factory::rounds_rows()
  // Sizes as in core/cpu/cpu_ops.h and gpu/gpu_ops.h.
  virtual std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, backend::Format type) const = 0;
  virtual std::uint64_t kv_block_bytes(const backend::KvShape& shape) const = 0;
  virtual std::uint64_t kv_residual_group_bytes(const backend::KvShape& shape) const = 0;
  virtual std::unique_ptr<backend::Ops> make_ops(const StepLimits& limits) = 0;  // once
};

// Shape of a target model or a draft model.
inline gpu::ModelShape shape_of(const model::ModelSpec& model, const model::LayerSpec& layer, backend::KvType kv,
                                backend::Format weights = backend::Format::kBF16) {
  const model::AttentionLayer& attention = layer.attention;
  gpu::ModelShape shape{model.hidden, layer.mlp.width, attention.num_heads, attention.num_kv_heads, attention.head_dim,
                        kv,           weights};
  shape.has_latent = attention.latent.has_value();
  if (!layer.experts) return shape;
  shape.num_experts = layer.experts->rule.num_experts;
  shape.top_experts = layer.experts->rule.top_k;
  shape.num_expert_groups = layer.experts->rule.num_groups;
  return shape;
}
inline void expect_within_limits(const ComputeDevice& device, const model::ModelSpec& model, backend::KvType kv,
                                 backend::Format weights, const std::string& file) {
  for (const model::LayerSpec& layer : model.layers) {
    device.expect_within_limits(shape_of(model, layer, kv, weights), file);
  }
}
// Of a draft head.
inline gpu::ModelShape shape_of(const speculate::HeadConfig& head, backend::KvType kv,
                                backend::Format weights = backend::Format::kBF16) {
  return {head.hidden, head.ffn, head.num_heads, head.num_kv_heads, head.head_dim, kv, weights};
}

std::unique_ptr<ComputeDevice> make_compute_device(const Config& config);
// The CPU, whatever --device says: for planning.
std::unique_ptr<ComputeDevice> make_cpu_device(const Config& config);

}  // namespace quire::app
