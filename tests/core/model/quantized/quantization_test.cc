// Settings of quantization_config: methods and packings that are read, and those that are refused by name.
#include "core/model/quantized/quantization.h"

#include <gmock/gmock.h>

#include <boost/json/object.hpp>
#include <string>

#include "core/base/start_error.h"
#include "core/model/source/json_fields.h"
#include "tests/support/temporary_folder.h"

namespace quire::model::quantization_test {
namespace {

using ::testing::HasSubstr;
using Method = Quantization::Method;

std::optional<Quantization> read(const std::string& settings) {
  const boost::json::object object = parse_object("{\"quantization_config\": " + settings + "}", "config.json");
  return read_quantization(JsonFields(object, "config.json"));
}

std::string refusal(const std::string& settings) {
  try {
    read(settings);
  } catch (const StartError& error) {
    return error.what();
  }
  return {};
}

TEST(Quantization, KnowsTheMethodsOfPublishedConfigs) {
  EXPECT_EQ(read(R"({"quant_method": "gptq", "bits": 4, "group_size": 128})")->method, Method::kGptq);
  EXPECT_EQ(read(R"({"quant_method": "awq", "version": "GEMM"})")->method, Method::kAwq);
  EXPECT_EQ(read(R"({"quant_method": "auto-round", "packing_format": "auto_round:auto_awq"})")->method, Method::kAwq);
  EXPECT_EQ(read(R"({"quant_method": "intel/auto-round"})")->method, Method::kGptq);
  EXPECT_EQ(read(R"({"quant_method": "auto-round", "backend": "auto_round:awq"})")->method, Method::kAwq);
  EXPECT_EQ(read(R"({"quant_method": "auto-round", "backend": "auto_round:marlin", "sym": true})")->method,
            Method::kGptq);
  EXPECT_EQ(read(R"({"quant_method": "compressed-tensors", "config_groups": {}})")->method, Method::kCompressedTensors);
  EXPECT_EQ(read(R"({"config_groups": {"group_0": {"targets": ["Linear"], "weights": null}}})")->method,
            Method::kCompressedTensors);
  EXPECT_EQ(read(R"({"quant_method": "fp8"})")->method, Method::kFp8);
  EXPECT_EQ(read(R"({"quant_method": "fp8", "fmt": "float8_e4m3fn", "weight_block_size": [128, 128]})")->group, 128u);
  EXPECT_EQ(read(R"({"quant_method": "auto-round", "packing_format": "auto_round:awq"})")->method, Method::kAwq);
  EXPECT_EQ(read(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})")->method, Method::kModelOpt);
  EXPECT_EQ(read(R"({"load_in_4bit": true})")->method, Method::kBitsandbytes);
  EXPECT_FALSE(read("null"));
}

TEST(Quantization, OfGptqKnowsWhatItsZerosAre) {
  EXPECT_TRUE(read(R"({"quant_method": "gptq"})")->zeros_less_one);
  EXPECT_TRUE(read(R"({"quant_method": "gptq", "checkpoint_format": "gptq"})")->zeros_less_one);
  EXPECT_FALSE(read(R"({"quant_method": "gptq", "checkpoint_format": "gptq_v2"})")->zeros_less_one);
  EXPECT_FALSE(read(R"({"quant_method": "gptq", "format": "gptq_v2"})")->zeros_less_one);
  EXPECT_TRUE(read(R"({"quant_method": "auto-round", "packing_format": "auto_round:auto_gptq"})")->zeros_less_one);
  EXPECT_TRUE(read(R"({"quant_method": "auto-round", "backend": "gptq:exllamav2"})")->zeros_less_one);
  EXPECT_FALSE(read(R"({"quant_method": "auto-round", "packing_format": "auto_round"})")->zeros_less_one);
  EXPECT_TRUE(read(R"({"quant_method": "gptq", "sym": true})")->is_symmetric);
  EXPECT_FALSE(read(R"({"quant_method": "gptq"})")->is_symmetric);
  EXPECT_EQ(read(R"({"quant_method": "gptq", "group_size": -1})")->group, 0u);
  EXPECT_EQ(read(R"({"quant_method": "gptq", "group_size": 64})")->group, 64u);
}

TEST(Quantization, KnowsTheSizesOfBlocksAndTheFormOfActivations) {
  const auto fp8 = read(R"({"quant_method": "fp8", "weight_block_size": [64, 256]})");
  EXPECT_EQ(fp8->block_outputs, 64u);
  EXPECT_EQ(fp8->block_inputs, 256u);
  EXPECT_EQ(fp8->activations, "in fp8");
  const auto group = [](const std::string& weights, const std::string& inputs) {
    return read(
        R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"], "weights": )" +
        weights + ", \"input_activations\": " + inputs + "}}}");
  };
  const auto blocks = group(R"({"num_bits": 8, "type": "float", "block_structure": [128, 32]})",
                            R"({"num_bits": 8, "type": "float", "dynamic": true})");
  EXPECT_EQ(blocks->block_inputs, 32u);
  EXPECT_EQ(blocks->activations, "in fp8");
  EXPECT_EQ(group("{\"block_structure\": \"128x128\"}", "{\"num_bits\": 8, \"type\": \"int\"}")->activations,
            "in 8 bits");
  EXPECT_EQ(group("{}", "null")->activations, "");
}

TEST(Quantization, RefusesWhatIsNotReadByName) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"quant_method": "hqq"})", "quantised by HQQ"},
      {R"({"quant_method": "aqlm"})", "quantised by AQLM"},
      {R"({"quant_method": "torchao"})", "torchao"},
      {R"({"quant_method": "eetq"})", "eetq"},
      {R"({"quant_method": "gptq", "checkpoint_format": "marlin"})",
       "'quantization_config.checkpoint_format' is marlin"},
      {R"({"quant_method": "awq", "version": "gemv"})", "'quantization_config.version' is gemv"},
      {R"({"quant_method": "auto-round", "packing_format": "auto_round:none"})",
       "'quantization_config.packing_format'"},
      {R"({"quant_method": "fp8", "fmt": "e5m2"})", "'quantization_config.fmt' is e5m2"},
      {R"({"quant_method": "fp8", "weight_block_size": [128]})", "'quantization_config.weight_block_size'"},
      {R"({"quant_method": "fp8", "weight_block_size": [0, 128]})", "'quantization_config.weight_block_size'"},
      {R"({"quant_method": "modelopt", "quant_algo": "INT4_AWQ"})", "'quantization_config.quant_algo' is INT4_AWQ"},
      {R"({"quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-24-bitmask"}})",
       "sparse matrices"},
      {R"({"quant_method": "compressed-tensors", "transform_config": {"config_groups": {"u": {"type": "hadamard"}}}})",
       "rotations of activations"},
      {R"({"quant_method": "auto-round", "backend": "auto_round:marlin"})",
       "backend' is auto_round:marlin; expected one of"},
      {R"({"quant_method": "auto-round", "rotation_config": {"block_size": 32}})", "rotations of activations"},
      {R"({"quant_method": 4})", "'quantization_config.quant_method' is 4"},
      {R"("gptq")", "'quantization_config' is \"gptq\""},
      {R"({"quant_method": "gptq", "group_size": "all"})", "'quantization_config.group_size'"},
  };
  for (const auto& [settings, text] : kCases) EXPECT_THAT(refusal(settings), HasSubstr(text)) << settings;
}

TEST(Quantization, IsFoundInTheFilesOfOlderPrograms) {
  const auto of = [](const std::string& name, const std::string& text) {
    const test::TemporaryFolder folder;
    folder.write("config.json", R"({"model_type": "llama"})");
    folder.write(name, text);
    return quantization_of(*ModelFiles::directory(folder.path()));
  };
  EXPECT_EQ(of("hf_quant_config.json", R"({"quantization": {"quant_algo": "FP8"}})")->method, Method::kModelOpt);
  EXPECT_EQ(of("quantize_config.json", R"({"bits": 4, "group_size": 32})")->group, 32u);
  EXPECT_EQ(of("quant_config.json", R"({"w_bit": 4})")->method, Method::kAwq);
  EXPECT_FALSE(of("other.json", "{}"));
  const auto inside = of("config.json", R"({"text_config": {"quantization_config": {"quant_method": "fp8"}}})");
  EXPECT_EQ(inside->method, Method::kFp8);
}

}  // namespace
}  // namespace quire::model::quantization_test
