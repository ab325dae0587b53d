// Scales of K and V under the names that programs write, and what is refused.
#include "core/model/quantized/kv_scales.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/weight_checks.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::kv_scales_test {
namespace {

using ::testing::HasSubstr;
using testing::TestTensor;

constexpr const char* kDeclared =
    R"({"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}})";
constexpr const char* kUndeclared = R"({"quant_method": "compressed-tensors"})";

TestTensor scales(const std::string& name, const std::vector<float>& values, bool is_scalar = false) {
  std::string data(values.size() * sizeof(float), '\0');
  std::memcpy(data.data(), values.data(), data.size());
  const std::vector<std::uint64_t> shape =
      is_scalar ? std::vector<std::uint64_t>() : std::vector<std::uint64_t>{values.size()};
  return {"model.layers.1.self_attn." + name, "F32", shape, data};
}

// Of a Llama of two layers with these tensors in its second one; the config of its layers.
ModelSpec spec_with(const std::vector<TestTensor>& added, const std::string& settings = kDeclared) {
  const ModelSpec stated = parse_config(testing::kTinyLlama, "config.json");
  std::vector<TestTensor> tensors = testing::fitting_tensors(stated);
  tensors.insert(tensors.end(), added.begin(), added.end());
  const testing::TempDir dir;
  dir.write("config.json", "{\"quantization_config\": " + settings + ", " + testing::kTinyLlama.substr(1));
  dir.write("model.safetensors", testing::safetensors_file(tensors));
  const auto files = ModelFiles::directory(dir.path());
  const Checkpoint checkpoint = open_decoder(*files);
  const ModelSpec spec = fitted(stated, checkpoint);
  check_weights(spec, checkpoint);
  EXPECT_EQ(spec.layers[0].attention.kv_scales, KvScales{});
  return spec;
}
KvScales scales_of(const std::vector<TestTensor>& added, const std::string& settings = kDeclared) {
  return spec_with(added, settings).layers[1].attention.kv_scales;
}

TEST(KvScales, AreFoundUnderEveryNameAndAreOneWhereThereIsNone) {
  EXPECT_EQ(scales_of({}), KvScales{});
  EXPECT_EQ(scales_of({scales("k_scale", {0.5f})}), (KvScales{0.5f, 1.0f}));
  EXPECT_EQ(scales_of({scales("v_scale", {0.25f}, true)}), (KvScales{1.0f, 0.25f}));
  const std::pair<const char*, const char*> kNames[] = {{"k_scale", "v_scale"},
                                                        {"k_proj.k_scale", "v_proj.v_scale"},
                                                        {"qkv_proj.k_scale", "qkv_proj.v_scale"},
                                                        {"attn.k_scale", "attn.v_scale"},
                                                        {"k_proj.output_scale", "v_proj.output_scale"}};
  for (const auto& [k, v] : kNames) {
    EXPECT_EQ(scales_of({scales(k, {3.0f}), scales(v, {7.0f})}), (KvScales{3.0f, 7.0f})) << k;
  }
  EXPECT_EQ(scales_of({scales("kv_scale", {6.0f})}), (KvScales{6.0f, 6.0f}));
}

TEST(KvScales, OfOutputsAreThoseOfTheCacheOnlyWhereItIsDeclared) {
  const std::vector<TestTensor> outputs = {scales("k_proj.output_scale", {3.0f}),
                                           scales("q_proj.output_scale", {5.0f})};
  EXPECT_EQ(scales_of(outputs), (KvScales{3.0f, 1.0f}));
  EXPECT_EQ(scales_of(outputs, kUndeclared), KvScales{});
}

TEST(KvScales, OfEachHeadAreLeftOut) { EXPECT_EQ(scales_of({scales("k_scale", {0.5f, 0.25f})}), KvScales{}); }

TEST(KvScales, WithoutAFiniteInverseAreRefusedByName) {
  constexpr float kLeast = std::numeric_limits<float>::min();
  EXPECT_EQ(scales_of({scales("k_scale", {kLeast})}), (KvScales{kLeast, 1.0f}));
  for (const float scale : {0.0f, -0.0f, -1.0f, std::nextafter(kLeast, 0.0f)}) {
    const std::string said = testing::refusal([&] { scales_of({scales("k_proj.k_scale", {scale})}); });
    EXPECT_THAT(said, HasSubstr("'model.layers.1.self_attn.k_scale'"));
    EXPECT_THAT(said, HasSubstr("expected a number from 1.18e-38 on"));
  }
  for (const float scale : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(testing::refusal([&] { scales_of({scales("v_scale", {scale})}); }), HasSubstr("v_scale"));
  }
}

TEST(KvScales, AreToldInTheDescriptionOfTheModel) {
  const ModelSpec plain = spec_with({});
  const ModelSpec scaled = spec_with({scales("k_scale", {0.5f})});
  EXPECT_NE(plain.describe(), scaled.describe());
  EXPECT_THAT(scaled.describe(), HasSubstr("kv_scales=0.5:1"));
}

}  // namespace
}  // namespace quire::model::kv_scales_test
