#include "gpu/linear_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/start_error.h"
#include "gpu/gpu_ops.h"

namespace quire::gpu::linear_layers_test {
namespace {

using backend::Format;

TEST(FormatsOfGpus, AreThoseWithAShortName) {
  for (const Format format : backend::kNamedFormats) EXPECT_NO_THROW(expect_kernels(format)) << name_of(format);
}

TEST(FormatsOfGpus, AreRefusedByNameWithoutKernels) {
  Format format = Format::kInt8;
  format.activation = Format::Activation::kBF16;
  try {
    weight_bytes(16, 64, format);
    FAIL();
  } catch (const StartError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(
                                  "GPUs have no kernels for weights in int8 with an f32 scale per output, times bf16"));
  }
}

}  // namespace
}  // namespace quire::gpu::linear_layers_test
