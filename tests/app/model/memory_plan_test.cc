#include "app/model/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/start_error.h"

namespace quire::app::memory_plan_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kTokenBytes = 1000;
constexpr std::uint64_t kBlockBytes = 16 * kTokenBytes;

// Four sequences of 512 tokens: 32 blocks each.
MemoryRequest request() {
  MemoryRequest request;
  request.block_bytes = kBlockBytes;
  request.block_tokens = 16;
  request.max_num_seqs = 4;
  request.model_len = 512;
  return request;
}

std::string refusal(const MemoryRequest& asked) {
  try {
    plan_memory(asked);
  } catch (const StartError& error) {
    return error.what();
  }
  return "";
}

TEST(MemoryPlan, AutoTakesNoMoreThanTheSequencesCanUse) {
  MemoryRequest asked = request();
  asked.free_bytes = 1ull << 40;
  const MemoryPlan plan = plan_memory(asked);
  EXPECT_EQ(plan.num_blocks, 4 * 32u);
  EXPECT_EQ(plan.max_model_len, 512u);
  EXPECT_EQ(plan.bytes, 4 * 32 * kBlockBytes);
  EXPECT_THAT(plan.notes, IsEmpty());
}

TEST(MemoryPlan, AutoTakesHalfOfWhatIsFree) {
  MemoryRequest asked = request();
  asked.free_bytes = 2 * 50 * kBlockBytes + 2 * kBlockBytes - 1;
  EXPECT_EQ(plan_memory(asked).num_blocks, 50u);
}

TEST(MemoryPlan, OfADevicesOwnMemoryAutoTakesAllButALittle) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  EXPECT_EQ(kv_share(10 * kGiB, true), 10 * kGiB - 3 * kGiB / 2);
  EXPECT_EQ(kv_share(3 * kGiB / 2 - 1, true), 0u);
  EXPECT_EQ(kv_share(3 * kGiB / 2, true), 0u);
  EXPECT_EQ(kv_share(3 * kGiB / 2 + 1, true), 1u);
  EXPECT_EQ(kv_share(75 * kGiB - 50, true), 75 * kGiB - 50 - 3 * kGiB / 2);  // from 75 GiB on a fiftieth is more
  EXPECT_EQ(kv_share(75 * kGiB, true), 75 * kGiB - 3 * kGiB / 2);
  EXPECT_EQ(kv_share(75 * kGiB + 50, true), 75 * kGiB + 50 - 3 * kGiB / 2 - 1);
  EXPECT_EQ(kv_share(7, false), 3u);

  MemoryRequest asked = request();
  asked.own_memory = true;
  for (const auto& [more, blocks] : {std::pair{-1, 49u}, {0, 50u}, {1, 50u}}) {
    asked.free_bytes = 3 * kGiB / 2 + 50 * kBlockBytes + more;
    EXPECT_EQ(plan_memory(asked).num_blocks, blocks) << more;
  }
  EXPECT_THAT(device_memory_line(plan_memory(asked), asked, 512),
              HasSubstr("free after weights and a step of 512 rows, 781.2 KiB of it for K and V; 1.50 GiB stay free"));
  asked.max_model_len = 512;
  asked.free_bytes = 3 * kGiB / 2;
  EXPECT_THAT(refusal(asked), HasSubstr("the usable part of the 1.50 GiB of free memory has room for 0 tokens"));
  asked.own_memory = false;
  EXPECT_EQ(device_memory_line(plan_memory(asked), asked, 512), "");
}

TEST(MemoryPlan, OneSequenceOfFullLengthIsTheLeast) {
  MemoryRequest asked = request();
  asked.max_model_len = 512;
  asked.kv_cache_bytes = 33 * kBlockBytes;
  EXPECT_EQ(plan_memory(asked).num_blocks, 33u);
  asked.kv_cache_bytes = 32 * kBlockBytes;
  EXPECT_EQ(plan_memory(asked).num_blocks, 32u);
  asked.kv_cache_bytes = 32 * kBlockBytes - 1;
  EXPECT_THAT(refusal(asked), HasSubstr("one sequence of 512 tokens takes 500.0 KiB of KV cache"));
  EXPECT_THAT(refusal(asked), HasSubstr("has room for 496 tokens"));
  EXPECT_THAT(refusal(asked), HasSubstr("--kv-cache-memory"));
}

TEST(MemoryPlan, ALengthNobodyAskedForIsLowered) {
  MemoryRequest asked = request();
  asked.kv_cache_bytes = 10 * kBlockBytes;
  const MemoryPlan plan = plan_memory(asked);
  EXPECT_EQ(plan.max_model_len, 160u);
  EXPECT_EQ(plan.num_blocks, 10u);
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("--max-model-len is lowered to 160")));
}

TEST(MemoryPlan, WhatIsNoBlockIsTakenOffFirst) {
  MemoryRequest asked = request();
  asked.max_model_len = 512;
  asked.fixed_bytes = 3 * kBlockBytes + 5;
  asked.kv_cache_bytes = 36 * kBlockBytes + 4;
  EXPECT_EQ(plan_memory(asked).num_blocks, 32u);
  asked.kv_cache_bytes = 36 * kBlockBytes + 5;
  EXPECT_EQ(plan_memory(asked).num_blocks, 33u);
  EXPECT_EQ(plan_memory(asked).bytes, 36 * kBlockBytes + 5);
  asked.kv_cache_bytes = 2 * kBlockBytes;
  EXPECT_THAT(refusal(asked), HasSubstr("has room for 0 tokens"));
  asked.kv_cache_bytes.reset();
  asked.free_bytes = 2 * (36 * kBlockBytes + 5);
  EXPECT_EQ(plan_memory(asked).num_blocks, 33u);
}

TEST(MemoryPlan, DraftsTakeTheirPartOfEveryBlock) {
  MemoryRequest asked = request();
  asked.max_model_len = 512;
  asked.drafts.block_bytes = 3000;
  asked.drafts.scratch_bytes = 7;
  asked.kv_cache_bytes = 33 * (kBlockBytes + 3000) + 7;
  MemoryPlan plan = plan_memory(asked);
  EXPECT_EQ(plan.num_blocks, 33u);
  EXPECT_EQ(plan.bytes, 33 * kBlockBytes);
  EXPECT_EQ(plan.draft_bytes, 33 * 3000u + 7);
  asked.kv_cache_bytes = *asked.kv_cache_bytes - 1;
  EXPECT_EQ(plan_memory(asked).num_blocks, 32u);
  asked.kv_cache_bytes = 32 * (kBlockBytes + 3000) + 6;
  EXPECT_THAT(refusal(asked), HasSubstr("takes 593.8 KiB of KV cache, drafts included; --kv-cache-memory"));
  asked.kv_cache_bytes.reset();
  asked.free_bytes = 2 * (33 * (kBlockBytes + 3000) + 7);
  EXPECT_EQ(plan_memory(asked).num_blocks, 33u);
  asked.free_bytes = *asked.free_bytes - 2;
  EXPECT_EQ(plan_memory(asked).num_blocks, 32u);
}

TEST(MemoryPlan, WeightsAndStatesOfDraftsAreNoPartOfTheCache) {
  MemoryRequest asked = request();
  asked.kv_cache_bytes = 40 * kBlockBytes;
  asked.drafts.weight_bytes = 1u << 20;
  asked.drafts.states_bytes = 5;
  const MemoryPlan plan = plan_memory(asked);
  EXPECT_EQ(plan.num_blocks, 40u);
  EXPECT_EQ(plan.draft_bytes, (1u << 20) + 5u);
}

TEST(MemoryPlan, LessThanABlockIsRefused) {
  MemoryRequest asked = request();
  asked.kv_cache_bytes = kBlockBytes - 1;
  EXPECT_THAT(refusal(asked), HasSubstr("--kv-cache-memory"));
}

TEST(MemoryPlan, MemoryThatCannotBeUsedIsNotTakenAndReported) {
  MemoryRequest asked = request();
  asked.kv_cache_bytes = 4 * 32 * kBlockBytes;
  EXPECT_THAT(plan_memory(asked).notes, IsEmpty());
  asked.kv_cache_bytes = *asked.kv_cache_bytes + 1;
  const MemoryPlan plan = plan_memory(asked);
  EXPECT_EQ(plan.num_blocks, 4 * 32u);
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("can use")));
}

TEST(MemoryPlan, ALengthBeyondTheModelsIsRefused) {
  MemoryRequest asked = request();
  asked.max_model_len = 512;
  EXPECT_EQ(plan_memory(asked).max_model_len, 512u);
  asked.max_model_len = 511;
  EXPECT_EQ(plan_memory(asked).max_model_len, 511u);
  asked.max_model_len = 513;
  EXPECT_THAT(refusal(asked), HasSubstr("the maximum of this model is 512 tokens"));
}

TEST(MemoryPlan, PinnedBlocksComeOnTopOfTheSequences) {
  MemoryRequest asked = request();
  asked.free_bytes = 1ull << 40;
  asked.pinned_blocks = 5;
  const MemoryPlan plan = plan_memory(asked);
  EXPECT_EQ(plan.num_blocks, 4 * 32u + 5);
  EXPECT_EQ(plan.pinned_blocks, 5u);
  EXPECT_EQ(plan.bytes, (4 * 32 + 5) * kBlockBytes);
  EXPECT_EQ(sequences_that_fit(plan, asked, 512), 4u);
  EXPECT_THAT(kv_line(plan, asked, backend::KvType::kF32), HasSubstr("4.0 sequences of 512; 2.0 MiB as f32"));
  EXPECT_THAT(kv_line(plan, asked, backend::KvType::kF32), HasSubstr("; 5 blocks are pinned"));
}

// A window of 64 tokens and steps of 32 rows: with the 16 where it may begin again, and a block more, 8 blocks.
MemoryRequest windowed() {
  MemoryRequest asked = request();
  asked.groups = {kv::CacheGroup{}, {kv::CacheGroup::Kind::kWindow, 64}};
  asked.step_tokens = 32;
  return asked;
}

TEST(MemoryPlan, ASequenceTakesItsBlocksOfEveryGroupAndOfAWindowNoMoreThanThat) {
  EXPECT_EQ(windowed().most_blocks(16), 1u + 1u);
  EXPECT_EQ(windowed().most_blocks(128), 8u + 8u);
  EXPECT_EQ(windowed().most_blocks(129), 9u + 8u);
  EXPECT_EQ(windowed().most_blocks(512), 32u + 8u);
  MemoryRequest asked = windowed();
  asked.max_model_len = 512;
  for (const std::uint32_t num_blocks : {40u, 41u}) {
    asked.kv_cache_bytes = num_blocks * kBlockBytes;
    EXPECT_EQ(plan_memory(asked).num_blocks, num_blocks);
    EXPECT_EQ(sequences_that_fit(plan_memory(asked), asked, 512), 1u);
  }
  asked.kv_cache_bytes = 39 * kBlockBytes;
  EXPECT_THAT(refusal(asked), HasSubstr("has room for 496 tokens"));
}

TEST(MemoryPlan, ALengthIsLoweredToTheLongestWhoseGroupsFit) {
  MemoryRequest asked = windowed();
  for (const std::uint32_t num_blocks : {2u, 16u, 17u, 39u}) {
    asked.kv_cache_bytes = num_blocks * kBlockBytes;
    const std::uint32_t lowered = plan_memory(asked).max_model_len;
    EXPECT_LE(asked.most_blocks(lowered), num_blocks);
    EXPECT_GT(asked.most_blocks(lowered + 1), num_blocks);
  }
}

TEST(MemoryPlan, AModelOfWindowsAloneHasRoomForAnyLengthInFewBlocks) {
  MemoryRequest asked = windowed();
  asked.groups = {{kv::CacheGroup::Kind::kWindow, 64}};
  asked.model_len = 1 << 20;
  asked.kv_cache_bytes = 8 * kBlockBytes;
  EXPECT_EQ(plan_memory(asked).max_model_len, 1u << 20);
  asked.kv_cache_bytes = 7 * kBlockBytes;
  EXPECT_EQ(plan_memory(asked).max_model_len, 7 * 16u);
}

TEST(MemoryPlan, TheLongestSequenceFitsBesideThePinnedPrefixes) {
  MemoryRequest asked = request();
  asked.max_model_len = 512;
  asked.pinned_blocks = 5;
  asked.kv_cache_bytes = 38 * kBlockBytes;
  EXPECT_EQ(plan_memory(asked).num_blocks, 38u);
  asked.kv_cache_bytes = 37 * kBlockBytes;
  EXPECT_EQ(plan_memory(asked).num_blocks, 37u);
  asked.kv_cache_bytes = 37 * kBlockBytes - 1;
  EXPECT_THAT(refusal(asked),
              HasSubstr("one sequence of 512 tokens and the pinned prefixes take 578.1 KiB of KV cache"));
  EXPECT_THAT(refusal(asked), HasSubstr("has room for 576 tokens"));
}

TEST(MemoryPlan, ALengthIsLoweredToWhatPinnedPrefixesLeaveButAboveEachOfThem) {
  MemoryRequest asked = request();
  asked.kv_cache_bytes = 10 * kBlockBytes;
  asked.pinned_blocks = 4;
  asked.longest_pinned = 64;
  EXPECT_EQ(plan_memory(asked).max_model_len, 6 * 16u);
  asked.longest_pinned = 6 * 16 - 1;
  EXPECT_EQ(plan_memory(asked).max_model_len, 6 * 16u);
  asked.longest_pinned = 6 * 16;
  EXPECT_THAT(refusal(asked), HasSubstr("and the pinned prefixes take"));
  asked.longest_pinned = 0;
  asked.pinned_blocks = 9;
  EXPECT_EQ(plan_memory(asked).max_model_len, 16u);
  asked.pinned_blocks = 10;
  EXPECT_THAT(refusal(asked), HasSubstr("and the pinned prefixes take"));
}

TEST(MemoryPlan, SequencesThatFitAreCountedInWholeBlocks) {
  MemoryRequest asked = request();
  asked.kv_cache_bytes = 65 * kBlockBytes;
  asked.pinned_blocks = 1;
  const MemoryPlan plan = plan_memory(asked);
  EXPECT_EQ(sequences_that_fit(plan, asked, 511), 2u);
  EXPECT_EQ(sequences_that_fit(plan, asked, 512), 2u);
  EXPECT_EQ(sequences_that_fit(plan, asked, 513), 1u);
  EXPECT_EQ(sequences_that_fit(plan, asked, 16), 64u);
  EXPECT_EQ(sequences_that_fit(plan, asked, 17), 32u);
}

TEST(MemoryPlan, SlotsFitThirtyTwoBits) {
  MemoryRequest asked = request();
  asked.max_num_seqs = 4096;
  asked.model_len = 16u << 20;
  const MemoryPlan plan = plan_memory(asked);
  EXPECT_LT(std::uint64_t{plan.num_blocks} * asked.block_tokens, 1ull << 32);
  EXPECT_EQ(plan.max_model_len, 16u << 20);
}

TEST(MemoryPlan, IsPrintedInOneLine) {
  EXPECT_EQ(kv_line(plan_memory(request()), request(), backend::KvType::kF32),
            "KV cache: 128 blocks of 16 tokens, 2048 tokens, 4.0 sequences of 512; 2.0 MiB as f32, 1000 bytes a token");
}

TEST(MemoryPlan, SwapSpaceHoldsWholeBlocksAndTheDraftsBesideThem) {
  MemoryRequest asked = request();
  asked.own_memory = true;
  EXPECT_EQ(swap_line(plan_memory(asked), asked), "");
  asked.swap_bytes = kBlockBytes - 1;
  EXPECT_THAT(refusal(asked), HasSubstr("--swap-space 15.6 KiB: one block of the KV cache takes 15.6 KiB"));
  asked.swap_bytes = kBlockBytes;
  EXPECT_EQ(plan_memory(asked).num_swap_blocks, 1u);
  asked.swap_bytes = 10 * kBlockBytes;
  EXPECT_EQ(plan_memory(asked).num_swap_blocks, 10u);
  asked.drafts.block_bytes = kBlockBytes / 4;
  EXPECT_EQ(plan_memory(asked).num_swap_blocks, 8u);
  EXPECT_EQ(swap_line(plan_memory(asked), asked),
            "swap: 8 blocks in 156.2 KiB of main memory, for preempted sequences");
}

}  // namespace
}  // namespace quire::app::memory_plan_test
