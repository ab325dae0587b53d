#include "core/model/run/numeric_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::numeric_mode_test {
namespace {

using ::testing::HasSubstr;
using testing::kTinyLlama;
using ::testing::Not;

ModelSpec tiny() { return parse_config(kTinyLlama, "config.json"); }

TEST(NumericMode, NamesWhatTokensDependOnAndNothingElse) {
  const std::string mode =
      numeric_mode(tiny(), 0x123456789abcdef0u, "cpu/avx512 2 threads", backend::Format::kBF16, backend::KvType::kF32);
  EXPECT_THAT(mode, HasSubstr("checkpoint=123456789abcdef0 backend=cpu dtype=bf16 kv=f32 model=llama E=8"));
  EXPECT_THAT(mode, HasSubstr("rope=default(theta=10000)"));
  EXPECT_THAT(mode, Not(HasSubstr("avx512")));
  EXPECT_EQ(mode, numeric_mode(tiny(), 0x123456789abcdef0u, "cpu/scalar 1 thread", backend::Format::kBF16,
                               backend::KvType::kF32));
}

TEST(NumericMode, FingerprintsDifferWithEachPart) {
  using backend::Format;
  using backend::KvType;
  using Activation = Format::Activation;
  constexpr Format kBlocks = Format::of_blocks(backend::BlockType::kQ4_K, Activation::kInt8);
  ModelSpec other = tiny();
  other.ropes[0].theta = 20000.0;
  ModelSpec windowed = tiny();
  windowed.layers[1].attention.window = 16;
  std::set<std::string> prints;
  for (const std::string& mode : {numeric_mode(tiny(), 1, "cpu/x", Format::kBF16, KvType::kF32),
                                  numeric_mode(tiny(), 2, "cpu/x", Format::kBF16, KvType::kF32),
                                  numeric_mode(tiny(), 1, "gpu/x", Format::kBF16, KvType::kF32),
                                  numeric_mode(tiny(), 1, "cpu/x", Format::kF32, KvType::kF32),
                                  numeric_mode(tiny(), 1, "cpu/x", Format::kInt8, KvType::kF32),
                                  numeric_mode(tiny(), 1, "cpu/x", Format::kInt4, KvType::kF32),
                                  numeric_mode(tiny(), 1, "cpu/x", Format::kBF16, KvType::kBF16),
                                  numeric_mode(tiny(), 1, "cpu/x", kBlocks, KvType::kF32, Activation::kF32),
                                  numeric_mode(tiny(), 1, "cpu/x", kBlocks, KvType::kF32, Activation::kInt8),
                                  numeric_mode(tiny(), 1, "cpu/x", Format::kF32, KvType::kF32, Activation::kInt8),
                                  numeric_mode(other, 1, "cpu/x", Format::kBF16, KvType::kF32),
                                  numeric_mode(windowed, 1, "cpu/x", Format::kBF16, KvType::kF32)}) {
    const std::string print = fingerprint(mode);
    EXPECT_EQ(print.size(), 3u + 16);
    EXPECT_EQ(print.substr(0, 3), "fp_");
    EXPECT_TRUE(prints.insert(print).second) << mode;
  }
}

}  // namespace
}  // namespace quire::model::numeric_mode_test
