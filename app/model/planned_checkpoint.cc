#include "app/model/planned_checkpoint.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/source/json_fields.h"
#include "core/model/tensor_table.h"

namespace quire::app {
namespace {

using backend::BlockType;
using backend::Format;
using model::JsonFields;
using model::Role;
using model::TensorPart;

constexpr std::string_view kConfig = "config.json";

// Of a wrapper, or of its text model.
std::string dtype_of(const JsonFields& fields) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"bfloat16", "BF16"}, {"float16", "F16"}, {"float32", "F32"}};
  for (const std::string_view key : {"dtype", "torch_dtype"}) {
    const auto given = fields.optional_string(key);
    if (!given) continue;
    for (const auto& [name, dtype] : kNames) {
      if (*given == name) return std::string(dtype);
    }
    fields.mismatch(key, "expected bfloat16, float16 or float32");
  }
  const auto text = fields.optional_object("text_config");
  return text ? dtype_of(*text) : "BF16";
}

bool is_in_mxfp4(const JsonFields& fields) {
  const auto quantization = fields.optional_object("quantization_config");
  return quantization && quantization->optional_string("quant_method") == "mxfp4";
}

// Blocks of MXFP4 have 32 inputs.
void check_blocks(const JsonFields& fields, const TensorPart& part) {
  if (part.inputs() % 32 == 0) return;
  fields.refuse("quantization_config", "is of MXFP4, whose blocks have 32 inputs: tensor '" + part.name + "' has " +
                                           std::to_string(part.inputs()));
}

}  // namespace

bool has_weights(const model::ModelFiles& files) {
  constexpr std::string_view kSingle = "model.safetensors";
  return files.tensors() || files.find(kSingle) || files.find("model.safetensors.index.json") ||
         !files.explain_missing(kSingle).empty();
}

model::Checkpoint planned_checkpoint(const model::ModelSpec& spec, const model::ModelFiles& files) {
  const model::FileBytes bytes = files.require(kConfig);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const boost::json::object object = model::parse_object(text, files.describe(kConfig));
  const JsonFields fields(object, files.describe(kConfig));
  const std::string dtype = dtype_of(fields);
  const bool in_mxfp4 = is_in_mxfp4(fields);
  model::ModelSpec stored = spec;
  if (in_mxfp4) stored.names.experts.layout = model::ExpertNames::Layout::kTogether;  // blocks lie along the inputs
  model::NamedTensors named{.tensors = {}, .files = {std::string(kConfig)}};
  for (const model::TensorEntry& entry : model::tensor_table(stored).entries) {
    const bool is_expert = entry.role == Role::kExpertGateUp || entry.role == Role::kExpertDown;
    for (const TensorPart& part : entry.parts) {
      if (in_mxfp4 && is_expert) check_blocks(fields, part);
      named.tensors.push_back({part.name, dtype, part.shape, {}, named.files.front()});
      if (in_mxfp4 && is_expert) named.tensors.back().set_coded(Format::of_blocks(BlockType::kMXFP4), nullptr);
    }
    for (const TensorPart& bias : entry.biases) {
      named.tensors.push_back({bias.name, dtype, bias.shape, {}, named.files.front()});
    }
  }
  return model::Checkpoint::of(files, std::move(named));
}

}  // namespace quire::app
