#include "app/model/planned_checkpoint.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/quantized/quantization.h"
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

bool is_expert(const model::TensorEntry& entry) {
  return entry.role == Role::kExpertGateUp || entry.role == Role::kExpertDown;
}

// The format of a part's matrix by config.json's quantization_config; nothing: that of the others.
std::optional<Format> coded_format(const JsonFields& fields, const std::optional<model::Quantization>& quantization,
                                   const model::TensorEntry& entry, const TensorPart& part) {
  const bool is_linear = entry.kind == model::TensorEntry::Kind::kMatrix && entry.layer != model::TensorEntry::kTop &&
                         !model::is_router(entry.role) && part.shape.size() > 1;
  if (!quantization || !is_linear) return std::nullopt;
  if (quantization->method == model::Quantization::Method::kMxfp4) {
    if (!is_expert(entry)) return std::nullopt;
    if (part.inputs() % 32 == 0) return Format::of_blocks(BlockType::kMXFP4);
    fields.refuse("quantization_config", "is of MXFP4, whose blocks have 32 inputs: tensor '" + part.name + "' has " +
                                             std::to_string(part.inputs()));
  }
  const auto format = model::expected_format(*quantization, part.inputs());
  if (format) return format;
  fields.refuse("quantization_config", "does not say how tensor '" + part.name + "' is stored: download the model");
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
  const std::optional<model::Quantization> quantization = model::quantization_of(files);
  model::ModelSpec stored = spec;
  const bool in_mxfp4 = quantization && quantization->method == model::Quantization::Method::kMxfp4;
  if (in_mxfp4) stored.names.experts.layout = model::ExpertNames::Layout::kTogether;  // blocks lie along the inputs
  model::NamedTensors named{.tensors = {}, .files = {std::string(kConfig)}};
  for (const model::TensorEntry& entry : model::tensor_table(stored).entries) {
    for (const TensorPart& part : entry.parts) {
      named.tensors.push_back({part.name, dtype, part.shape, {}, named.files.front()});
      const auto coded = coded_format(fields, quantization, entry, part);
      if (coded) named.tensors.back().set_coded(*coded, nullptr);
    }
    for (const TensorPart& bias : entry.biases) {
      named.tensors.push_back({bias.name, dtype, bias.shape, {}, named.files.front()});
    }
  }
  return model::Checkpoint::of(files, std::move(named));
}

}  // namespace quire::app
