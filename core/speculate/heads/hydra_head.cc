#include "core/speculate/heads/hydra_head.h"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <string>

#include "core/model/json_fields.h"
#include "core/speculate/heads/head_tensors.h"
#include "core/speculate/problems.h"

namespace quire::speculate {
namespace {

constexpr std::array kHarmless = {"architectures", "model_type", "base_model_name_or_path",
                                  "torch_dtype",   "dtype",      "transformers_version",
                                  "_name_or_path"};
constexpr std::uint64_t kMaxHeads = 64;
constexpr std::uint64_t kMaxBlocks = 16;
const std::string kPrefixName = "prefix_embeding_layer.";  // as published

struct HydraConfig {
  std::uint32_t num_heads = 1;
  std::uint32_t num_blocks = 1;
  bool has_prefix = false;
  std::uint32_t state_offset = 0;  // how many layers before the last one ends; 0: behind the final norm
};

class Reader {
 public:
  Reader(const model::JsonFields& fields, const model::Config& target) : fields_(fields), target_(target) {}

  HydraConfig read(const std::string& name) {
    HydraConfig config;
    config.num_heads = uint("hydra_num_heads", 1, kMaxHeads);
    config.num_blocks = uint("hydra_num_layers", 1, kMaxBlocks);
    config.has_prefix = problems_.take([&] { return reads_prefix(); }, false);
    problems_.take([&] { return expect_grounded(); }, true);
    if (fields_.has("hidden_state_offset")) config.state_offset = uint("hidden_state_offset", 0, target_.num_layers);
    if (fields_.has("hidden_size")) expect("hidden_size", target_.hidden);
    if (fields_.has("vocab_size")) expect("vocab_size", target_.vocab);
    for (const std::string& key : fields_.keys()) check_known(key);
    problems_.throw_if_any(name + " is not Hydra heads' that can be read");
    return config;
  }

 private:
  bool reads_prefix() const {
    const std::string layout = fields_.require_string("hydra_head_arch");
    if (layout != "mlp" && layout != "prefix-mlp") {
      fields_.mismatch("hydra_head_arch", "expected \"mlp\" or \"prefix-mlp\"; no other is supported");
    }
    return layout == "prefix-mlp";
  }
  bool expect_grounded() const {
    if (!fields_.optional_bool("grounded_heads").value_or(false)) {
      fields_.mismatch("grounded_heads", "expected true: heads that see no tokens are not Hydra's");
    }
    return true;
  }
  void check_known(const std::string& key) {
    constexpr std::array kKnown = {"hydra_num_heads",     "hydra_num_layers", "hydra_head_arch", "grounded_heads",
                                   "hidden_state_offset", "hidden_size",      "vocab_size"};
    const auto is_key = [&](const char* known) { return key == known; };
    if (std::ranges::any_of(kKnown, is_key) || std::ranges::any_of(kHarmless, is_key)) return;
    problems_.take([&]() -> bool { fields_.refuse(key, "is not known; it may change what the heads compute"); }, false);
  }
  std::uint32_t uint(const char* key, std::uint64_t low, std::uint64_t high) {
    return problems_.take([&] { return fields_.require_uint(key, low, high); }, std::uint32_t{1});
  }
  void expect(const char* key, std::uint32_t value) {
    problems_.take(
        [&] {
          if (fields_.require_uint(key, 1, 1u << 30) != value) {
            fields_.mismatch(key, "expected the target's, " + std::to_string(value));
          }
          return true;
        },
        true);
  }

  const model::JsonFields& fields_;
  const model::Config& target_;
  Problems problems_;
};

HydraConfig read_config(const model::ModelFiles& files, const model::Config& target) {
  const model::FileBytes bytes = files.require("config.json");
  const std::string name = files.describe("config.json");
  const boost::json::object object =
      model::parse_object({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
  return Reader(model::JsonFields(object, name), target).read(name);
}

// A layer as the target's: the authors make it from the target's own config.
HeadConfig prefix_config(const model::Config& target, const std::optional<std::uint32_t>& boundary) {
  HeadConfig config;
  config.kind = HeadKind::kPrefix;
  if (boundary) config.boundaries = {*boundary};
  config.target_hidden = target.hidden;
  config.hidden = target.hidden;
  config.ffn = target.ffn;
  config.num_heads = target.num_heads;
  config.num_kv_heads = target.num_kv_heads;
  config.head_dim = target.head_dim;
  config.vocab = target.vocab;
  config.draft_vocab = target.vocab;
  config.norm_eps = target.norm_eps;
  config.rope = target.rope;
  return config;
}

class Gatherer {
 public:
  Gatherer(HeadTensors& tensors, const HydraConfig& config, const model::Config& target)
      : tensors_(tensors), config_(config), target_(target) {}

  HydraHeads gather() {
    HydraHeads all;
    if (config_.state_offset > 0) all.boundary = target_.num_layers - config_.state_offset;
    for (std::uint32_t i = 0; i < config_.num_heads; ++i) all.heads.push_back(gather_head(i));
    if (!config_.has_prefix) return all;
    all.prefix = prefix_config(target_, all.boundary);
    all.prefix_weights.layers.push_back(gather_head_layer(tensors_, *all.prefix, kPrefixName + "layers.0.", 0));
    all.prefix_weights.norm = tensors_.vector(kPrefixName + "norm.weight", target_.hidden);
    tensors_.leave_out(kPrefixName + "embed_tokens.weight", {target_.vocab, target_.hidden});  // its input is no tokens
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
    const bool left_out = !tensors_.has(block_name(index, 2, "linear") + ".weight");  // all of them, or none
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
  const model::Config& target_;
};

}  // namespace

HydraHeads load_hydra_heads(backend::Ops& ops, const model::Config& target, const model::ModelFiles& files,
                            backend::Quantize quantize) {
  const HydraConfig config = read_config(files, target);
  const HeadFile file(files);
  Problems problems;
  HeadTensors check(file, problems);
  Gatherer(check, config, target).gather();
  check.refuse_unused();
  problems.throw_if_any(file.name() + " does not fit its config.json");
  HeadTensors pack(file, problems, &ops, quantize);
  return Gatherer(pack, config, target).gather();
}

}  // namespace quire::speculate
