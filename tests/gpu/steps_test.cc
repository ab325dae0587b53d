#include "gpu/steps.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <numeric>

#include "gpu/runtime/simulated_device.h"

namespace quire::gpu::steps_test {
namespace {

// ---- buckets

TEST(Buckets, AreTheSmallestThatHoldTheRowsAndNeverMoreThanIsCaptured) {
  for (const std::uint32_t most : {1u, 2u, 3u, 7u, 8u, 9u, 255u, 256u, 257u, 511u, 512u}) {
    EXPECT_EQ(bucket_of(0, most), 0u);
    EXPECT_EQ(bucket_of(most, most), most);
    EXPECT_EQ(bucket_of(most + 1, most), 0u);
    for (std::uint32_t rows = 1; rows <= most; ++rows) {
      const std::uint32_t bucket = bucket_of(rows, most);
      ASSERT_GE(bucket, rows);
      ASSERT_LE(bucket, most);
      for (const std::uint32_t other : kBuckets)
        ASSERT_FALSE(rows <= other && other < bucket) << rows << " in " << other;
    }
  }
}

TEST(Buckets, EndWhereNoGridIsKept) {
  EXPECT_EQ(bucket_of(512, 600), 512u);
  EXPECT_EQ(bucket_of(513, 600), 0u);
}

static_assert(bucket_of(9, 512) == 12 && bucket_of(8, 512) == 8 && bucket_of(7, 512) == 8);

// ---- packets

StepBufferSizes of_each(std::uint32_t count, std::uint32_t groups = 1) {
  return {.rows = count, .groups = groups, .logits_rows = count, .kept_groups = count, .table_entries = count};
}

TEST(StepBuffers, HaveTheirPartsOneBehindTheOther) {
  for (const std::uint32_t n : {0u, 1u, 3u, 4u, 5u, 600u}) {
    for (const std::uint32_t groups : {1u, 2u, 7u}) {
      const StepBufferOffsets places = places_of(of_each(n, groups));
      EXPECT_GE(places.rows, places.tokens + n * sizeof(std::int32_t));
      EXPECT_GE(places.logits_rows, places.rows + groups * n * sizeof(RowOfBatch));
      EXPECT_GE(places.kept_groups, places.logits_rows + n * sizeof(std::uint32_t));
      EXPECT_GE(places.tables, places.kept_groups + n * sizeof(std::uint16_t));
      EXPECT_GE(places.end, places.tables + groups * n * sizeof(std::uint32_t));
      for (const std::size_t place : {places.rows, places.logits_rows, places.kept_groups, places.tables}) {
        EXPECT_EQ(place % alignof(RowOfBatch), 0u);
      }
      StepBufferSizes more = of_each(n, groups);
      ++more.rows;
      EXPECT_LE(places.end, places_of(more).end);
    }
  }
}

TEST(StepBuffers, OfOneBucketLieAtTheSamePlacesWhateverTheirTables) {
  const auto tables_behind = [](std::uint32_t table_entries) {
    return places_of({.rows = 8, .groups = 2, .logits_rows = 8, .table_entries = table_entries}).tables;
  };
  EXPECT_EQ(tables_behind(5), tables_behind(5000));
}

TEST(StepBuffers, AreNotChangedBeforeTheDeviceHasReadThem) {
  for (const std::uint32_t depth : {1u, 2u, 3u}) {
    const auto device = make_simulated_device(1, Pace::kLate);
    StepBuffer step_buffer(*device, of_each(4), depth);
    std::vector<DeviceMemory> seen;
    for (std::int32_t step = 0; step < 9; ++step) {
      step_buffer.begin({.rows = 4});
      std::ranges::fill(step_buffer.tokens(), step);
      step_buffer.send();
      seen.emplace_back(*device, 4 * sizeof(std::int32_t), "what was sent");
      device->copy(seen.back().data(), step_buffer.device_tokens(), seen.back().bytes());
    }
    for (std::int32_t step = 0; step < 9; ++step) {
      std::array<std::int32_t, 4> out{};
      device->download(out.data(), seen[static_cast<std::size_t>(step)].data(), sizeof(out));
      EXPECT_EQ(out, (std::array<std::int32_t, 4>{step, step, step, step})) << "depth " << depth;
    }
  }
}

TEST(StepBuffersDeathTest, AreNoLargerThanWasSaid) {
  const auto device = make_simulated_device();
  StepBuffer step_buffer(*device, of_each(4), 1);
  step_buffer.begin(of_each(4));
  for (const StepBufferSizes& sizes : {StepBufferSizes{5, 0, 0, 0}, {0, 5, 0, 0}, {0, 0, 5, 0}, {0, 0, 0, 5}}) {
    EXPECT_DEATH(step_buffer.begin(sizes), "CHECK failed");
  }
}

// ---- captured steps

class Captured : public ::testing::Test {
 protected:
  // x += y, so many rows of it; then y = x.
  LaunchList launches(std::uint32_t rows) {
    LaunchList list;
    device_->record(&list);
    device_->start(device_->kernels().add, {rows, 1}, {x_.as<float>(), y_.as<float>(), kWidth});
    device_->start(device_->kernels().copy_rows, {rows, 1},
                   {x_.as<float>(), kWidth, 0, nullptr, kWidth, y_.as<float>(), kWidth, 0});
    device_->record(nullptr);
    return list;
  }
  void fill(float value) {
    const std::vector<float> values(kRows * kWidth, value);
    device_->upload(x_.data(), values.data(), x_.bytes());
    device_->upload(y_.data(), values.data(), y_.bytes());
  }
  std::vector<float> read() {
    std::vector<float> out(kRows * kWidth);
    device_->download(out.data(), x_.data(), x_.bytes());
    return out;
  }

  static constexpr std::uint32_t kWidth = 5;
  static constexpr std::uint32_t kRows = 3;
  std::unique_ptr<Device> device_ = make_simulated_device(1, Pace::kLate);
  DeviceMemory x_{*device_, kRows* kWidth * sizeof(float), "x"};
  DeviceMemory y_{*device_, kRows* kWidth * sizeof(float), "y"};
  CapturedSteps steps_{*device_};
};

TEST_F(Captured, WhatIsWrittenDownIsNotRun) {
  fill(1.0f);
  EXPECT_EQ(launches(kRows).size(), 2u);
  EXPECT_EQ(read(), std::vector<float>(kRows * kWidth, 1.0f));
}

TEST_F(Captured, AStepThatComesAgainDoesWhatItDidTheFirstTime) {
  fill(1.0f);
  for (float expected : {2.0f, 4.0f, 8.0f, 16.0f}) {  // the first runs once, though it is captured as well
    steps_.run(launches(kRows));
    EXPECT_EQ(read(), std::vector<float>(kRows * kWidth, expected));
  }
  if (kClearsPadding) {
    EXPECT_EQ(steps_.num_captured(), 1u);
    EXPECT_EQ(steps_.num_repeated(), 3u);
  }
  fill(3.0f);  // the memory that its arguments point to
  steps_.run(launches(kRows));
  EXPECT_EQ(read(), std::vector<float>(kRows * kWidth, 6.0f));
}

TEST_F(Captured, AnotherGridIsAnotherStep) {
  fill(1.0f);
  for (const std::uint32_t rows : {1u, 2u, 1u, 2u, 3u}) steps_.run(launches(rows));
  if (kClearsPadding) {
    EXPECT_EQ(steps_.num_captured(), 3u);
    EXPECT_EQ(steps_.num_repeated(), 2u);
  }
  EXPECT_EQ(read()[0], 32.0f);
  EXPECT_EQ(read()[kWidth], 8.0f);
  EXPECT_EQ(read()[2 * kWidth], 2.0f);
}

// The n-th step adds ten times: to one row or to two, by the bits of n.
class ManyCaptured : public Captured {
 protected:
  void run(CapturedSteps& steps, std::uint32_t n) {
    LaunchList list;
    device_->record(&list);
    for (std::uint32_t bit = 0; bit < 10; ++bit) {
      device_->start(device_->kernels().add, {1 + (n >> bit & 1), 1}, {x_.as<float>(), y_.as<float>(), kWidth});
    }
    device_->record(nullptr);
    fill(1.0f);
    steps.run(list);
    ASSERT_EQ(read()[0], 11.0f);
    ASSERT_EQ(read()[kWidth], static_cast<float>(1 + std::popcount(n)));
  }
  // It runs once more to see.
  bool repeats(CapturedSteps& steps, std::uint32_t n) {
    const std::uint64_t before = steps.num_repeated();
    run(steps, n);
    return steps.num_repeated() > before;
  }
};

TEST_F(ManyCaptured, NoMoreAreKeptThanThatAndTheRestRunsAllTheSame) {
  for (const std::size_t more : {0u, 1u}) {
    CapturedSteps steps(*device_);
    for (std::uint32_t n = 1; n <= CapturedSteps::kMost + more; ++n) run(steps, n);
    EXPECT_EQ(steps.num_captured(), CapturedSteps::kMost);
  }
}

TEST_F(ManyCaptured, TheOneThatRanLongestAgoMakesRoomWhereThatIsLongAgo) {
  if (!kClearsPadding) GTEST_SKIP() << "equal steps may look different to this compiler";
  CapturedSteps steps(*device_);
  std::uint64_t step = 0;
  for (std::uint32_t n = 1; n <= CapturedSteps::kMost; ++n, ++step) run(steps, n);  // the first is step 1
  while (++step < CapturedSteps::kLongAgo) run(steps, 2);
  const std::uint32_t more = CapturedSteps::kMost + 1;
  EXPECT_FALSE(repeats(steps, more));  // step kLongAgo: the first ran one less than that ago
  EXPECT_FALSE(repeats(steps, more)) << "too early for room";
  EXPECT_TRUE(repeats(steps, more)) << "no room was made";
  EXPECT_TRUE(repeats(steps, 2));
  EXPECT_EQ(steps.num_captured(), CapturedSteps::kMost);
}

using CapturedDeathTest = Captured;

TEST_F(CapturedDeathTest, NothingIsTakenSentOrReadWhileAStepIsCaptured) {
  if (device_->name() != "simulated") GTEST_SKIP() << "a GPU answers with an error, and ends the capture";
  device_->begin_capture();
  float value = 0.0f;
  const auto event = [&] {
    device_->end_capture();
    auto made = device_->make_event();
    device_->begin_capture();
    return made;
  }();
  EXPECT_DEATH(device_->allocate(4, "more"), "CHECK failed");
  EXPECT_DEATH(device_->allocate_pinned(4, "more"), "CHECK failed");
  EXPECT_DEATH(device_->upload(x_.data(), &value, 4), "CHECK failed");
  EXPECT_DEATH(device_->upload_pinned(x_.data(), &value, 4), "CHECK failed");
  EXPECT_DEATH(device_->download(&value, x_.data(), 4), "CHECK failed");
  EXPECT_DEATH(event->record(), "CHECK failed");
  EXPECT_DEATH(device_->begin_capture(), "CHECK failed");
  EXPECT_NE(device_->end_capture(), nullptr);
}

}  // namespace
}  // namespace quire::gpu::steps_test
