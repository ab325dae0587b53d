#include "core/cpu/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/start_error.h"
#include "core/cpu/blocks/block_panels.h"
#include "core/cpu/cpu_ops.h"

namespace quire::cpu {
namespace {

using backend::Format;
using testing::HasSubstr;

TEST(FormatsOfTheCpu, AreThoseWithAShortNameAndBlocksTimesF32AndAsIntegersTimesInt8) {
  std::set<Gemm> gemms;
  std::size_t num_blocks = 0;
  for (const Format format : backend::kNamedFormats) {
    EXPECT_EQ(kernels_of(format).format, format);
    EXPECT_TRUE(gemms.insert(kernels_of(format).gemm).second) << "each has a kernel of its own";
  }
  for (const backend::BlockLayout& layout : backend::block_layouts()) {
    for (const auto activation : {Format::Activation::kF32, Format::Activation::kInt8}) {
      if (layout.is_in_floats() && activation == Format::Activation::kInt8) continue;
      const Format format = Format::of_blocks(layout.type, activation);
      EXPECT_EQ(kernels_of(format).format, format);
      gemms.insert(kernels_of(format).gemm);
      ++num_blocks;
    }
  }
  EXPECT_EQ(kernels_of(Format::kW8A8PerRow).gemm, kernels_of(Format::kW8A8).gemm);
  EXPECT_EQ(format_kernels().size(), backend::kNamedFormats.size() + num_blocks + 1);
  EXPECT_EQ(gemms.size(), std::size_t{kNumGemms});
}

TEST(FormatsOfTheCpu, AreRefusedByNameWithoutKernels) {
  Format format = Format::kInt4;
  format.group = 64;
  format.zero_point = Format::ZeroPoint::kPerGroup;
  try {
    weight_bytes(16, 64, format);
    FAIL();
  } catch (const StartError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the CPU has no kernels for weights in int4 in groups of 64 with bf16 scales"));
  }
}

}  // namespace
}  // namespace quire::cpu
