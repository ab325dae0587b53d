#include "core/speculate/heads/medusa_head.h"

#include <array>
#include <string>

#include "core/speculate/heads/head_fields.h"
#include "core/speculate/heads/head_tensors.h"
#include "core/speculate/problems.h"

namespace quire::speculate {
namespace {

constexpr std::uint64_t kMaxMedusaBlocks = 16;
constexpr std::uint32_t kMaxMedusaHeads = 64;

struct MedusaConfig {
  std::uint32_t num_blocks = 1;
  bool target_output = false;
};

MedusaConfig read_medusa_config(const model::ModelFiles& files, const model::Config& target) {
  return read_head_fields(files, target, "Medusa heads'", [](HeadFields& fields) {
    MedusaConfig config;
    for (const char* key : {"medusa_num_layers", "num_layers"}) {
      if (fields.has(key)) config.num_blocks = fields.uint(key, 0, kMaxMedusaBlocks);
    }
    config.target_output = fields.flag("original_lm_head");
    fields.expect_sizes_of_target();
    // How many heads there are the tensors say, and a tree is chosen as it goes.
    static constexpr std::array kKnown = {"medusa_num_layers",
                                          "num_layers",
                                          "original_lm_head",
                                          "medusa_num_heads",
                                          "num_hidden_layers",
                                          "medusa_fc_bias",
                                          "max_paths",
                                          "topk",
                                          "version"};
    fields.refuse_others(kKnown);
    return config;
  });
}

// Which of the published names a file has.
class Names {
 public:
  explicit Names(const HeadTensors& tensors) {
    if (tensors.has("blocks.0.layers.0.weight") || tensors.has("lm_heads.0.weight")) by_kind_ = true;
    if (tensors.has("medusa_head.0.0.linear.weight")) prefix_ = "medusa_head.";
  }
  std::string block(std::uint32_t head, std::uint32_t block) const {
    const std::string number = std::to_string(head);
    if (by_kind_) return "blocks." + number + ".layers." + std::to_string(block);
    return prefix_ + number + "." + std::to_string(block) + ".linear";
  }
  std::string output(std::uint32_t head, std::uint32_t num_blocks) const {
    if (by_kind_) return "lm_heads." + std::to_string(head);
    return prefix_ + std::to_string(head) + "." + std::to_string(num_blocks);
  }

 private:
  bool by_kind_ = false;
  std::string prefix_;
};

std::vector<MedusaHead> gather(HeadTensors& tensors, const MedusaConfig& config, const model::Config& target) {
  const Names names(tensors);
  std::vector<MedusaHead> heads;
  const auto is_there = [&](std::uint32_t head) {
    return tensors.has(names.output(head, config.num_blocks) + ".weight") ||
           tensors.has(names.block(head, 0) + ".weight");
  };
  for (std::uint32_t i = 0; (i == 0 || is_there(i)) && i < kMaxMedusaHeads; ++i) {
    MedusaHead head;
    for (std::uint32_t block = 0; block < config.num_blocks; ++block) {
      head.blocks.push_back(tensors.weight({{names.block(i, block)}, target.hidden, {target.hidden}}));
    }
    const std::string output = names.output(i, config.num_blocks);
    if (!config.target_output || tensors.has(output + ".weight")) {
      head.output = tensors.weight({{output}, target.hidden, {target.vocab}});
    }
    heads.push_back(std::move(head));
  }
  return heads;
}

}  // namespace

void expect_medusa_config(const model::ModelFiles& files, const model::Config& target) {
  read_medusa_config(files, target);
}

std::vector<MedusaHead> load_medusa_heads(backend::Ops& ops, const model::Config& target,
                                          const model::ModelFiles& files, backend::Quantize quantize) {
  const MedusaConfig config = read_medusa_config(files, target);
  const HeadFile file(files);
  Problems problems;
  HeadTensors check(file, problems);
  gather(check, config, target);
  check.refuse_unused();
  problems.throw_if_any(file.name() + " does not fit its config.json");
  HeadTensors pack(file, problems, &ops, quantize);
  return gather(pack, config, target);
}

}  // namespace quire::speculate
