// Attention of prompts by four warps at a time, on the simulator: it has the bits of single warps, and through them those of the contract,
// whatever is before a row, beside it, or dropped.
#include "gpu/kernels/attention_warpgroups.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "gpu/attention_plan.h"
#include "tests/gpu/attention_lab.h"

namespace quire::gpu::test::attention_warpgroups_test {
namespace {

constexpr KvType kDeepTypes[] = {KvType::kBF16, KvType::kFp8, KvType::kInt8};

using Rows = std::vector<std::vector<float>>;

std::unique_ptr<backend::Ops> ops_with(bool warpgroups, std::uint64_t seed = 1) {
  return make_gpu_ops(make_simulated_device(seed), {.max_rows = 600, .attention_warpgroups = warpgroups});
}

Rows attended(bool warpgroups, const LabShape& shape, std::span<const LabSequence> sequences, std::uint32_t chunk,
              bool together = true, std::uint64_t seed = 1) {
  const auto ops = ops_with(warpgroups, seed);
  Lab lab(*ops, shape, {sequences.begin(), sequences.end()}, 1);
  lab.prefill(chunk, together);
  return lab.out();
}

void expect_same(const Rows& a, const Rows& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t s = 0; s < a.size(); ++s) EXPECT_TRUE(same_bits(a[s], b[s])) << "sequence " << s;
}

std::span<const float> row_of(const std::vector<float>& out, const LabShape& shape, std::uint32_t p) {
  return std::span(out).subspan(std::size_t{p} * shape.q_width(), shape.q_width());
}

// Whether a step of these rows goes through the kernel. What comes out of it nobody looks at: it is written down alone.
bool is_attended_by_warpgroups(const LabShape& shape, std::uint32_t rows, bool warpgroups = true, bool votes = false) {
  auto made = make_simulated_device();
  Device& device = *made;
  const auto ops = make_gpu_ops(std::move(made), {.max_rows = 600, .attention_warpgroups = warpgroups});
  const std::uint32_t lengths[] = {rows};
  auto sequences = lab_sequences(shape, lengths, 77);
  sequences[0].votes = votes;
  Lab lab(*ops, shape, std::move(sequences), 1);
  const LabRows step[] = {{0, 0, rows}};
  LaunchList launches;
  device.record(&launches);
  lab.step(step);
  device.record(nullptr);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    for (const void* code : {device.kernels().attend_bf16_deep.code, device.kernels().attend_fp8_deep.code,
                             device.kernels().attend_int8_deep.code}) {
      if (launches.at(i).code == code) return true;
    }
  }
  return false;
}

TEST(AttendWarpgroups, AreAskedForWhereTheyAreWantedAndQueriesAreMany) {
  const LabShape shape{2, 2, 64, 16, KvType::kBF16, 0};  // a query a row
  for (const std::uint32_t rows : {kWideQueries - 1, kWideQueries, kWideQueries + 1}) {
    EXPECT_EQ(is_attended_by_warpgroups(shape, rows), rows > kWideQueries) << rows;
  }
  EXPECT_FALSE(is_attended_by_warpgroups(shape, 60, /*warpgroups=*/false));
  EXPECT_FALSE(is_attended_by_warpgroups(shape, 60, true, /*votes=*/true));
  EXPECT_TRUE(is_attended_by_warpgroups({6, 1, 64, 16, KvType::kBF16, 0}, 6));
}

TEST(AttendWarpgroups, TakeHeadsOf64And128DimensionsAndLeaveTheOthers) {
  for (const std::uint32_t dims : {2u, 48u, 50u, 62u, 64u, 66u, 80u, 112u, 114u, 128u, 130u}) {
    const bool fits = (dims > 48 && dims <= 64) || (dims > 112 && dims <= 128);
    EXPECT_EQ(is_attended_by_warpgroups({1, 1, dims, 16, KvType::kBF16, 0}, 40), fits) << dims;
  }
  for (const KvType type : backend::kAllKvTypes) {
    const bool fits = type != KvType::kF32 && type != KvType::kInt4;
    EXPECT_EQ(is_attended_by_warpgroups({1, 1, 64, 16, type, 0}, 40), fits) << backend::name_of(type);
  }
}

TEST(AttendWarpgroups, HaveTheBitsOfSingleWarpsOverHeadsWindowsPrefixesAndCompany) {
  struct Case {
    LabShape shape;
    std::vector<std::uint32_t> lengths;
    std::uint32_t chunk;
  };
  for (const Case& c : {
           Case{{2, 2, 64, 16, KvType::kBF16, 0}, {33, 1, 150}, 150},  // 33 queries; units of 48, 48, 48 and 6
           Case{{4, 2, 62, 16, KvType::kBF16, 0}, {70, 40}, 37},       // chunks behind what is stored
           Case{{3, 1, 128, 32, KvType::kBF16, 20}, {61}, 61},         // a row's heads in two units
           Case{{1, 1, 114, 32, KvType::kBF16, 0}, {290}, 70},         // over a span's end
           Case{{9, 1, 64, 32, KvType::kBF16, 7}, {30}, 11},
           Case{{1, 1, 64, 16, KvType::kBF16, 257}, {600}, 600},  // three spans, of which late rows see two
           Case{{1, 1, 64, 16, KvType::kBF16, 0}, {600}, 300},
           Case{{4, 2, 64, 16, KvType::kFp8, 0}, {70, 40}, 37},
           Case{{1, 1, 128, 32, KvType::kFp8, 257}, {530}, 530},
           Case{{4, 2, 62, 16, KvType::kInt8, 0}, {70, 40}, 37},
           Case{{1, 1, 128, 32, KvType::kInt8, 257}, {530}, 530},
       }) {
    SCOPED_TRACE(c.shape.text());
    const auto sequences = lab_sequences(c.shape, c.lengths, 77);
    const Rows plain = attended(false, c.shape, sequences, c.chunk);
    expect_same(attended(true, c.shape, sequences, c.chunk), plain);
  }
}

TEST(AttendWarpgroups, EqualTheContractBitForBitWhateverTheOrderOfTurns) {
  for (const KvType type : kDeepTypes) {
    const LabShape shape{2, 1, 64, 16, type, 0};
    SCOPED_TRACE(shape.text());
    const std::uint32_t lengths[] = {276};
    const auto sequences = lab_sequences(shape, lengths, 5);
    const Rows out = attended(true, shape, sequences, 276);
    for (const std::uint32_t p : {0u, 1u, 15u, 16u, 63u, 254u, 255u, 256u, 257u, 275u}) {
      ASSERT_TRUE(same_bits(row_of(out[0], shape, p), tiles_contract(shape, sequences[0], p))) << p;
    }
    for (std::uint64_t seed = 2; seed <= 5; ++seed) expect_same(attended(true, shape, sequences, 276, true, seed), out);
  }
}

TEST(AttendWarpgroups, GiveARowTheSameBitsInAnyChunksAloneAndInCompany) {
  const LabShape shape{4, 2, 64, 16, KvType::kBF16, 0};
  const std::uint32_t lengths[] = {5, 81, 40};
  const auto sequences = lab_sequences(shape, lengths, 9);
  const Rows whole = attended(true, shape, sequences, 81, /*together=*/false);
  for (const std::uint32_t chunk : {1u, 20u, 33u}) expect_same(attended(true, shape, sequences, chunk), whole);
}

// One row of each sequence with so many heads that it is a unit of its own; three of them fill up a grid of four.
TEST(AttendWarpgroups, HaveTheSameBitsInCapturedStepsAndBeginInTheirTurn) {
  const LabShape shape{40, 1, 64, 16, KvType::kBF16, 0};
  const std::uint32_t lengths[] = {6, 6, 6};
  const auto sequences = lab_sequences(shape, lengths, 4);
  const Rows plain = attended(false, shape, sequences, 6);
  for (const Pace pace : {Pace::kAtOnce, Pace::kLate, Pace::kEarly}) {
    const auto ops =
        make_gpu_ops(make_simulated_device(3, pace), {.max_rows = 600, .capture = 8, .attention_warpgroups = true});
    Lab lab(*ops, shape, {sequences.begin(), sequences.end()}, 1);
    lab.prefill(1, true);
    expect_same(lab.out(), plain);
  }
}

TEST(AttendWarpgroups, LeaveOutGroupsThatWereDropped) {
  for (const KvType type : kDeepTypes) {
    const LabShape shape{1, 1, 64, 32, type, 0};
    SCOPED_TRACE(shape.text());
    const std::uint32_t lengths[] = {790, 300};
    auto sequences = lab_sequences(shape, lengths, 77);
    for (std::uint32_t s = 0; s < 2; ++s) punch_holes(sequences[s], s + 1);
    sequences[0].kept[2][1] = 0;  // a span of which nothing is left
    sequences[0].kept[3][1] = 0;
    const Rows out = attended(true, shape, sequences, 256);
    expect_same(out, attended(false, shape, sequences, 256));
    for (const std::uint32_t p : {256u, 511u, 512u, 789u}) {
      ASSERT_TRUE(same_bits(row_of(out[0], shape, p), tiles_contract(shape, sequences[0], p))) << p;
    }
  }
}

TEST(AttendWarpgroups, ReadNothingThatNoRowOfTheSequenceStored) {
  for (const KvType type : kDeepTypes) {
    const LabShape shape{1, 1, 62, 16, type, 0};
    SCOPED_TRACE(shape.text());
    const std::uint32_t lengths[] = {75, 40};
    std::vector<Rows> results;
    for (const int byte : {0x00, 0x7f, 0xff}) {
      const auto ops = ops_with(true);
      Lab lab(*ops, shape, lab_sequences(shape, lengths, 5), 1);
      fill_cache(*ops, lab.cache(), static_cast<std::byte>(byte));
      lab.prefill(75, true);
      results.push_back(lab.out());
    }
    for (std::size_t i = 1; i < results.size(); ++i) expect_same(results[i], results[0]);
  }
}

TEST(AttendWarpgroups, ALaterRowsFaultTouchesNoEarlierRowAndEveryLaterOneThatSeesIt) {
  const std::uint32_t lengths[] = {130};
  for (const float fault : {static_cast<float>(NAN), std::numeric_limits<float>::infinity()}) {
    for (const LabShape& shape : {LabShape{1, 1, 64, 16, KvType::kBF16, 0}, LabShape{2, 1, 64, 16, KvType::kBF16, 50},
                                  LabShape{1, 1, 64, 16, KvType::kFp8, 0}, LabShape{1, 1, 64, 16, KvType::kInt8, 0}}) {
      SCOPED_TRACE(shape.text());
      auto sequences = lab_sequences(shape, lengths, 6);
      const Rows clean = attended(true, shape, sequences, 130);
      for (std::size_t i = 0; i < shape.width(); ++i) sequences[0].rows[21 * shape.width() + i] = fault;
      for (const std::uint32_t chunk : {130u, 65u}) {
        const Rows out = attended(true, shape, sequences, chunk);
        for (std::uint32_t p = 0; p < 130; ++p) {
          const std::span<const float> row = row_of(out[0], shape, p);
          if (p < 21 || (shape.window != 0 && p >= 21 + shape.window)) {
            EXPECT_TRUE(same_bits(row, row_of(clean[0], shape, p))) << p;
            continue;
          }
          for (const float x : row) EXPECT_FALSE(std::isfinite(x)) << p;
        }
      }
    }
  }
}

// As copies in bulk and products want it, and without two threads in one place.
template <typename Kernel>
void expect_places() {
  using Work = typename Kernel::Work;
  auto work = std::make_unique<Work>();
  const auto place = [&](const void* at) {
    return static_cast<std::uint32_t>(static_cast<const std::byte*>(at) -
                                      reinterpret_cast<const std::byte*>(work.get()));
  };
  EXPECT_EQ(place(work->stages) % 16, 0u);
  EXPECT_EQ(Work::kStageBytes % 16 + Work::kCodeBytes % 16, 0u);
  EXPECT_EQ(place(work->queries) % 16, 0u);
  EXPECT_EQ(place(work->weights) % 16, 0u);
  EXPECT_EQ(place(&work->met()) % 8, 0u);
  std::set<std::uint32_t> places;
  for (unsigned column = 0; column < Kernel::kColumns; ++column) {
    for (unsigned d = 0; d < Kernel::kMostDims; d += 2) {
      const RowsInShared there{d / 16 * 2 * Work::kToNextInputs, Work::kToNextInputs, Work::kToNextQueries};
      ASSERT_EQ(place(&work->query_pair(column, d)) - place(work->queries), there.address_of(column, d % 16));
      places.insert(place(&work->query_pair(column, d)));
    }
    for (unsigned j = 0; j < 256; j += 2) {
      const RowsInShared there{j / 16 * 2 * Work::kToNextInputs, Work::kToNextInputs, Work::kToNextColumns};
      ASSERT_EQ(place(&work->weight_pair(column, j)) - place(work->weights), there.address_of(column, j % 16));
      places.insert(place(&work->weight_pair(column, j)));
    }
  }
  EXPECT_EQ(places.size(), Kernel::kColumns * (Kernel::kMostDims + 256u) / 2);
}
TEST(AttendWarpgroups, PutQueriesAndWeightsWhereTheirDescriptorsSay) {
  expect_places<AttendBf16Deep>();
  expect_places<AttendFp8Deep>();
  expect_places<AttendInt8Deep>();
}

}  // namespace
}  // namespace quire::gpu::test::attention_warpgroups_test
