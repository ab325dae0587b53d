#include "app/kv_events/event_payload.h"

#include <gtest/gtest.h>

#include <set>

#include "app/kv_events/msgpack.h"
#include "core/model/run/numeric_mode.h"

namespace quire::app {
namespace {

using flow::CacheChange;
using flow::CacheChanges;
using Kind = CacheChange::Kind;

constexpr std::uint64_t kKey = 0x1234567890abcdef;
constexpr CacheNamespace kPlain{1, 2};
constexpr CacheNamespace kSalted{0xab, 0xcd};

std::uint64_t hash(std::uint64_t entry) { return block_hash(entry, kKey); }

PayloadFacts facts(KvEventsConfig::Format format) { return {format, 2, kKey, kPlain, "CPU"}; }

// Two blocks behind each other, one that begins a prompt under a salt with its child, two that went, a clearing.
CacheChanges changes() {
  CacheChanges all;
  all.changes = {{Kind::kStored, 1, 0, kPlain},  {Kind::kStored, 2, 1, kPlain}, {Kind::kStored, 3, 0, kSalted},
                 {Kind::kStored, 4, 3, kSalted}, {Kind::kRemoved, 2, 0, {}},    {Kind::kRemoved, 1, 0, {}},
                 {Kind::kCleared, 0, 0, {}},     {Kind::kStored, 9, 8, kPlain}};
  all.tokens = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  return all;
}

TEST(EventPayload, NamesTheDeviceOfTheNumericMode) {
  model::ModelSpec spec;
  spec.layers.emplace_back();
  const auto mode = [&](std::string_view backend) {
    return model::numeric_mode(spec, 1, backend, backend::Format::kBF16, backend::KvType::kF32);
  };
  EXPECT_EQ(medium_of(mode("cpu/avx2")), "CPU");
  EXPECT_EQ(medium_of(mode("gpu-sm_90-2")), "GPU");
}

TEST(EventPayload, MapsNameTheirFields) {
  std::string expected;
  MsgpackWriter pack(expected);
  const auto stored = [&pack](std::size_t num_fields) { pack.map(num_fields).text("type").text("BlockStored"); };
  const auto sizes = [&pack] { pack.text("block_size").number(2).text("lora_id").nil(); };
  const auto ends = [&pack] { pack.text("medium").text("CPU").text("lora_name").nil(); };
  pack.array(3).real(7.5).array(5);
  stored(8);
  pack.text("block_hashes").array(2).number(hash(1)).number(hash(2)).text("parent_block_hash").nil();
  pack.text("token_ids").array(4).number(10).number(11).number(12).number(13);
  sizes();
  ends();
  stored(9);
  pack.text("block_hashes").array(2).number(hash(3)).number(hash(4)).text("parent_block_hash").nil();
  pack.text("token_ids").array(4).number(14).number(15).number(16).number(17);
  sizes();
  ends();
  pack.text("extra_keys").array(2).array(1).text("00000000000000ab00000000000000cd").nil();
  pack.map(3).text("type").text("BlockRemoved").text("block_hashes").array(2).number(hash(2)).number(hash(1));
  pack.text("medium").text("CPU");
  pack.map(1).text("type").text("AllBlocksCleared");
  stored(8);
  pack.text("block_hashes").array(1).number(hash(9)).text("parent_block_hash").number(hash(8));
  pack.text("token_ids").array(2).number(18).number(19);
  sizes();
  ends();
  pack.number(0);
  EXPECT_EQ(event_payload(changes(), 7.5, facts(KvEventsConfig::Format::kMap)), expected);
}

TEST(EventPayload, ArraysHaveTheTypeInFrontAndLeaveOutWhatIsNotThereAtTheirEnd) {
  std::string expected;
  MsgpackWriter pack(expected);
  pack.array(3).real(7.5).array(5);
  pack.array(8).text("BlockStored").array(2).number(hash(1)).number(hash(2)).nil();
  pack.array(4).number(10).number(11).number(12).number(13).number(2).nil().text("CPU").nil();
  pack.array(9).text("BlockStored").array(2).number(hash(3)).number(hash(4)).nil();
  pack.array(4).number(14).number(15).number(16).number(17).number(2).nil().text("CPU").nil();
  pack.array(2).array(1).text("00000000000000ab00000000000000cd").nil();
  pack.array(3).text("BlockRemoved").array(2).number(hash(2)).number(hash(1)).text("CPU");
  pack.array(1).text("AllBlocksCleared");
  pack.array(8).text("BlockStored").array(1).number(hash(9)).number(hash(8));
  pack.array(2).number(18).number(19).number(2).nil().text("CPU").nil();
  pack.number(0);
  EXPECT_EQ(event_payload(changes(), 7.5, facts(KvEventsConfig::Format::kArray)), expected);
}

TEST(EventPayload, HashesAreNeverZeroNeverTheSameAndDifferFromServerToServer) {
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 63, kKey}) {
    std::set<std::uint64_t> seen = {0};
    for (std::uint64_t entry = 1; entry <= 100000; ++entry) ASSERT_TRUE(seen.insert(block_hash(entry, key)).second);
  }
  for (std::uint64_t entry = 1; entry <= 1000; ++entry) EXPECT_NE(block_hash(entry, 1), block_hash(entry, 2));
}

}  // namespace
}  // namespace quire::app
