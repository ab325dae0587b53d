#include "tools/bench/kernel_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/model/arch/config.h"
#include "tools/bench/bench.h"
#include "tools/bench/fma_peak.h"
#include "tools/common/random_model.h"

namespace quire::tools {
namespace {

TEST(KernelBench, ScattersEveryBlockToAPlaceOfItsOwn) {
  const std::vector<BlockId> all = scattered_blocks(100, 100);
  std::set<std::uint32_t> seen;
  for (const BlockId block : all) seen.insert(block.value);
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(*seen.rbegin(), 99u);
  EXPECT_NE(all, contiguous_blocks(100));
  EXPECT_EQ(all, scattered_blocks(100, 100));

  const std::vector<BlockId> some = scattered_blocks(10, 1000);  // strewn over all of the pool
  EXPECT_EQ(some.size(), 10u);
  EXPECT_GT(std::ranges::max(some, {}, &BlockId::value).value, 100u);
}

TEST(MedianSeconds, CallsAsOftenAsFillTheLeastTime) {
  int calls = 0;
  const double seconds = median_seconds([&] { ++calls; }, 3, std::chrono::microseconds(50));
  EXPECT_GT(seconds, 0);
  EXPECT_GT(calls, 5);  // twice for itself, then three runs
}

TEST(FmaPeak, IsAFigureForEveryRunAndNoSmallOne) {
  const std::vector<double> peaks = measure_fma_peak(1, 3);
  EXPECT_EQ(peaks.size(), 3u);
  for (const double peak : peaks) EXPECT_GT(peak, 1e8);
}

TEST(RandomModel, KnowsItsShapesAndHasATokenizerForEach) {
  EXPECT_FALSE(RandomModel::knows("7b"));
  EXPECT_FALSE(RandomModel::knows(""));
  for (const char* shape : {"135m", "0.6b", "1b"}) EXPECT_TRUE(RandomModel::knows(shape)) << shape;
  const RandomModel random("135m");
  const auto files = random.files();
  const auto tokenizer = app::load_tokenizer(*files);
  EXPECT_THAT(tokenizer->encode("a b", false), ::testing::ElementsAre('a' + 1, ' ' + 1, 'b' + 1));
  EXPECT_EQ(model::load_config(*files).vocab, 49152u);
}

}  // namespace
}  // namespace quire::tools
