#include "core/speculate/heads/hydra_head.h"

#include <array>
#include <string>

#include "core/speculate/heads/head_fields.h"
#include "core/speculate/heads/head_tensors.h"
#include "core/speculate/problems.h"

namespace quire::speculate {
namespace {

constexpr std::uint64_t kMaxHydraHeads = 64;
constexpr std::uint64_t kMaxHydraBlocks = 16;
const std::string kPrefixName = "prefix_embeding_layer.";  // spelled as published

struct HydraConfig {
  std::uint32_t num_heads = 1;
  std::uint32_t num_blocks = 1;
  bool has_prefix = false;
  std::uint32_t state_offset = 0;  // layers before the last one's output; 0: after the final norm
};

HydraConfig read_hydra_config(const model::ModelFiles& files, const model::ModelSpec& target) {
  return read_head_fields(files, target, "Hydra heads", [&](HeadFields& fields) {
    HydraConfig config;
    config.num_heads = fields.uint("hydra_num_heads", 1, kMaxHydraHeads);
    config.num_blocks = fields.uint("hydra_num_layers", 1, kMaxHydraBlocks);
    const std::string layout = fields.text("hydra_head_arch");
    config.has_prefix = layout == "prefix-mlp";
    if (layout != "mlp" && !config.has_prefix) {
      fields.mismatch("hydra_head_arch", "expected \"mlp\" or \"prefix-mlp\"; no other value is supported");
    }
    if (!fields.flag("grounded_heads")) {
      fields.mismatch("grounded_heads", "expected true: Hydra heads read the tokens drafted before");
    }
    if (fields.has("hidden_state_offset")) {
      config.state_offset = fields.uint("hidden_state_offset", 0, target.num_layers(), 0);
    }
    fields.expect_sizes_of_target();
    static constexpr std::array kHydraFields = {"hydra_num_heads", "hydra_num_layers", "hydra_head_arch",
                                                "grounded_heads", "hidden_state_offset"};
    fields.refuse_others(kHydraFields);
    return config;
  });
}

std::optional<std::uint32_t> boundary_of(const HydraConfig& config, const model::ModelSpec& target) {
  if (config.state_offset == 0) return std::nullopt;
  return target.num_layers() - config.state_offset;
}

// The prefix layer has the target's shape: the authors build it from the target's config.
std::optional<HeadConfig> prefix_config(const HydraConfig& hydra, const model::ModelSpec& target) {
  if (!hydra.has_prefix) return std::nullopt;
  const std::optional<std::uint32_t> boundary = boundary_of(hydra, target);
  HeadConfig config;
  config.kind = HeadKind::kPrefix;
  if (boundary) config.boundaries = {*boundary};
  config.target_hidden = target.hidden;
  config.hidden = target.hidden;
  const model::LayerSpec& layer = target.layers.front();
  config.ffn = layer.mlp.width;
  config.num_heads = layer.attention.num_heads;
  config.num_kv_heads = layer.attention.num_kv_heads / layer.attention.kv_copies;  // the file has no copies
  config.head_dim = layer.attention.head_dim;
  config.vocab = target.vocab;
  config.draft_vocab = target.vocab;
  config.norm_eps = layer.norm.eps;
  if (target.ropes.empty()) {
    throw StartError("a Hydra prefix layer turns by the RoPE of its model, which has none");
  }
  config.rope = target.ropes.front();
  return config;
}

class HydraGatherer {
 public:
  HydraGatherer(HeadTensors& tensors, const HydraConfig& config, const model::ModelSpec& target)
      : tensors_(tensors), config_(config), target_(target) {}

  HydraHeads gather() {
    HydraHeads all;
    all.boundary = boundary_of(config_, target_);
    for (std::uint32_t i = 0; i < config_.num_heads; ++i) all.heads.push_back(gather_head(i));
    all.prefix = prefix_config(config_, target_);
    if (!all.prefix) return all;
    all.prefix_weights.layers.push_back(gather_head_layer(tensors_, *all.prefix, kPrefixName + "layers.0.", 0));
    all.prefix_weights.norm = tensors_.vector(kPrefixName + "norm.weight", target_.hidden);
    // The prefix layer's input has no tokens.
    tensors_.leave_out(kPrefixName + "embed_tokens.weight", {target_.vocab, target_.hidden});
    return all;
  }

 private:
  HydraHead gather_head(std::uint32_t index) {
    const std::uint64_t hidden = target_.hidden;
    const std::uint64_t wide = (std::uint64_t{index} + 2) * hidden;
    HydraHead head;
    head.residual = tensors_.weight({{block_name(index, 0, "res_connection")}, wide, {hidden}});
    head.linear = tensors_.weight({{block_name(index, 0, "linear")}, wide, {hidden}});
    for (std::uint32_t block = 1; block < config_.num_blocks; ++block) gather_block(index, block, head);
    const std::string output = "hydra_lm_head." + std::to_string(index) + (config_.has_prefix ? ".1" : "");
    head.output = tensors_.weight({{output}, hidden, {target_.vocab}});
    return head;
  }

  void gather_block(std::uint32_t index, std::uint32_t block, HydraHead& head) {
    const std::string name = block_name(index, block, "linear");
    const bool left_out = !tensors_.has(block_name(index, 2, "linear") + ".weight");  // all or none
    const bool again = block > 1 && (left_out || tensors_.repeats(name, block_name(index, 1, "linear")));
    if (!again) head.blocks.push_back(tensors_.weight({{name}, target_.hidden, {target_.hidden}}));
    head.turns.push_back(again ? 0 : static_cast<std::uint32_t>(head.blocks.size() - 1));
  }

  std::string block_name(std::uint32_t head, std::uint32_t block, const char* part) const {
    const std::uint32_t number = config_.has_prefix ? 2 * block + 1 : block;
    return "hydra_mlp." + std::to_string(head) + "." + std::to_string(number) + "." + part;
  }

  HeadTensors& tensors_;
  const HydraConfig& config_;
  const model::ModelSpec& target_;
};

}  // namespace

std::optional<HeadConfig> load_hydra_prefix_config(const model::ModelFiles& files, const model::ModelSpec& target) {
  return prefix_config(read_hydra_config(files, target), target);
}

HydraHeads load_hydra_heads(backend::Ops& ops, const model::ModelSpec& target, const model::ModelFiles& files,
                            std::optional<backend::Format> quantize) {
  const HydraConfig config = read_hydra_config(files, target);
  const HeadFile file(files);
  Problems problems;
  HeadTensors check(file, problems);
  HydraGatherer(check, config, target).gather();
  check.refuse_unused();
  problems.throw_if_any(file.name() + " does not fit its config.json");
  HeadTensors pack(file, problems, &ops, quantize);
  return HydraGatherer(pack, config, target).gather();
}

}  // namespace quire::speculate
