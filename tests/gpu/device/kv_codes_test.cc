// K and V as the device keeps them: the CPU's numbers, and the tensor cores' words that they become.
#include "gpu/device/kv_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "gpu/device/kv_fragment.h"
#include "tests/core/cpu/stored_kv.h"
#include "tests/gpu/attention_lab.h"

namespace quire::gpu::test::kv_codes_test {
namespace {

using backend::Ops;

// Through attend() of the plain kernel, which takes heads of more than 256 dimensions of any type.
TEST(KvCodes, AreTheCpusInEveryTypeSoThatThePlainKernelHasItsBits) {
  for (const KvType type : backend::kAllKvTypes) {
    for (const std::uint32_t dims : {258u}) {
      const LabShape shape{1, 1, dims, 16, type, 0};
      SCOPED_TRACE(shape.text());
      const std::uint32_t lengths[] = {21};
      const auto attended = [&](Ops& ops, std::uint32_t chunk) {
        Lab lab(ops, shape, lab_sequences(shape, lengths, 77), 1);
        lab.prefill(chunk, true);
        return lab.out()[0];
      };
      const auto cpu = make_ops("auto", 1);
      const auto gpu = simulated();
      const std::vector<float> expected = attended(*cpu, 21);
      EXPECT_TRUE(same_bits(attended(*gpu, 21), expected));
      EXPECT_TRUE(same_bits(attended(*gpu, 9), expected));
    }
  }
}

TEST(KvCodes, OfABlockAreTheNumbersThatTheCpuStores) {
  for (const KvType type : backend::kAllKvTypes) {
    const LabShape shape{2, 2, 18, 32, type, 0};
    SCOPED_TRACE(shape.text());
    const std::uint32_t lengths[] = {32};
    const auto ops = simulated();
    Lab lab(*ops, shape, lab_sequences(shape, lengths, 5), 1);
    lab.prefill(5, true);
    const backend::KvShape& of_cache = lab.cache().shape();
    std::vector<std::byte> bytes(lab.cache().block_bytes());
    ops->read_block(lab.cache(), lab.table(0)[0], bytes);
    const KvLayout layout{2, 18, 32, type};
    ASSERT_EQ(bytes.size(), of_cache.num_layers() * layout.block_bytes());
    const LabSequence& sequence = lab.sequences()[0];
    for (std::uint32_t head = 0; head < 2; ++head) {
      for (std::uint32_t j = 0; j < 32; ++j) {
        const std::byte* group = bytes.data() + layout.block_bytes() + layout.group_at(head, j);
        const float* k = sequence.stored.data() + j * shape.width() + shape.q_width() + head * 18;
        for (std::uint32_t d = 0; d < 18; ++d) {
          ASSERT_EQ(stored_k(layout, group, j, d), k[d]) << head << ", " << j << ", " << d;
          ASSERT_EQ(stored_v(layout, group, j, d), k[shape.kv_width() + d]) << head << ", " << j << ", " << d;
        }
      }
    }
  }
}

float half_of(const KvFragment& fragment, unsigned place) {
  return f32_of_bf16(static_cast<std::uint16_t>(fragment.words[place / 2] >> 16 * (place % 2)));
}

TEST(KvFragment, MeansEveryCodeOfFp8AndInt8ExactlyWhereverItLies) {
  for (unsigned code = 0; code < 256; ++code) {
    for (unsigned place = 0; place < 8; ++place) {
      std::uint8_t codes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
      codes[place] = static_cast<std::uint8_t>(code);
      RawKvFragment<KvType::kFp8> fp8{};
      std::memcpy(&fp8, codes, sizeof(codes));
      RawKvFragment<KvType::kInt8> int8{};
      std::memcpy(&int8, codes, sizeof(codes));
      const KvFragment of_fp8 = widened<KvType::kFp8>(fp8, {});
      const KvFragment of_int8 = widened<KvType::kInt8>(int8, {});
      for (unsigned i = 0; i < 8; ++i) {
        const float number = value_of_fp8(codes[i]);
        if (std::isnan(number)) {
          EXPECT_TRUE(std::isnan(half_of(of_fp8, i))) << code << " at " << place;
        } else {
          EXPECT_EQ(bits_of(half_of(of_fp8, i)), bits_of(number)) << code << " at " << place;
        }
        EXPECT_EQ(half_of(of_int8, i), static_cast<float>(static_cast<std::int8_t>(codes[i])));
      }
      EXPECT_EQ(holds_fault(of_fp8), (code & 127) == 127);
    }
  }
}

TEST(KvFragment, MeansEveryCodeOfInt4RoundedOnce) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    StepPairs pairs{};
    std::uint16_t steps[4];
    std::uint16_t lowests[4];
    for (unsigned i = 0; i < 4; ++i) {
      steps[i] = bf16_of_f32(std::abs(random.uniform()));
      lowests[i] = bf16_of_f32(random.uniform(4.0f));
      pairs.steps[i / 2] |= std::uint32_t{steps[i]} << 16 * (i % 2);
      pairs.lowests[i / 2] |= std::uint32_t{lowests[i]} << 16 * (i % 2);
    }
    RawKvFragment<KvType::kInt4> raw{};
    unsigned codes[8];
    for (unsigned place = 0; place < 8; ++place) {
      codes[place] = random.below(16);
      raw.bits.words[0] |= codes[place] << int4_shift(place);
    }
    const KvFragment out = widened<KvType::kInt4>(raw, pairs);
    for (unsigned place = 0; place < 8; ++place) {
      const unsigned input = place % 2 + place / 4 * 2;  // of the lane's four
      const double exact = codes[place] * double{f32_of_bf16(steps[input])} + double{f32_of_bf16(lowests[input])};
      EXPECT_EQ(half_of(out, place), f32_of_bf16(bf16_of_f32(static_cast<float>(exact)))) << place;
    }
  }
}

TEST(KvFragment, WithoutFaultsKeepsTheRest) {
  KvFragment fragment;
  fragment.words[0] = 0x3f807f80u;  // 1 and an infinity
  fragment.words[3] = 0xffc04000u;  // a NaN and 2
  EXPECT_TRUE(holds_fault(fragment));
  const KvFragment clean = without_faults(fragment);
  EXPECT_FALSE(holds_fault(clean));
  EXPECT_EQ(clean.words[0], 0x3f800000u);
  EXPECT_EQ(clean.words[3], 0x00004000u);
}

}  // namespace
}  // namespace quire::gpu::test::kv_codes_test
