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
  std::uint32_t draft_vocab = 0;  // the target's, unless a token_map names fewer
  bool target_output = false;     // heads without an output matrix of their own take the target's
};

MedusaConfig read_medusa_config(const model::ModelFiles& files, const model::ModelSpec& target) {
  return read_head_fields(files, target, "Medusa heads", [&](HeadFields& fields) {
    MedusaConfig config;
    // The config of a whole model with heads inside has the model's own keys, which its loader checks.
    const bool inside_a_model =
        fields.has("num_attention_heads") && (fields.has("medusa_num_heads") || fields.has("medusa_num_layers"));
    // vLLM's name for the blocks; models have another meaning for it.
    const char* by_vllm = fields.text("model_type") == "medusa" ? "num_hidden_layers" : "num_layers";
    for (const char* key : {"medusa_num_layers", by_vllm}) {
      if (fields.has(key)) config.num_blocks = fields.uint(key, 0, kMaxMedusaBlocks);
    }
    // "2": heads that are one block each, as text-generation-inference has them.
    config.target_output = fields.flag("original_lm_head") || fields.text("version") == "2";
    config.draft_vocab = target.vocab;
    if (fields.has("truncated_vocab_size")) {
      config.draft_vocab = fields.uint("truncated_vocab_size", 1, target.vocab, target.vocab);
    }
    fields.expect_sizes_of_target();
    // The tensors decide the number of heads, and the tree is dynamic.
    static constexpr std::array kKnown = {"medusa_num_layers",
                                          "num_layers",
                                          "original_lm_head",
                                          "medusa_num_heads",
                                          "num_heads",
                                          "num_hidden_layers",
                                          "medusa_fc_bias",
                                          "max_paths",
                                          "max_seq_len",
                                          "num_lookahead_tokens",
                                          "topk",
                                          "truncated_vocab_size",
                                          "version"};
    if (!inside_a_model) fields.refuse_others(kKnown);
    return config;
  });
}

// Tensor names in the layout that the file has.
class Names {
 public:
  explicit Names(const HeadTensors& tensors)
      : by_kind_(tensors.has("blocks.0.layers.0.weight") || tensors.has("lm_heads.0.weight")) {}
  std::string block(std::uint32_t head, std::uint32_t block) const {
    const std::string number = std::to_string(head);
    return by_kind_ ? "blocks." + number + ".layers." + std::to_string(block)
                    : number + "." + std::to_string(block) + ".linear";
  }
  std::string output(std::uint32_t head, std::uint32_t num_blocks) const {
    return by_kind_ ? "lm_heads." + std::to_string(head) : std::to_string(head) + "." + std::to_string(num_blocks);
  }

 private:
  bool by_kind_;
};

MedusaHeads gather(HeadTensors& tensors, const MedusaConfig& config, const model::ModelSpec& target) {
  const Names names(tensors);
  MedusaHeads all;
  const bool reduced = config.draft_vocab != target.vocab;
  if (reduced || tensors.has("token_map")) all.token_of = tensors.token_map(config.draft_vocab, target.vocab);
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
    if (!config.target_output || reduced || tensors.has(output + ".weight")) {
      head.output = tensors.weight({{output}, target.hidden, {config.draft_vocab}});
    }
    all.heads.push_back(std::move(head));
  }
  return all;
}

}  // namespace

void expect_medusa_config(const model::ModelFiles& files, const model::ModelSpec& target) {
  read_medusa_config(files, target);
}

MedusaHeads load_medusa_heads(backend::Ops& ops, const model::ModelSpec& target, const model::ModelFiles& files,
                              std::optional<backend::Format> quantize) {
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
