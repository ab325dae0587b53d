#include "core/speculate/heads/medusa_head.h"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/json_fields.h"
#include "core/speculate/heads/head_tensors.h"
#include "core/speculate/problems.h"

namespace quire::speculate {
namespace {

constexpr std::array kHarmless = {
    "architectures", "model_type",     "medusa_num_heads",     "base_model_name_or_path", "torch_dtype",
    "dtype",         "version",        "transformers_version", "num_hidden_layers",       "max_paths",
    "topk",          "medusa_fc_bias", "_name_or_path"};
constexpr std::uint64_t kMaxBlocks = 16;
constexpr std::uint32_t kMaxHeads = 64;

struct MedusaConfig {
  std::uint32_t num_blocks = 1;
  bool target_output = false;
};

class Reader {
 public:
  Reader(const model::JsonFields& fields, const model::Config& target) : fields_(fields), target_(target) {}

  MedusaConfig read(const std::string& name) {
    for (const std::string& key : fields_.keys()) {
      const auto is_key = [&](const char* known) { return key == known; };
      if (key == "medusa_num_layers" || key == "num_layers") {
        config_.num_blocks = problems_.take([&] { return fields_.require_uint(key, 0, kMaxBlocks); }, 1u);
      } else if (key == "original_lm_head") {
        config_.target_output = problems_.take([&] { return fields_.optional_bool(key).value_or(false); }, false);
      } else if (key == "hidden_size") {
        expect(key, target_.hidden);
      } else if (key == "vocab_size" || key == "truncated_vocab_size") {
        expect(key, target_.vocab);
      } else if (std::ranges::none_of(kHarmless, is_key)) {
        problems_.take([&]() -> bool { fields_.refuse(key, "is not known; it may change what the heads compute"); },
                       false);
      }
    }
    problems_.throw_if_any(name + " is not Medusa heads' that can be read");
    return config_;
  }

 private:
  void expect(const std::string& key, std::uint64_t value) {
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
  MedusaConfig config_;
};

MedusaConfig read_config(const model::ModelFiles& files, const model::Config& target) {
  const model::FileBytes bytes = files.require("config.json");
  const std::string name = files.describe("config.json");
  const boost::json::object object =
      model::parse_object({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
  return Reader(model::JsonFields(object, name), target).read(name);
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
  for (std::uint32_t i = 0; (i == 0 || is_there(i)) && i < kMaxHeads; ++i) {
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

std::vector<MedusaHead> load_medusa_heads(backend::Ops& ops, const model::Config& target,
                                          const model::ModelFiles& files, backend::Quantize quantize) {
  const MedusaConfig config = read_config(files, target);
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
