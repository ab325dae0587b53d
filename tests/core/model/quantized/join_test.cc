// Tensors of quantised matrices: joined whatever program wrote them, and refused by name if they do not fit.
// tests/golden/test_quantised_checkpoints.py compares their numbers with those programs.
#include "core/model/quantized/join.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/base/start_error.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/tensor_rows.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::join_test {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;
using testing::TestTensor;
using Tensors = std::vector<TestTensor>;

constexpr const char* kGptq = R"({"quant_method": "gptq", "group_size": 32})";
constexpr const char* kSymmetric = R"({"quant_method": "gptq", "group_size": 32, "sym": true})";
constexpr const char* kAwq = R"({"quant_method": "awq"})";
constexpr const char* kCompressed = R"({"quant_method": "compressed-tensors"})";
constexpr const char* kFp8 = R"({"quant_method": "fp8"})";
constexpr const char* kModelOpt = R"({"quant_method": "modelopt"})";
constexpr const char* kBitsandbytes = R"({"quant_method": "bitsandbytes", "load_in_4bit": true})";

TestTensor filled(const std::string& end, const std::string& dtype, const std::vector<std::uint64_t>& shape,
                  std::uint8_t byte = 0x11) {
  std::size_t bytes = dtype == "I64"                      ? 8
                      : dtype == "I32" || dtype == "F32"  ? 4
                      : dtype == "F16" || dtype == "BF16" ? 2
                                                          : 1;
  for (const std::uint64_t extent : shape) bytes *= extent;
  return {"model.m." + end, dtype, shape, std::string(bytes, static_cast<char>(byte))};
}

template <typename Number>
TestTensor numbers(const std::string& end, const std::string& dtype, const std::vector<std::uint64_t>& shape,
                   const std::vector<Number>& values) {
  std::string data(values.size() * sizeof(Number), '\0');
  std::memcpy(data.data(), values.data(), data.size());
  return {"model.m." + end, dtype, shape, data};
}

std::vector<float> read(const std::string& settings, const Tensors& tensors,
                        const std::string& name = "model.m.weight") {
  const TempDir dir;
  dir.write("config.json", "{\"quantization_config\": " + settings + "}");
  dir.write("model.safetensors", testing::safetensors_file(tensors));
  const auto files = ModelFiles::directory(dir.path());
  const Checkpoint checkpoint = open_decoder(*files);
  const Tensor* tensor = checkpoint.find(name);
  if (tensor == nullptr) throw StartError("not joined");
  if (!tensor->unread.empty()) throw StartError(tensor->unread);
  EXPECT_EQ(checkpoint.tensors().size(), 1u) << "its parts are left";
  const TensorRows rows(*tensor, {.name = name, .shape = tensor->shape}, TensorEntry::Kind::kMatrix, true);
  std::vector<float> out(rows.bytes().size() / sizeof(float));
  std::memcpy(out.data(), rows.bytes().data(), rows.bytes().size());
  return out;
}

std::string refusal(const std::string& settings, const Tensors& tensors) {
  try {
    read(settings, tensors);
  } catch (const StartError& error) {
    return error.what();
  }
  return {};
}

// [16, 64] in groups of 32.
Tensors gptq() {
  return {filled("qweight", "I32", {8, 16}), filled("qzeros", "I32", {2, 2}), filled("scales", "F16", {2, 16}, 0x38)};
}
Tensors awq() {
  return {filled("qweight", "I32", {64, 2}), filled("qzeros", "I32", {2, 2}), filled("scales", "F16", {2, 16}, 0x38)};
}
Tensors packed() {
  return {filled("weight_packed", "I32", {16, 8}), filled("weight_scale", "BF16", {16, 2}, 0x3c),
          numbers<std::int64_t>("weight_shape", "I64", {2}, {16, 64})};
}
Tensors fp8() {
  return {filled("weight", "F8_E4M3", {16, 64}), numbers<float>("weight_scale_inv", "F32", {1, 1}, {0.5f})};
}
Tensors nvfp4() {
  return {filled("weight", "U8", {16, 32}), filled("weight_scale", "F8_E4M3", {16, 4}, 0x38),
          numbers<float>("weight_scale_2", "F32", {}, {0.25f})};
}
Tensors mxfp4() { return {filled("weight_packed", "U8", {16, 32}), filled("weight_scale", "U8", {16, 2}, 127)}; }
Tensors nf4() {
  const std::string state = R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [16, 64]})";
  return {filled("weight", "U8", {512, 1}),
          numbers<float>("weight.absmax", "F32", {16}, std::vector<float>(16, 2.0f)),
          numbers<float>("weight.quant_map", "F32", {16}, {backend::kNf4Values.begin(), backend::kNf4Values.end()}),
          {"model.m.weight.quant_state.bitsandbytes__nf4", "U8", {state.size()}, state}};
}
Tensors bytes() {
  return {filled("weight", "I8", {16, 64}),
          numbers<float>("weight_scale", "F32", {16, 1}, std::vector<float>(16, 0.5f))};
}

TEST(JoinQuantized, ReadsOneMatrixOfEachKind) {
  const std::pair<const char*, Tensors> kKinds[] = {
      {kGptq, gptq()},      {kAwq, awq()},          {kCompressed, packed()}, {kFp8, fp8()},
      {kModelOpt, nvfp4()}, {kCompressed, mxfp4()}, {kBitsandbytes, nf4()},  {kCompressed, bytes()}};
  for (const auto& [settings, tensors] : kKinds) {
    EXPECT_EQ(refusal(settings, tensors), "") << settings;
    EXPECT_EQ(read(settings, tensors).size(), 16u * 64) << settings;
  }
}

TEST(JoinQuantized, LeavesOutWhatOnlyActivationsNeed) {
  Tensors tensors = fp8();
  for (const char* name : {"input_scale", "q_scale", "output_scale", "input_global_scale", "activation_scale"}) {
    tensors.push_back(numbers<float>(name, "F32", {}, {1.0f}));
  }
  EXPECT_EQ(refusal(kFp8, tensors), "");
}

// Experts of one layer in one tensor, as transformers stores those of families that it does not convert.
TEST(JoinQuantized, ReadsOneOfSeveralMatricesInFp8) {
  std::vector<float> scales;
  for (int i = 0; i < 3 * 2 * 2; ++i) scales.push_back(static_cast<float>(i + 1));
  const Tensors tensors = {{"model.m.down_proj", "F8_E4M3", {3, 130, 192}, std::string(3 * 130 * 192, 0x38)},
                           numbers<float>("down_proj_scale_inv", "F32", {3, 2, 2}, scales),
                           numbers<float>("down_proj_activation_scale", "F32", {3}, {1, 1, 1})};
  const TempDir dir;
  dir.write("config.json", std::string("{\"quantization_config\": ") + kFp8 + "}");
  dir.write("model.safetensors", testing::safetensors_file(tensors));
  const auto files = ModelFiles::directory(dir.path());
  const Checkpoint checkpoint = open_decoder(*files);
  EXPECT_EQ(checkpoint.tensors().size(), 1u);
  const Tensor& tensor = *checkpoint.find("model.m.down_proj");
  TensorPart part{.name = tensor.name, .shape = tensor.shape};
  // The matrix of the file, or its columns as rows: all of them, or those from the 100th on.
  struct Case {
    bool transposed;
    std::uint64_t first_row, rows;
  };
  for (const Case& c : {Case{false, 0, 130}, {false, 100, 30}, {true, 0, 192}, {true, 100, 92}}) {
    part.transposed = c.transposed;
    part.first_row = c.first_row;
    part.rows = c.rows;
    const std::size_t inputs = c.transposed ? 130 : 192;
    for (part.matrix = 0; part.matrix < 3; ++part.matrix) {
      const TensorRows rows(tensor, part, TensorEntry::Kind::kMatrix, true);
      const auto* values = reinterpret_cast<const float*>(rows.bytes().data());
      ASSERT_EQ(rows.bytes().size(), c.rows * inputs * sizeof(float));
      for (std::size_t i = 0; i < c.rows * inputs; ++i) {
        const std::size_t row = c.first_row + i / inputs;
        const std::size_t n = c.transposed ? i % inputs : row;
        const std::size_t k = c.transposed ? row : i % inputs;
        ASSERT_EQ(values[i], scales[part.matrix * 4 + n / 128 * 2 + k / 128]) << part.matrix << " " << n << " " << k;
      }
    }
  }
}

// ModelOpt's blocks of 128 x 128 have four extents.
TEST(JoinQuantized, ReadsOneScaleForEachExpertAndScalesOfFourExtents) {
  Tensors tensors = {filled("weight", "F8_E4M3", {130, 192}, 0x38),
                     numbers<float>("weight_scale", "F32", {2, 1, 2, 1}, {1, 2, 3, 4})};
  const std::vector<float> values = read(kModelOpt, tensors);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[129 * 192 + 191], 4.0f);
  for (const std::vector<std::uint64_t>& shape : {std::vector<std::uint64_t>{2}, {2, 1}, {2, 1, 1}}) {
    const TempDir dir;
    dir.write("config.json", std::string("{\"quantization_config\": ") + kFp8 + "}");
    dir.write("model.safetensors",
              testing::safetensors_file({{"model.m.up_proj", "F8_E4M3", {2, 16, 64}, std::string(2 * 16 * 64, 0x38)},
                                         numbers<float>("up_proj_scale_inv", "F32", shape, {3, 5})}));
    const auto files = ModelFiles::directory(dir.path());
    const Checkpoint checkpoint = open_decoder(*files);
    const Tensor& tensor = *checkpoint.find("model.m.up_proj");
    ASSERT_EQ(tensor.unread, "");
    TensorPart part{.name = tensor.name, .shape = tensor.shape};
    part.matrix = 1;
    const TensorRows rows(tensor, part, TensorEntry::Kind::kMatrix, true);
    EXPECT_EQ(*reinterpret_cast<const float*>(rows.bytes().data()), 5.0f);
  }
}

// Parts of a model that are not served may be quantised in a way that is not read.
TEST(JoinQuantized, AMatrixThatCannotBeReadIsNoHindranceUntilItIsAskedFor) {
  Tensors tensors = gptq();
  for (TestTensor part : fp8()) {
    part.name = "model.vision_tower." + part.name;
    if (part.dtype == "F32") part.shape = {3, 5}, part.data = std::string(60, '\1');
    tensors.push_back(part);
  }
  const TempDir dir;
  dir.write("config.json", std::string("{\"quantization_config\": ") + kGptq + "}");
  dir.write("model.safetensors", testing::safetensors_file(tensors));
  const auto files = ModelFiles::directory(dir.path());
  const Checkpoint checkpoint = open_decoder(*files);
  EXPECT_EQ(checkpoint.find("model.m.weight")->unread, "");
  EXPECT_THAT(checkpoint.find("model.vision_tower.model.m.weight")->unread, HasSubstr("has shape [3, 5]"));
}

TEST(JoinQuantized, NamesAPartThatIsMissing) {
  const auto without = [](Tensors tensors, std::size_t part) {
    tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(part));
    return tensors;
  };
  EXPECT_THAT(refusal(kGptq, without(gptq(), 1)), HasSubstr("'model.m.qweight' has no 'model.m.qzeros' beside it"));
  EXPECT_THAT(refusal(kAwq, without(awq(), 2)), HasSubstr("has no 'model.m.scales' beside it"));
  EXPECT_THAT(refusal(kCompressed, without(packed(), 1)), HasSubstr("has no 'model.m.weight_scale' beside it"));
  EXPECT_THAT(refusal(kCompressed, without(packed(), 2)), HasSubstr("has no 'model.m.weight_shape' beside it"));
  EXPECT_THAT(refusal(kFp8, without(fp8(), 1)), HasSubstr("'weight_scale' or 'weight_scale_inv'"));
  EXPECT_THAT(refusal(kBitsandbytes, without(nf4(), 2)), HasSubstr("has no 'model.m.weight.quant_map' beside it"));
  EXPECT_THAT(refusal(kBitsandbytes, without(nf4(), 3)), HasSubstr("has no quant_state"));
}

TEST(JoinQuantized, NamesAPartOfAnotherShapeOrType) {
  const auto with = [](Tensors tensors, std::size_t part, TestTensor other) {
    tensors[part] = std::move(other);
    return tensors;
  };
  const std::tuple<const char*, Tensors, const char*> kCases[] = {
      {kGptq, with(gptq(), 0, filled("qweight", "I32", {7, 16})),
       "'model.m.qweight' has 56 inputs; expected a multiple of 32"},
      {kGptq, with(gptq(), 0, filled("qweight", "F32", {8, 16})), "'model.m.qweight' has dtype F32; expected I32"},
      {kGptq, with(gptq(), 0, filled("qweight", "I32", {8, 15})),
       "'model.m.qweight' has shape [8, 15]; expected [8, 16]"},
      {kGptq, with(gptq(), 0, filled("qweight", "I32", {128})), "is no matrix"},
      {kGptq, with(gptq(), 1, filled("qzeros", "I32", {2, 3})), "'model.m.qzeros' has shape [2, 3]"},
      {kGptq, with(gptq(), 1, filled("qzeros", "I32", {1, 2})), "'model.m.qzeros' has shape [1, 2]; expected [2, 2]"},
      {kGptq, with(gptq(), 2, filled("scales", "I32", {2, 16})), "'model.m.scales' has dtype I32; expected"},
      {kGptq, with(gptq(), 2, filled("scales", "F16", {0, 16})), "'model.m.scales' is empty"},
      {kAwq, with(awq(), 0, filled("qweight", "I32", {64, 3})),
       "'model.m.qweight' has shape [64, 3]; expected [64, 2]"},
      {kCompressed, with(packed(), 0, filled("weight_packed", "I32", {16, 7})),
       "'model.m.weight_packed' has shape [16, 7]"},
      {kCompressed, with(packed(), 0, filled("weight_packed", "I32", {16, 20})), "10 bits in each; expected 2 to 8"},
      {kCompressed, with(packed(), 2, numbers<std::int64_t>("weight_shape", "I64", {2}, {16, -64})),
       "of a matrix [16,"},
      {kCompressed, with(packed(), 2, numbers<std::int64_t>("weight_shape", "I64", {2}, {0, 64})),
       "of a matrix [0, 64]"},
      {kCompressed, with(packed(), 2, numbers<std::int64_t>("weight_shape", "I64", {1}, {16})), "expected I64 [2]"},
      {kCompressed, with(packed(), 1, filled("weight_scale", "BF16", {16, 3})),
       "groups of 22 inputs; expected a multiple of 32"},
      {kCompressed, with(packed(), 1, filled("weight_scale", "BF16", {15, 2})),
       "'model.m.weight_scale' has shape [15, 2]"},
      {kFp8, with(fp8(), 1, filled("weight_scale_inv", "F32", {3, 5})), "'model.m.weight_scale_inv' has shape [3, 5]"},
      {kFp8, with(fp8(), 1, filled("weight_scale_inv", "I32", {1, 1})), "'model.m.weight_scale_inv' has dtype I32"},
      {kFp8, with(fp8(), 0, filled("weight", "F8_E4M3", {2, 16, 32})), "expected scales of 2 matrices"},
      {kFp8, with(fp8(), 0, filled("weight", "F8_E4M3", {1024})), "expected a matrix [outputs, inputs]"},
      {kModelOpt, with(nvfp4(), 0, filled("weight", "U8", {16, 24})), "48 inputs; expected a multiple of 64"},
      {kModelOpt, with(nvfp4(), 1, filled("weight_scale", "F8_E4M3", {16, 3})),
       "'model.m.weight_scale' has shape [16, 3]"},
      {kModelOpt, with(nvfp4(), 1, filled("weight_scale", "F8_E4M3", {16, 4}, 0x7f)), "negative or not a number"},
      {kModelOpt, with(nvfp4(), 1, filled("weight_scale", "F8_E4M3", {16, 4}, 0x88)), "negative or not a number"},
      {kModelOpt, with(nvfp4(), 2, numbers<float>("weight_scale_2", "F32", {2}, {1, 1})), "expected one number"},
      {kModelOpt, with(nvfp4(), 2, numbers<float>("weight_scale_2", "F32", {}, {NAN})), "not a finite number"},
      {kCompressed, with(mxfp4(), 0, filled("weight_packed", "U8", {16, 31})),
       "'model.m.weight_packed' has shape [16, 31]"},
      {kCompressed, with(mxfp4(), 1, filled("weight_scale", "U8", {16, 2}, 255)), "not a number"},
      {kBitsandbytes, with(nf4(), 0, filled("weight", "U8", {511, 1})), "511 bytes; expected 512 bytes"},
      {kBitsandbytes, with(nf4(), 1, filled("weight.absmax", "F32", {15})), "'model.m.weight.absmax' has shape [15]"},
      {kBitsandbytes, with(nf4(), 2, filled("weight.quant_map", "F32", {16}, 0)), "neither NF4's table nor FP4's"},
      {kBitsandbytes, with(nf4(), 3, {"model.m.weight.quant_state.bitsandbytes__nf4", "U8", {2}, "{}"}), "'shape'"},
      {kBitsandbytes, with(nf4(), 3, {"model.m.weight.quant_state.bitsandbytes__nf4", "U8", {1}, "{"}), "quant_state"},
      {kCompressed, with(bytes(), 1, filled("weight_scale", "F32", {15, 1})),
       "'model.m.weight_scale' has shape [15, 1]"},
  };
  for (const auto& [settings, tensors, text] : kCases) EXPECT_THAT(refusal(settings, tensors), HasSubstr(text)) << text;
}

TEST(JoinQuantized, RefusesMatricesWithoutNumbers) {
  const std::pair<const char*, Tensors> kCases[] = {
      {kGptq,
       {filled("qweight", "I32", {0, 16}), filled("qzeros", "I32", {1, 2}), filled("scales", "F16", {1, 16}, 0x38)}},
      {kFp8, {filled("weight", "F8_E4M3", {16, 0}), filled("weight_scale_inv", "F32", {16, 5})}},
      {kFp8, {filled("weight", "F8_E4M3", {0, 16}), numbers<float>("weight_scale_inv", "F32", {1, 1}, {1})}},
      {kModelOpt,
       {filled("weight", "U8", {16, 0}), filled("weight_scale", "F8_E4M3", {16, 0}),
        numbers<float>("weight_scale_2", "F32", {}, {1})}},
      {kCompressed, {filled("weight_packed", "U8", {0, 16}), filled("weight_scale", "U8", {0, 1})}},
      {kCompressed, {filled("weight", "I8", {0, 0}), filled("weight_scale", "F32", {0, 1})}},
  };
  for (const auto& [settings, tensors] : kCases) {
    EXPECT_THAT(refusal(settings, tensors), HasSubstr("no numbers in it"))
        << tensors.front().name << tensors.front().dtype;
  }
}

TEST(JoinQuantized, NamesAScaleThatIsNotFinite) {
  for (const float bad : {NAN, INFINITY}) {
    Tensors tensors = bytes();
    tensors[1] = numbers<float>("weight_scale", "F32", {16, 1}, std::vector<float>(16, bad));
    EXPECT_THAT(refusal(kCompressed, tensors),
                HasSubstr("'model.m.weight_scale' has a scale that is not a finite number, at 0"));
  }
  Tensors tensors = gptq();
  tensors[2] = filled("scales", "F16", {2, 16}, 0x7f);
  EXPECT_THAT(refusal(kGptq, tensors), HasSubstr("'model.m.scales' has a scale that is not a finite number"));
}

TEST(JoinQuantized, TakesZerosAsTheProgramsDoThatWriteThem) {
  Tensors tensors = gptq();  // codes of 1, and zeros stored as 1: 2
  for (const float number : read(kGptq, tensors)) ASSERT_EQ(number, -1.0f * (0.5f + 0x38 * 0x1p-11f));
  EXPECT_EQ(read(kSymmetric, tensors), read(kGptq, tensors)) << "the zeros decide, not the settings";
  tensors[1] = filled("qzeros", "I32", {2, 2}, 0x77);
  for (const float number : read(kSymmetric, tensors)) ASSERT_EQ(number, -7.0f * (0.5f + 0x38 * 0x1p-11f));
}

TEST(JoinQuantized, ReadsGroupsWhoseInputsDoNotLieTogether) {
  Tensors tensors = gptq();
  std::vector<std::int32_t> groups(64);
  for (std::size_t i = 0; i < 64; ++i) groups[i] = i % 2 == 0 ? 1 : 0;
  tensors.push_back(numbers<std::int32_t>("g_idx", "I32", {64}, groups));
  std::vector<std::uint16_t> scales(32, 0x3c00);
  std::fill(scales.begin() + 16, scales.end(), 0x4000);  // 1 for group 0, 2 for group 1
  tensors[2] = numbers<std::uint16_t>("scales", "F16", {2, 16}, scales);
  const std::vector<float> numbers_read = read(kGptq, tensors);
  for (std::size_t i = 0; i < numbers_read.size(); ++i) ASSERT_EQ(numbers_read[i], i % 2 == 0 ? -2.0f : -1.0f) << i;
  groups[0] = 0;
  tensors.back() = numbers<std::int32_t>("g_idx", "I32", {64}, groups);
  EXPECT_THAT(refusal(kGptq, tensors), HasSubstr("'model.m.g_idx' has 33 inputs in group 0; expected 32"));
  groups[0] = -1;
  tensors.back() = numbers<std::int32_t>("g_idx", "I32", {64}, groups);
  EXPECT_THAT(refusal(kGptq, tensors),
              HasSubstr("'model.m.g_idx' has group 4294967295 of input 0; expected one below 2"));
  tensors.back() = numbers<std::int32_t>("g_idx", "I32", {63}, std::vector<std::int32_t>(63));
  EXPECT_THAT(refusal(kGptq, tensors), HasSubstr("'model.m.g_idx' has shape [63]; expected [64]"));
}

// For a device that has kernels for these alone: the same numbers, if every scale is an f16.
TEST(JoinQuantized, IntegersAreBlocksOfGgufToo) {
  using backend::BlockType;
  Tensors eight = {filled("qweight", "I32", {16, 16}, 0x9c), filled("qzeros", "I32", {2, 4}, 0x7f),
                   filled("scales", "F16", {2, 16}, 0x38)};
  Tensors three = {filled("qweight", "I32", {6, 32}, 0x9c), filled("qzeros", "I32", {2, 3}, 0x35),
                   filled("scales", "F16", {2, 32}, 0x38)};
  Tensors symmetric = gptq();
  symmetric[1] = filled("qzeros", "I32", {2, 2}, 0x77);
  symmetric[0] = filled("qweight", "I32", {8, 16}, 0xe1);
  Tensors zeros = awq();
  zeros[0] = filled("qweight", "I32", {64, 2}, 0xf0);
  zeros[1] = filled("qzeros", "I32", {2, 2}, 0xf0);
  Tensors wide = packed();  // bf16 scales far below the f16
  wide[1] = filled("weight_scale", "BF16", {16, 2}, 0x03);
  const std::tuple<const char*, Tensors, std::optional<BlockType>> kCases[] = {
      {kSymmetric, symmetric, BlockType::kQ4_0},
      {kAwq, zeros, BlockType::kQ5_0},
      {R"({"quant_method": "gptq", "group_size": 32, "sym": true})", eight, BlockType::kQ8_0},
      {kGptq, three, BlockType::kQ4_0},
      {kCompressed, packed(), BlockType::kQ4_0},
      {kCompressed, wide, std::nullopt},
      {kFp8, fp8(), std::nullopt}};
  const auto no_groups = [](backend::Format format) {
    return !format.is_blocks() || backend::layout_of(format.blocks).scales != backend::BlockScales::kF32;
  };
  for (const auto& [settings, tensors, type] : kCases) {
    const TempDir dir;
    dir.write("config.json", std::string("{\"quantization_config\": ") + settings + "}");
    dir.write("model.safetensors", testing::safetensors_file(tensors));
    const auto files = ModelFiles::directory(dir.path());
    const Checkpoint checkpoint = open_decoder(*files);
    const Tensor& tensor = *checkpoint.find("model.m.weight");
    const auto blocks = tensor.matrix->block_format();
    ASSERT_EQ(blocks.has_value(), type.has_value()) << tensor.dtype;
    // A GPU: these are multiplied in integers only as blocks of a file.
    const auto groups_in_f32 = [&](backend::Format format) {
      return no_groups(format) || format.activation == backend::Format::Activation::kF32;
    };
    EXPECT_EQ(given_format(tensor, groups_in_f32), type ? *blocks : *tensor.stored_format());
    if (!type) continue;
    EXPECT_EQ(blocks->blocks, *type) << tensor.dtype;
    const TensorPart part{.name = tensor.name, .shape = tensor.shape};
    const TensorRows own(tensor, part, TensorEntry::Kind::kMatrix, true);
    const TensorRows others(tensor, part, TensorEntry::Kind::kMatrix, true, nullptr, *blocks);
    const auto* a = reinterpret_cast<const float*>(own.bytes().data());
    const auto* b = reinterpret_cast<const float*>(others.bytes().data());
    for (std::size_t i = 0; i < tensor.num_elements(); ++i) ASSERT_EQ(a[i], b[i]) << tensor.dtype << " " << i;
    EXPECT_EQ(given_format(tensor, no_groups), *blocks);
    EXPECT_EQ(given_format(tensor, [](backend::Format) { return true; }), *tensor.stored_format());
  }
}

// A dtype of a GGUF file says nothing in a safetensors file, whose data may be shorter than such blocks.
TEST(JoinQuantized, BlocksOfGgufAreNoTypeOfASafetensorsFile) {
  const TempDir dir;
  dir.write("model.safetensors", testing::safetensors_file({{"model.m.weight", "Q4_0", {16, 64}, "short"}}));
  const auto files = ModelFiles::directory(dir.path());
  const Checkpoint checkpoint = open_decoder(*files);
  EXPECT_FALSE(checkpoint.find("model.m.weight")->stored_format());
}

}  // namespace
}  // namespace quire::model::join_test
