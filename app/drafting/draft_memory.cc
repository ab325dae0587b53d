#include "app/drafting/draft_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/config/units.h"
#include "app/drafting/datastore_texts.h"
#include "app/drafting/draft_settings.h"
#include "app/model/engine_settings.h"
#include "core/base/start_error.h"
#include "core/model/gguf/gguf_files.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/weight_checks.h"
#include "core/speculate/computed_rows.h"
#include "core/speculate/heads/head_config.h"
#include "core/speculate/heads/head_tensors.h"
#include "core/speculate/heads/hydra_drafter.h"
#include "core/speculate/heads/medusa_head.h"
#include "core/speculate/heads/stored_rows.h"
#include "core/speculate/lookup/datastore.h"

namespace quire::app {
namespace {

using speculate::Method;
using speculate::SpeculativeConfig;

// Bytes of all tensors packed without quantisation. Integer tensors (d2t) are small and not counted.
std::uint64_t bytes_as_stored(const speculate::HeadFile& file, const ComputeDevice& device) {
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    const std::optional<backend::Format> format = tensor->format();
    if (!format) continue;
    bytes += tensor->shape.size() == 2 ? device.weight_bytes(static_cast<std::uint32_t>(tensor->shape[0]),
                                                             static_cast<std::uint32_t>(tensor->shape[1]), *format)
                                       : tensor->num_elements() * sizeof(float);
  }
  return bytes;
}

class Counted {
 public:
  Counted(const Config& config, const SpeculativeConfig& speculation, const ReadModel& target)
      : config_(config), speculation_(speculation), target_(target), device_(*target.device) {}

  DraftMemory count() {
    using enum Method;
    const Method method = speculation_.method;
    add_target_scratch();
    if (method == kEagle || method == kEagle3 || method == kHybrid) add_eagle();
    if (method == kMedusa || method == kHydra) add_state_heads();
    if (method == kRest) expect_datastore();
    if (method == kHydra) add_hydra_prefix();
    if (method == kDraftModel || method == kSpecinfer || method == kTriforce) {
      for (const std::string& path : speculation_.models) add_model(path);
    }
    return out_;
  }

 private:
  void add_target_scratch() {
    const backend::KvShape block = target_.config.kv_shape(config_.block_size, 1, target_.kv_dtype);
    out_.scratch_bytes +=
        num_target_scratch_blocks(speculation_, config_, target_.config) * device_.kv_block_bytes(block);
  }

  // Heads begin with the target's embeddings, and end with its output matrix.
  void expect_head_takes_embedding() const {
    const model::ModelSpec& target = target_.config;
    if (!target.projects_embedding()) return;
    throw StartError(fmt::format(
        "--speculative-config: method {} needs a model whose embeddings are as wide as its layers: {}, not {}",
        name_of(speculation_.method), target.hidden, target.embedding));
  }

  void add_eagle() {
    expect_head_takes_embedding();
    const auto files = head_files(speculation_, target_.source);
    const speculate::HeadConfig head = speculate::load_head_config(*files, target_.config);
    const std::string_view asked = name_of(speculation_.method);
    // A head that is run as the other kind would draft badly.
    if (speculation_.method != Method::kHybrid && asked != name_of(head.kind)) {
      throw StartError(
          fmt::format("--speculative-config: method is {}, but the head was made for {}", asked, name_of(head.kind)));
    }
    const speculate::EagleOptions options = eagle_options(speculation_);
    device_.expect_within_limits(shape_of(head, options.kv_dtype), files->describe("config.json"));
    const std::uint64_t block_bytes = device_.kv_block_bytes(head.kv_shape(config_.block_size, 1, options.kv_dtype));
    out_.weight_bytes += bytes_as_stored(speculate::HeadFile(*files), device_);
    out_.block_bytes += block_bytes + speculate::StoredRows::bytes_per_block(config_.block_size, head.hidden);
    out_.scratch_bytes +=
        speculate::EagleDrafter::num_scratch_blocks(options, head_runner_limits(config_, 0, 0)) * block_bytes;
    add_states(head.states_width());
  }

  // Medusa and Hydra heads: small, over the target's last hidden state, without K and V of their own.
  void add_state_heads() {
    expect_head_takes_embedding();
    const auto files = head_files(speculation_, target_.source);
    if (speculation_.method == Method::kMedusa) speculate::expect_medusa_config(*files, target_.config);
    out_.weight_bytes += bytes_as_stored(speculate::HeadFile(*files), device_);
    add_states(target_.config.hidden);
  }

  void add_hydra_prefix() {
    const auto files = head_files(speculation_, target_.source);
    const auto prefix = speculate::load_hydra_prefix_config(*files, target_.config);
    if (!prefix) return;
    const backend::KvType type = speculate::HydraOptions{}.kv_dtype;
    device_.expect_within_limits(shape_of(*prefix, type), files->describe("config.json"));
    const backend::KvShape block = prefix->kv_shape(config_.block_size, 1, type);
    out_.block_bytes +=
        device_.kv_block_bytes(block) + speculate::StoredRows::bytes_per_block(config_.block_size, /*hidden=*/0);
  }

  void add_states(std::uint32_t width) {
    out_.states_bytes += std::uint64_t{config_.max_num_batched_tokens} * width * sizeof(float);
  }

  void add_model(const std::string& path) {
    const auto files = model::open_model_files(path);
    const model::Checkpoint checkpoint = model::open_decoder(*files);
    model::ModelSpec model = model::fitted(model::load_config(*files), checkpoint);
    model.copy_kv_heads(device_.num_ranks());
    if (model.vocab != target_.config.vocab) {
      throw StartError(fmt::format(
          "--speculative-config: {}: its vocabulary has {} tokens and the served model's {}: they must be the same",
          files->describe("config.json"), model.vocab, target_.config.vocab));
    }
    const speculate::ModelDraftLimits limits = model_draft_limits(speculation_, config_, 0);
    expect_within_limits(device_, model, limits.kv_type, backend::Format::kBF16, files->describe("config.json"));
    const std::uint64_t block_bytes = device_.kv_block_bytes(model.kv_shape(config_.block_size, 1, limits.kv_type)) +
                                      speculate::ComputedRows::bytes_per_block(config_.block_size);
    out_.weight_bytes += packed_size_of(checkpoint, model, std::nullopt, device_).bytes;
    out_.block_bytes += block_bytes;
    out_.scratch_bytes +=
        speculate::ModelDrafter::num_scratch_blocks(limits, model_draft_options(speculation_)) * block_bytes;
  }

  // A datastore takes no memory that is counted, but a plan must find the same problems as a start.
  void expect_datastore() {
    const auto store = speculate::Datastore::open(speculation_.datastore, tokenizer_key(*target_.source.files));
    if (store) return;
    throw StartError(
        fmt::format("--speculative-config: datastore: {}; `quire build-datastore` makes one", store.error().message));
  }

  const Config& config_;
  const SpeculativeConfig& speculation_;
  const ReadModel& target_;
  const ComputeDevice& device_;
  DraftMemory out_;
};

}  // namespace

DraftMemory draft_memory(const Config& config, const ReadModel& target) {
  const SpeculativeConfig speculation = speculation_of(config);
  return Counted(config, speculation, target).count();
}

MemoryRequest with_drafts(MemoryRequest request, const DraftMemory& drafts) {
  request.drafts = drafts;
  if (request.free_bytes) {
    *request.free_bytes -= std::min(*request.free_bytes, drafts.weight_bytes + drafts.states_bytes);
  }
  return request;
}

std::string drafts_line(const MemoryPlan& plan, const MemoryRequest& request) {
  const DraftMemory& drafts = request.drafts;
  std::string parts;
  const auto add = [&](std::uint64_t bytes, std::string_view what) {
    if (bytes != 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", bytes_text(bytes), what);
  };
  add(drafts.weight_bytes, "of weights");
  add(drafts.block_bytes * plan.num_blocks, fmt::format("of K and V for {} blocks", plan.num_blocks));
  add(drafts.scratch_bytes, "of scratch blocks");
  add(drafts.states_bytes, "of captured states");
  return parts.empty() ? "" : "drafts: " + parts;
}

}  // namespace quire::app
