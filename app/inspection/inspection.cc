#include "app/inspection/inspection.h"

#include <algorithm>

#include "app/model/engine_settings.h"
#include "app/model/machine.h"
#include "app/model/planned_checkpoint.h"
#include "core/base/check.h"
#include "core/base/start_error.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/quantized/quantization.h"
#include "core/model/weight_checks.h"

namespace quire::app {
namespace {

std::vector<std::uint32_t> contexts_up_to(std::uint32_t longest) {
  std::vector<std::uint32_t> out;
  for (std::uint64_t context = 512; context < longest; context *= 4) out.push_back(static_cast<std::uint32_t>(context));
  out.push_back(longest);
  return out;
}

KvMemory kv_memory(const Inspection& seen, const MemoryRequest& request, backend::KvType type,
                   const ComputeDevice& device, const std::vector<std::uint32_t>& contexts) {
  const backend::KvShape shape = seen.groups.shape(seen.block_tokens, 1, type);
  const std::uint64_t block_bytes = device.kv_block_bytes(shape);
  const std::uint64_t residual_bytes = device.kv_residual_group_bytes(shape);
  KvMemory out{type, bytes_per_token(block_bytes * seen.groups.size(), seen.block_tokens), {}, 0};
  out.num_blocks = seen.kv_bytes / block_bytes;
  for (const std::uint32_t context : contexts) {
    const std::uint64_t bytes = request.most_blocks(context) * block_bytes + residual_bytes;
    out.contexts.push_back({context, bytes, seen.kv_bytes / bytes});
  }
  return out;
}

void read_chat(const Config& config, const model::ModelFiles& files, Inspection& out) {
  try {
    const ChatSummary chat = summary_of(*load_chat_model(config, files));
    if (chat.has_template) out.chat = chat;  // without one, the forms are those that any model gets
  } catch (const StartError& error) {
    out.chat_problem = error.what();
  }
}

}  // namespace

const KvMemory& Inspection::served_kv() const {
  const auto found = std::ranges::find(kv, kv_type, &KvMemory::type);
  CHECK(found != kv.end());
  return *found;
}

Inspection inspect_model(const Config& config, const ModelSource& source) {
  const model::ModelSpec stated = model::load_config(*source.files);
  const bool there = has_weights(*source.files);
  Inspection out{.name = source.name,
                 .config = stated,
                 .has_weights = there,
                 .checkpoint = there ? model::open_decoder(*source.files) : planned_checkpoint(stated, *source.files)};
  out.config = model::fitted(out.config, out.checkpoint);
  if (there) model::check_weights(out.config, out.checkpoint);
  const std::string blocks = block_types_of(out.checkpoint);
  const backend::Format stored = main_dtype(out.checkpoint);
  out.weights = blocks.empty() ? backend::name_of(stored) : blocks;
  out.quantize = config.quantize;
  out.block_tokens = config.block_size;
  out.groups = kv_groups(config, out.config);
  const auto made = model::quantization_of(*source.files);
  out.kv_type = kv_dtype_of(config, blocks.empty() ? stored : backend::Format::kBF16, made && made->kv_in_fp8);
  if (there) read_chat(config, *source.files, out);

  const std::unique_ptr<ComputeDevice> device = make_cpu_device(config);
  const PackedSize size = packed_size_of(out.checkpoint, out.config, quantize_of(config), *device);
  out.packed = size.bytes;
  const MemoryRequest request = memory_request(config, out.config, out.kv_type, *device);
  out.free_bytes = request.free_bytes;
  out.kv_bytes_given = request.kv_cache_bytes.has_value();
  const std::uint64_t free = request.free_bytes.value_or(0);
  out.kv_bytes = request.kv_cache_bytes.value_or(kv_share(free - std::min(free, out.packed), /*own_memory=*/false));
  const auto contexts = contexts_up_to(std::min(out.config.max_model_len(), config.max_model_len.value_or(~0u)));
  const auto has_latent = [](const model::LayerSpec& layer) { return layer.attention.latent.has_value(); };
  const bool in_int4 = std::ranges::none_of(out.config.layers, has_latent);
  for (const backend::KvType type : backend::kAllKvTypes) {
    if (type == backend::KvType::kInt4 && !in_int4) continue;
    out.kv.push_back(kv_memory(out, request, type, *device, contexts));
  }
  out.speed = estimate_speed(size.step_bytes, out.free_bytes);
  return out;
}

}  // namespace quire::app
