#include "app/model/compute_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/drafting/draft_memory.h"
#include "core/base/start_error.h"
#include "core/cpu/cpu_ops.h"
#include "gpu/cuda/cuda_device.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::app::compute_device_test {
namespace {

using backend::Format;
using backend::KvType;
using ::testing::HasSubstr;

Config config_of(const std::string& device) {
  Problems problems;
  Config config = resolve({}, problems);
  config.device = device;
  config.threads = 1;
  return config;
}

std::string refusal(const Config& config) {
  try {
    make_compute_device(config);
  } catch (const StartError& error) {
    return error.what();
  }
  return "";
}

TEST(ComputeDevice, ThatIsNotThereIsRefusedAndSaysWhichPartFailed) {
  const std::string said = refusal(config_of("cuda:63"));
  EXPECT_THAT(said, HasSubstr("--device cuda:63: "));
  EXPECT_THAT(said, HasSubstr(gpu::has_cuda() ? "cudaGetDeviceCount"
                                              : "this program was built without CUDA (preset cuda-release)"));
}

TEST(ComputeDevice, OfAProgramWithoutCudaIsTheCpuByItself) {
  if (gpu::has_cuda()) GTEST_SKIP() << "this program was built with CUDA";
  const auto device = make_compute_device(config_of("auto"));
  EXPECT_FALSE(device->has_own_memory());
  EXPECT_THAT(device->make_ops({.max_rows = 4, .max_sequences = 1, .max_model_len = 16})->description(),
              HasSubstr("cpu/"));
}

TEST(ComputeDevice, OfTheCpuPlansAsTheCpu) {
  const auto device = make_compute_device(config_of("cpu"));
  const backend::KvShape shape{backend::kv_layers(2, 2, 16), 16, 1, KvType::kInt4};
  EXPECT_EQ(device->weight_bytes(20, 30, Format::kInt4), cpu::weight_bytes(20, 30, Format::kInt4));
  EXPECT_EQ(device->kv_block_bytes(shape), cpu::kv_block_bytes(shape));
  EXPECT_EQ(device->kv_residual_group_bytes(shape), cpu::kv_residual_group_bytes(shape));
}

TEST(ComputeDevice, OfAGpuHasMemoryOfItsOwnOutOfWhichItsOpsTake) {
  const auto device = make_compute_device(config_of("simulated"));
  EXPECT_TRUE(device->has_own_memory());
  const std::uint64_t before = device->free_bytes().value();
  const auto ops = device->make_ops({.max_rows = 4, .max_sequences = 2, .max_model_len = 100});
  EXPECT_THAT(ops->description(), HasSubstr("gpu-host-2/simulated"));
  const std::uint64_t with_ops = device->free_bytes().value();
  EXPECT_LT(with_ops, before);
  const backend::KvShape shape{backend::kv_layers(2, 2, 16), 16, 8, KvType::kBF16};
  const auto cache = ops->make_kv(shape);
  EXPECT_LE(device->free_bytes().value(), with_ops - 8 * device->kv_block_bytes(shape));  // and what attention needs
}

// Reads a model, and of a draft model what it would take; what was refused, or nothing.
class ComputeDeviceLimits : public ::testing::Test {
 protected:
  static void write(const model::testing::TempDir& dir, std::uint32_t head_dim, const char* dtype = "F32") {
    const std::string text =
        model::testing::replaced(model::testing::kTinyLlama, "\"num_attention_heads\"",
                                 "\"head_dim\": " + std::to_string(head_dim) + ", \"num_attention_heads\"");
    const model::ModelSpec shape = model::parse_config(text, "a test");
    dir.write("config.json", text);
    dir.write("model.safetensors", model::testing::safetensors_file(model::testing::fitting_tensors(shape, dtype)));
  }

  std::string refusal(const char* device, std::uint32_t head_dim, std::uint32_t drafts_head_dim = 0) const {
    write(dir_, head_dim);
    return refusal_of(device, "none", drafts_head_dim);
  }
  std::string refusal_of(const char* device, const char* quantize, std::uint32_t drafts_head_dim = 0) const {
    Config config = config_of(device);
    config.model = dir_.path();
    config.quantize = quantize;
    if (drafts_head_dim != 0) {
      write(draft_, drafts_head_dim);
      config.speculative_config = R"({"method": "draft_model", "model": ")" + draft_.path() + "\"}";
    }
    try {
      draft_memory(config, read_model(config, open_model(config.model)));
    } catch (const StartError& error) {
      return error.what();
    }
    return "";
  }
  static std::string beyond(const model::testing::TempDir& dir) {
    return dir.path() +
           "/config.json: the GPU backend has no kernels for this model: head_dim (given, or hidden_size / "
           "num_attention_heads) is 514; the maximum is 512; use --device cpu";
  }

  model::testing::TempDir dir_;
  model::testing::TempDir draft_;
};

TEST_F(ComputeDeviceLimits, RefuseHeadsOfMoreThan512DimensionsOnAGpuBeforeAnythingIsPacked) {
  for (const std::uint32_t dims : {510u, 512u}) EXPECT_EQ(refusal("simulated", dims), "");
  EXPECT_EQ(refusal("simulated", 514), beyond(dir_));
  EXPECT_EQ(refusal("cpu", 514), "");
}

TEST_F(ComputeDeviceLimits, RefuseFloat16OnAGpuWithTheFlagsThatServeIt) {
  write(dir_, 16, "F16");
  EXPECT_EQ(refusal_of("simulated", "none"),
            dir_.path() +
                "/config.json: the GPU backend has no kernels for this model: the checkpoint's weights are float16 "
                "(--quantize w16a16 --kv-cache-dtype bf16 rounds them and their inputs to bfloat16); use --device cpu");
  for (const char* quantize : {"w16a16", "int8", "int4", "fp8"}) EXPECT_EQ(refusal_of("simulated", quantize), "");
  EXPECT_EQ(refusal_of("cpu", "none"), "");
}

TEST_F(ComputeDeviceLimits, RefuseADraftModelLikewise) {
  EXPECT_EQ(refusal("simulated", 16, 512), "");
  EXPECT_EQ(refusal("simulated", 16, 514), beyond(draft_));
  EXPECT_EQ(refusal("cpu", 16, 514), "");
}

TEST(ComputeDevice, OfRanksPlansWhatEachOfThemHasAndRefusesHeadsThatTheyCannotShareOut) {
  Config config = config_of("simulated");
  const auto one = make_compute_device(config);
  config.tensor_parallel_size = 2;
  const auto device = make_compute_device(config);
  EXPECT_EQ(one->num_ranks(), 1u);
  EXPECT_EQ(device->num_ranks(), 2u);
  EXPECT_TRUE(device->has_own_memory());
  EXPECT_EQ(device->free_bytes(), one->free_bytes());
  EXPECT_EQ(device->weight_bytes(64, 30, Format::kBF16), one->weight_bytes(32, 30, Format::kBF16));
  EXPECT_EQ(device->weight_bytes(63, 30, Format::kBF16), one->weight_bytes(63, 30, Format::kBF16));  // whole
  const backend::KvShape shape{backend::kv_layers(2, 2, 16), 16, 8, KvType::kInt4};
  EXPECT_EQ(device->kv_block_bytes(shape) * 2, one->kv_block_bytes(shape));
  EXPECT_EQ(device->kv_residual_group_bytes(shape) * 2, one->kv_residual_group_bytes(shape));
  const auto ops = device->make_ops({.max_rows = 4, .max_sequences = 2, .max_model_len = 100});
  EXPECT_THAT(ops->description(), HasSubstr("2 ranks"));
  const gpu::ModelShape model{.hidden = 48, .ffn = 96, .num_heads = 6, .num_kv_heads = 3, .head_dim = 16};
  try {
    device->expect_within_limits(model, "config.json");
    ADD_FAILURE();
  } catch (const StartError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("config.json: --tensor-parallel-size 2 does not divide num_key_value_heads, 3 in this model"));
  }
}

TEST(ComputeDevice, OfRanksThatAreNotThereIsRefusedAndNeverTheCpuByItself) {
  for (const char* name : {"auto", "cuda:62"}) {
    Config config = config_of(name);
    config.tensor_parallel_size = 2;
    const std::string said = refusal(config);
    EXPECT_THAT(said, HasSubstr(std::string("--tensor-parallel-size 2, --device ") + name + ": "));
  }
}

}  // namespace
}  // namespace quire::app::compute_device_test
