#include "app/model/compute_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <vector>

#include "app/config/device_name.h"
#include "app/model/machine.h"
#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/cpu/cpu_ops.h"
#include "core/kv/layout.h"
#include "core/sample/token_tree.h"
#include "gpu/cuda/cuda_device.h"
#include "gpu/gpu_ops.h"
#include "gpu/parallel/nccl.h"
#include "gpu/parallel/sharded_ops.h"
#include "gpu/parallel/shards.h"
#include "gpu/runtime/null_device.h"
#include "gpu/runtime/simulated_device.h"

namespace quire::app {
namespace {

// In rows: a longer step takes the GPU more time than launching its kernels one by one takes the host.
constexpr std::uint32_t kMostCaptured = 256;

class Cpu final : public ComputeDevice {
 public:
  explicit Cpu(const Config& config) {
    options_.num_threads = config.threads.value_or(usable_cpus());
    options_.isa = config.isa;
  }
  bool has_own_memory() const override { return false; }
  std::optional<std::uint64_t> free_bytes() override { return free_memory_bytes(); }
  void expect_within_limits(const gpu::ModelShape& /*model*/, const std::string& /*file*/) const override {}
  bool takes(backend::Format format) const override { return cpu::takes(format); }
  std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, backend::Format type) const override {
    return cpu::weight_bytes(n, k, type);
  }
  std::uint64_t kv_block_bytes(const backend::KvShape& shape) const override { return cpu::kv_block_bytes(shape); }
  std::uint64_t kv_residual_group_bytes(const backend::KvShape& shape) const override {
    return cpu::kv_residual_group_bytes(shape);
  }
  std::unique_ptr<backend::Ops> make_ops(const StepLimits& limits) override {
    options_.max_rows = limits.max_rows;
    return cpu::make_cpu_ops(options_);
  }

 private:
  cpu::CpuOptions options_;
};

// Limits for the GPU backend. A block table also covers its sequence's draft nodes, and the scratch blocks for the
// draft tokens of a draft model.
gpu::GpuOptions options_of(const StepLimits& limits, std::uint32_t block_size) {
  // Saturates: a size that no GPU can hold is rejected when it is allocated.
  const auto product = [](std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint32_t>(std::min(a * b, std::uint64_t{0xffffffff}));
  };
  const std::uint32_t longest = limits.max_model_len + 2 * sample::TokenTree::kMaxNodes;
  const std::uint32_t block_tokens = std::max(block_size, kGroupTokens);
  gpu::GpuOptions options;
  options.max_rows = limits.max_rows;
  options.depth = 2;
  options.num_groups = limits.num_groups;
  options.max_table_entries = product(limits.max_sequences, kv::blocks_for(longest, block_tokens) + 2);
  options.max_kept_groups = product(limits.max_sequences, longest / kSpanTokens + 1);
  return options;
}

void expect_kernels_for(const gpu::ModelShape& model, const std::string& file) {
  const std::vector<std::string> beyond = gpu::beyond_limits(model);
  if (beyond.empty()) return;
  throw StartError(fmt::format("{}: the GPU backend has no kernels for this model: {}; use --device cpu", file,
                               fmt::join(beyond, "; ")));
}

class Gpu final : public ComputeDevice {
 public:
  Gpu(std::unique_ptr<gpu::Device> device, std::uint32_t block_tokens)
      : owned_(std::move(device)), device_(*owned_), block_tokens_(block_tokens) {}
  bool has_own_memory() const override { return true; }
  std::optional<std::uint64_t> free_bytes() override { return device_.free_bytes(); }
  void expect_within_limits(const gpu::ModelShape& model, const std::string& file) const override {
    expect_kernels_for(model, file);
  }
  bool takes(backend::Format format) const override { return gpu::takes(format); }
  bool rounds_rows(backend::Format format) const override { return gpu::rounds_rows(format); }
  std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, backend::Format type) const override {
    return gpu::weight_bytes(n, k, type);
  }
  std::uint64_t kv_block_bytes(const backend::KvShape& shape) const override { return gpu::kv_block_bytes(shape); }
  std::uint64_t kv_residual_group_bytes(const backend::KvShape& shape) const override {
    return gpu::kv_residual_group_bytes(shape);
  }
  std::unique_ptr<backend::Ops> make_ops(const StepLimits& limits) override {
    CHECK(owned_ != nullptr);
    gpu::GpuOptions options = options_of(limits, block_tokens_);
    options.capture = std::min(limits.max_rows, kMostCaptured);
    return gpu::make_gpu_ops(std::move(owned_), options);
  }

 private:
  std::unique_ptr<gpu::Device> owned_;
  gpu::Device& device_;
  const std::uint32_t block_tokens_;
};

// Several GPUs that run the model together, with tensor parallelism.
class Gpus final : public ComputeDevice {
 public:
  // `library` is null if the ranks are not separate GPUs.
  Gpus(gpu::Ranks ranks, std::unique_ptr<gpu::Nccl> library, std::uint32_t block_tokens)
      : library_(std::move(library)), owned_(std::move(ranks)), block_tokens_(block_tokens) {
    for (const auto& device : owned_.devices) devices_.push_back(device.get());
  }
  bool has_own_memory() const override { return true; }
  std::uint32_t num_ranks() const override { return static_cast<std::uint32_t>(devices_.size()); }
  std::optional<std::uint64_t> free_bytes() override {
    std::uint64_t least = devices_.front()->free_bytes();
    for (gpu::Device* device : devices_) least = std::min(least, device->free_bytes());
    return least;
  }
  void expect_within_limits(const gpu::ModelShape& model, const std::string& file) const override {
    expect_kernels_for(model, file);
    const std::vector<std::string> problems = gpu::problems_of_ranks(model.num_kv_heads, num_ranks());
    if (!problems.empty()) throw StartError(fmt::format("{}: --{}", file, problems.front()));
  }
  bool takes(backend::Format format) const override { return gpu::takes(format); }
  bool rounds_rows(backend::Format format) const override { return gpu::rounds_rows(format); }
  std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, backend::Format type) const override {
    return gpu::weight_bytes(gpu::outputs_of_rank(n, num_ranks()), k, type);
  }
  std::uint64_t kv_block_bytes(const backend::KvShape& shape) const override {
    return gpu::kv_block_bytes(of_rank(shape));
  }
  std::uint64_t kv_residual_group_bytes(const backend::KvShape& shape) const override {
    return gpu::kv_residual_group_bytes(of_rank(shape));
  }
  std::unique_ptr<backend::Ops> make_ops(const StepLimits& limits) override {
    CHECK(!owned_.devices.empty());
    return gpu::make_sharded_ops(std::move(owned_), options_of(limits, block_tokens_), {}, std::move(library_));
  }

 private:
  backend::KvShape of_rank(const backend::KvShape& shape) const { return gpu::shard_of(shape, num_ranks()); }

  std::unique_ptr<gpu::Nccl> library_;
  gpu::Ranks owned_;
  std::vector<gpu::Device*> devices_;
  const std::uint32_t block_tokens_;
};

std::unique_ptr<ComputeDevice> make_simulated(const Config& config) {
  if (config.tensor_parallel_size == 1) {
    return std::make_unique<Gpu>(gpu::make_simulated_device(), config.block_size);
  }
  return std::make_unique<Gpus>(gpu::make_simulated_ranks(config.tensor_parallel_size), nullptr, config.block_size);
}

std::unique_ptr<ComputeDevice> make_null(const Config& config) {
  if (config.tensor_parallel_size > 1) throw StartError("there is only one null device: use --tensor-parallel-size 1");
  return std::make_unique<Gpu>(gpu::make_null_device(), config.block_size);
}

std::unique_ptr<ComputeDevice> make_gpus(const Config& config, int first) {
  if (config.tensor_parallel_size == 1) {
    return std::make_unique<Gpu>(gpu::make_cuda_device(first), config.block_size);
  }
  std::vector<int> numbers(config.tensor_parallel_size);
  std::iota(numbers.begin(), numbers.end(), first);
  gpu::Ranks ranks = gpu::make_cuda_ranks(numbers);
  return std::make_unique<Gpus>(std::move(ranks), std::make_unique<gpu::Nccl>(numbers), config.block_size);
}

}  // namespace

std::unique_ptr<ComputeDevice> make_compute_device(const Config& config) {
  const bool together = config.tensor_parallel_size > 1;
  const std::string asked =
      together ? fmt::format("--tensor-parallel-size {}, --device {}", config.tensor_parallel_size, config.device)
               : fmt::format("--device {}", config.device);
  const bool simulated = config.device == "simulated";
  const bool null = config.device == "null";
  const std::optional<int> number = cuda_number(config.device);
  if (simulated || null || number || (config.device == "auto" && (together || gpu::has_cuda()))) {
    try {
      if (null) return make_null(config);
      return simulated ? make_simulated(config) : make_gpus(config, number.value_or(0));
    } catch (const StartError& error) {
      if (simulated || null || number || together) throw StartError(fmt::format("{}: {}", asked, error.what()));
      log_info("device", "--device auto uses the CPU: {}", error.what());
    }
  }
  return make_cpu_device(config);
}

std::unique_ptr<ComputeDevice> make_cpu_device(const Config& config) { return std::make_unique<Cpu>(config); }

}  // namespace quire::app
