// Which backend runs the model (--device), and what planning must know of it before it holds anything.
//   cpu · cuda, cuda:N · auto: the first CUDA device, where this program has CUDA and there is one; else
//   the CPU · simulated: the GPU backend in its simulator on the host, for tests
// --tensor-parallel-size: so many GPUs from that number on, or simulated ones. What is said of memory is then of each.
// Owner   the caller; free_bytes() of a GPU asks the device that make_ops() gave to the ops, and so not behind their end.
// Thread  one, while starting.
// Fails   StartError: a device that is not there; a model that it has no kernels for, or whose kv heads ranks cannot share out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/config.h"
#include "core/backend/ops.h"
#include "gpu/limits.h"

namespace quire::app {

// What steps may be: a GPU has room for no more.
struct StepLimits {
  std::uint32_t max_rows = 0;
  std::uint32_t max_sequences = 0;
  std::uint32_t max_model_len = 0;
};

class ComputeDevice {
 public:
  virtual ~ComputeDevice() = default;
  // Apart from the host's: the KV cache takes what is left of it, and is planned when the rest is there.
  virtual bool has_own_memory() const = 0;
  virtual std::optional<std::uint64_t> free_bytes() = 0;  // empty: unknown
  // StartError: what of a model is beyond its ops, in the words of its `file`, a config.json.
  virtual void expect_within_limits(const gpu::ModelShape& model, const std::string& file) const = 0;
  virtual std::uint32_t num_ranks() const { return 1; }
  // As core/cpu/cpu_ops.h and gpu/gpu_ops.h have them.
  virtual std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, backend::WeightType type) const = 0;
  virtual std::uint64_t kv_block_bytes(const backend::KvShape& shape) const = 0;
  virtual std::uint64_t kv_open_group_bytes(const backend::KvShape& shape) const = 0;
  virtual std::unique_ptr<backend::Ops> make_ops(const StepLimits& limits) = 0;  // once
};

// Of a target, a draft model or a draft head.
template <typename AnyConfig>
gpu::ModelShape shape_of(const AnyConfig& model, backend::KvType kv,
                         backend::WeightType weights = backend::WeightType::kBF16) {
  return {model.hidden, model.ffn, model.num_heads, model.num_kv_heads, model.head_dim, kv, weights};
}

std::unique_ptr<ComputeDevice> make_compute_device(const Config& config);
// Whether that is a GPU: as asked for, or as auto finds. Looks, and makes nothing.
bool takes_gpu(const Config& config) noexcept;
// The CPU, whatever the device: to plan with.
std::unique_ptr<ComputeDevice> make_cpu_device(const Config& config);

// "auto", "cpu", "cuda", "cuda:0" and so on; not said to anybody: "simulated" and "null".
bool is_device(std::string_view text);

}  // namespace quire::app
