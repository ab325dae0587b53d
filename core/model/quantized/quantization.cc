#include "core/model/quantized/quantization.h"

#include <fmt/format.h>

#include <array>
#include <boost/json/object.hpp>
#include <string_view>
#include <utility>

#include "core/base/log.h"
#include "core/model/quantized/stored_format.h"
#include "core/model/source/other_formats.h"

namespace quire::model {
namespace {

using Method = Quantization::Method;

void read_gptq(const JsonFields& fields, Quantization& out) {
  std::string form = fields.optional_string("checkpoint_format").value_or("");
  if (form.empty()) form = fields.optional_string("format").value_or("gptq");
  if (form != "gptq" && form != "gptq_v2")
    fields.refuse("checkpoint_format", "is " + log_safe(form) + "; expected gptq or gptq_v2");
  out.method = Method::kGptq;
  out.zeros_less_one = form == "gptq";
  out.is_symmetric = fields.optional_bool("sym").value_or(false);
  out.bits = fields.optional_uint("bits", 1, 64).value_or(4);
  if (!fields.is_null("group_size") && fields.has("group_size")) {
    const auto number = fields.optional_number("group_size", -1, 1 << 22);
    out.group = number && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
  }
}

void read_awq(const JsonFields& fields, Quantization& out) {
  std::string version = fields.optional_string("version").value_or("gemm");
  for (char& c : version) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  if (version != "gemm") fields.refuse("version", "is " + log_safe(version) + "; expected gemm");
  out.method = Method::kAwq;
  out.bits = 4;
  out.group = fields.optional_uint("group_size", 1, 1 << 22).value_or(128);
}

// Older versions named the kernel that they ran: of GPTQ's or of AWQ's tensors.
std::string packing_of_auto_round(const JsonFields& fields) {
  if (const auto packing = fields.optional_string("packing_format")) return *packing;
  const std::string backend = fields.optional_string("backend").value_or("gptq");
  if (backend.find("awq") != std::string::npos) return "auto_round:auto_awq";
  const bool is_symmetric = fields.optional_bool("sym").value_or(false);  // zeros are the same in every packing
  if (!is_symmetric && backend.find("gptq") == std::string::npos) {
    fields.refuse("backend", "is " + log_safe(backend) + "; expected one of GPTQ or AWQ, or packing_format");
  }
  return "auto_round:auto_gptq";
}

// AutoRound writes the tensors of GPTQ, AWQ or compressed-tensors.
void read_auto_round(const JsonFields& fields, Quantization& out) {
  for (const char* key : {"rotation_config", "spinquant_config"}) {
    const auto rotation = fields.optional_object(key);
    if (rotation && !rotation->keys().empty())
      fields.refuse(key, "has rotations of activations, which are not applied here");
  }
  const std::string packing = packing_of_auto_round(fields);
  if (packing == "auto_round:auto_awq" || packing == "auto_round:awq") {
    out.method = Method::kAwq;
    out.bits = 4;
    out.group = fields.optional_uint("group_size", 1, 1 << 22).value_or(128);
  } else if (packing == "auto_round:auto_gptq" || packing == "auto_round:gptq" || packing == "auto_round:gptqmodel" ||
             packing == "auto_round") {
    read_gptq(fields, out);
    out.zeros_less_one = packing == "auto_round:auto_gptq" || packing == "auto_round:gptq";
  } else if (packing == "auto_round:llm_compressor") {
    out.method = Method::kCompressedTensors;
    out.bits = fields.optional_uint("bits", 1, 64).value_or(4);
    out.group = fields.optional_uint("group_size", 1, 1 << 22).value_or(128);
    out.is_symmetric = fields.optional_bool("sym").value_or(true);
  } else {
    fields.refuse(
        "packing_format",
        "is " + log_safe(packing) +
            "; expected auto_round:auto_gptq, auto_round:gptqmodel, auto_round:auto_awq or auto_round:llm_compressor");
  }
}

// "in 8 bits", "in fp8"
std::string form_of(const JsonFields& fields) {
  const std::uint64_t bits = fields.optional_uint("num_bits", 1, 64).value_or(16);
  if (bits >= 16) return {};
  return fields.optional_string("type") == "float" ? fmt::format("in fp{}", bits) : fmt::format("in {} bits", bits);
}

bool takes_int8_rows(const JsonFields& inputs) {
  return inputs.optional_uint("num_bits", 1, 64) == 8u && inputs.optional_string("type").value_or("int") == "int" &&
         inputs.optional_string("strategy") == "token" && inputs.optional_bool("symmetric").value_or(true);
}

// Takes those of the first group that has them.
void read_weights(const JsonFields& weights, Quantization& out) {
  if (out.bits != 0) return;
  out.bits = weights.optional_uint("num_bits", 1, 64).value_or(0);
  out.in_floats = weights.optional_string("type") == "float";
  out.is_symmetric = weights.optional_bool("symmetric").value_or(true);
  const auto group = weights.optional_number("group_size", -1, 1 << 22);
  out.group = group && *group > 0 ? static_cast<std::uint64_t>(*group) : 0;
  if (weights.optional_string("strategy") == "block") out.group = out.block_inputs;
}

void read_kv_scheme(const JsonFields& fields, Quantization& out) {
  const auto scheme = fields.optional_object("kv_cache_scheme");
  if (!scheme) return;
  out.kv_in_fp8 =
      scheme->optional_string("type") == "float" && scheme->optional_uint("num_bits", 1, 64).value_or(8) == 8;
}

void read_compressed_tensors(const JsonFields& fields, Quantization& out) {
  out.method = Method::kCompressedTensors;
  if (const auto rotations = fields.optional_object("transform_config")) {
    if (const auto groups = rotations->optional_object("config_groups"); groups && !groups->keys().empty()) {
      rotations->refuse("config_groups",
                        "has rotations of activations, which are not applied here: take a checkpoint without them");
    }
  }
  if (const auto sparsity = fields.optional_object("sparsity_config")) {
    const std::string form = sparsity->optional_string("format").value_or("dense");
    if (form != "dense") sparsity->refuse("format", "is " + log_safe(form) + ": sparse matrices are not read");
  }
  read_kv_scheme(fields, out);
  const auto groups = fields.optional_object("config_groups");
  for (const std::string& name : groups ? groups->keys() : std::vector<std::string>()) {
    const auto group = groups->optional_object(name);
    if (const auto weights = group->optional_object("weights")) {
      read_weights(*weights, out);
      const bool is_list = weights->is_array("block_structure");  // or text: "128x128"
      const auto block = is_list ? weights->uint_or_list("block_structure", 1u << 20) : std::vector<std::uint64_t>();
      if (block.size() == 2 && block[0] > 0 && block[1] > 0) out.block_outputs = block[0], out.block_inputs = block[1];
    }
    const auto inputs = group->optional_object("input_activations");
    if (inputs && out.activations.empty()) out.activations = form_of(*inputs);
    if (inputs && takes_int8_rows(*inputs)) out.int8_rows = true;
  }
}

void read_fp8(const JsonFields& fields, Quantization& out) {
  out.method = Method::kFp8;
  if (const auto form = fields.optional_string("fmt");
      form && *form != "e4m3" && *form != "e4m3fn" && *form != "float8_e4m3fn") {
    fields.refuse("fmt", "is " + log_safe(*form) + "; expected e4m3");
  }
  const std::vector<std::uint64_t> block = fields.uint_or_list("weight_block_size", 1u << 20);
  if (!block.empty()) {
    if (block.size() != 2 || block[0] == 0 || block[1] == 0)
      fields.mismatch("weight_block_size", "expected two sizes: of outputs and of inputs");
    out.block_outputs = block[0];
    out.block_inputs = block[1];
  }
  out.activations = "in fp8";
  out.bits = 8;
  out.in_floats = true;
  out.group = block.empty() ? 0 : out.block_inputs;
}

void read_modelopt(const JsonFields& fields, Quantization& out) {
  out.method = Method::kModelOpt;
  read_kv_scheme(fields, out);
  if (fields.optional_string("kv_cache_quant_algo") == "FP8") out.kv_in_fp8 = true;
  const auto algorithm = fields.optional_string("quant_algo");
  if (!algorithm) return;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kAlgorithms = {
      {{"FP8", "in fp8"},
       {"FP8_PER_CHANNEL_PER_TOKEN", "in fp8"},
       {"FP8_PB_WO", ""},
       {"NVFP4", "in fp4"},
       {"W4A16_NVFP4", ""},
       {"MXFP8", "in fp8"},
       {"MIXED_PRECISION", "in fp8 or fp4"}}};
  for (const auto& [name, activations] : kAlgorithms) {
    if (*algorithm != name) continue;
    out.activations = activations;
    out.bits = name.ends_with("NVFP4") ? 4 : name == "MIXED_PRECISION" ? 0 : 8;
    out.in_floats = true;
    out.group = out.bits == 4 ? 16 : name == "MXFP8" ? 32 : name == "FP8_PB_WO" ? 128 : 0;
    return;
  }
  fields.refuse(
      "quant_algo",
      "is " + log_safe(*algorithm) +
          "; expected FP8, FP8_PER_CHANNEL_PER_TOKEN, FP8_PB_WO, NVFP4, W4A16_NVFP4, MXFP8 or MIXED_PRECISION");
}

void read_bitsandbytes(const JsonFields& fields, Quantization& out) {
  out.method = Method::kBitsandbytes;
  const bool is_8 = fields.optional_bool("load_in_8bit").value_or(false);
  if (is_8) out.activations = "in 8 bits";
  out.bits = is_8 ? 8 : 4;
  out.in_floats = !is_8;
  out.is_symmetric = true;
  out.group = is_8 ? 0 : 64;
}

void read_mxfp4(const JsonFields&, Quantization& out) { out.method = Method::kMxfp4; }

using Read = void (*)(const JsonFields& fields, Quantization& out);
constexpr std::pair<std::string_view, Read> kMethods[] = {
    {"gptq", read_gptq},
    {"awq", read_awq},
    {"auto-round", read_auto_round},
    {"intel/auto-round", read_auto_round},
    {"compressed-tensors", read_compressed_tensors},
    {"fp8", read_fp8},
    {"fbgemm_fp8", read_fp8},
    {"modelopt", read_modelopt},
    {"modelopt_fp4", read_modelopt},
    {"bitsandbytes", read_bitsandbytes},
    {"mxfp4", read_mxfp4},
};

// Nothing: the method is not read.
std::optional<Quantization> read_method(const JsonFields& fields, std::string_view method) {
  for (const auto& [name, read] : kMethods) {
    if (name != method) continue;
    Quantization out;
    read(fields, out);
    return out;
  }
  return std::nullopt;
}

// A quantization_config without a quant_method.
std::string method_of(const JsonFields& made) {
  if (const auto given = made.optional_string("quant_method")) return *given;
  const bool is_bitsandbytes =
      made.optional_bool("load_in_4bit").value_or(false) || made.optional_bool("load_in_8bit").value_or(false);
  if (is_bitsandbytes) return "bitsandbytes";
  return made.has("config_groups") ? "compressed-tensors" : made.has("quant_algo") ? "modelopt" : "";
}

}  // namespace

std::optional<Quantization> read_quantization(const JsonFields& config) {
  if (const auto mlx = config.optional_object("quantization")) {
    const std::uint64_t bits = mlx->optional_uint("bits", 0, 64).value_or(0);
    config.refuse("quantization", "is set: " + explain_quantization("mlx", bits));
  }
  for (const char* key : {"quantization_config", "compression_config"}) {
    const auto made = config.optional_object(key);
    if (!made) continue;
    const std::string method = method_of(*made);
    if (auto read = read_method(*made, method)) return read;
    config.refuse(key, "is set: " + explain_quantization(method, made->optional_uint("bits", 0, 64).value_or(0)));
  }
  return std::nullopt;
}

std::optional<Quantization> quantization_of(const ModelFiles& files) {
  const auto object_of = [&](const char* name) -> std::optional<boost::json::object> {
    const auto bytes = files.find(name);
    if (!bytes) return std::nullopt;
    return parse_object({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, files.describe(name));
  };
  if (const auto config = object_of("config.json")) {
    const JsonFields fields(*config, files.describe("config.json"));
    if (auto found = read_quantization(fields)) return found;
    if (const auto text = fields.optional_object("text_config")) {
      if (auto found = read_quantization(*text)) return found;
    }
  }
  if (const auto config = object_of("hf_quant_config.json")) {
    const JsonFields fields(*config, files.describe("hf_quant_config.json"));
    if (const auto made = fields.optional_object("quantization")) return read_method(*made, "modelopt");
  }
  for (const auto& [name, method] :
       {std::pair("quantize_config.json", "gptq"), std::pair("quant_config.json", "awq")}) {
    if (const auto config = object_of(name)) return read_method(JsonFields(*config, files.describe(name)), method);
  }
  return std::nullopt;
}

std::optional<backend::Format> expected_format(const Quantization& quantization, std::uint64_t inputs) {
  using backend::BlockType;
  using backend::Format;
  const std::uint64_t bits = quantization.bits;
  const std::uint64_t group = quantization.group >= inputs ? 0 : quantization.group;
  if (!quantization.in_floats) return int_format(bits, !quantization.is_symmetric, group, inputs);
  if (bits == 8) return group == 0 ? Format::kFp8 : grouped_format(BlockType::kFp8G32, group, inputs);
  if (quantization.method == Method::kBitsandbytes)
    return grouped_format(BlockType::kNf4G32, quantization.group, inputs);
  if (bits != 4) return std::nullopt;
  const BlockType type = quantization.group == 16 ? BlockType::kNVFP4 : BlockType::kMXFP4;
  return inputs % backend::layout_of(type).elements == 0 ? std::optional(Format::of_blocks(type)) : std::nullopt;
}

}  // namespace quire::model
