// A packed weight is its bytes: taken back, wherever they lie, they are the same weight.
#include "core/cpu/tensors.h"

#include <atomic>
#include <iterator>
#include <map>
#include <set>

#include "tests/core/cpu/rig.h"

namespace quire::cpu::test::tensors_test {
namespace {

using backend::Format;
using backend::WeightShape;

constexpr std::uint32_t kOutputs = 37;
constexpr std::uint32_t kInputs = 203;

struct Kind {
  Format dtype;
  std::optional<Format> quantize;
};
constexpr Kind kKinds[] = {
    {Format::kF32, std::nullopt},   {Format::kBF16, std::nullopt},    {Format::kF16, std::nullopt},
    {Format::kBF16, Format::kInt8}, {Format::kBF16, Format::kInt4},   {Format::kBF16, Format::kW8A8},
    {Format::kBF16, Format::kW4A8}, {Format::kBF16, Format::kW16A16}, {Format::kBF16, Format::kFp8}};

// The same numbers every time.
std::unique_ptr<backend::Weight> packed(backend::Ops& ops, const Kind& kind, bool has_bias) {
  Random random(11);
  const Matrix matrix = random_matrix(random, kOutputs, kInputs, kind.dtype, 0.5f);
  const backend::HostMatrix view = matrix.view();
  const std::vector<float> bias = random.floats(kOutputs);
  const std::vector<std::span<const float>> biases(has_bias ? 1 : 0, std::span<const float>(bias));
  return ops.pack({&view, 1}, biases, kind.quantize);
}

std::vector<float> product(backend::Ops& ops, const backend::Weight& w) {
  Random random(12);
  const OwnedBatch batch = plain_rows(3);
  ops.begin(batch.view());
  const auto x = ops.make_buffer(3, kInputs);
  fill(ops, *x, random.floats(3 * kInputs));
  const auto out = ops.make_buffer(3, w.n());
  ops.linear(*x, w, 3, *out);
  return read(ops, *out, 3);
}

std::shared_ptr<std::vector<std::byte>> room(std::size_t bytes) {
  return std::make_shared<std::vector<std::byte>>(bytes + 128);
}
// Bytes that begin `shift` behind a cache line.
std::span<std::byte> aligned(std::vector<std::byte>& room, std::size_t bytes, std::size_t shift = 0) {
  const auto at = reinterpret_cast<std::uintptr_t>(room.data());
  return std::span(room).subspan((at + 63) / 64 * 64 - at + shift, bytes);
}

TEST(PackedWeight, WantsCodesOfItsInputsOnlyWhereItIsMultipliedByThem) {
  const auto ops = make_ops("auto", 1);
  std::set<std::string> tried;
  for (const Kind& kind : kKinds) {
    const auto weight = packed(*ops, kind, false);
    const std::string name = name_of(weight->format());
    tried.insert(name);
    const bool wants = name == "w8a8" || name == "w4a8" || name == "w16a16";
    EXPECT_EQ(dynamic_cast<const PackedWeight&>(*weight).wants_codes(), wants) << name;
  }
  EXPECT_EQ(tried.size(), std::size(backend::kNamedFormats)) << "each format of weights is among them";
}

TEST(PackedWeight, AdoptedFromItsBytesIsTheSameWeightAndStaysWhereItLies) {
  const auto ops = make_ops("auto", 2);
  for (const Kind& kind : kKinds) {
    for (const bool has_bias : {false, true}) {
      const auto made = packed(*ops, kind, has_bias);
      SCOPED_TRACE(backend::name_of(made->format()));
      const auto owner = room(made->bytes());
      const std::span<std::byte> bytes = aligned(*owner, made->bytes());
      std::ranges::copy(made->packed(), bytes.begin());
      const auto adopted = ops->adopt({made->n(), made->k(), made->format(), has_bias}, bytes, owner);
      ASSERT_NE(adopted, nullptr);
      EXPECT_EQ(adopted->packed().data(), bytes.data());
      EXPECT_EQ(adopted->bytes(), made->bytes());
      EXPECT_EQ(owner.use_count(), 2) << "kept as long as the weight";
      EXPECT_TRUE(same_bits(product(*ops, *adopted), product(*ops, *made)));
    }
  }
}

TEST(PackedWeight, IsNotAdoptedFromAnotherNumberOfBytesOrOffACacheLine) {
  const auto ops = make_ops("auto", 1);
  const auto owner = room(kOutputs * kInputs * 8);
  for (const Format type : backend::kNamedFormats) {
    for (const bool has_bias : {false, true}) {
      const WeightShape shape{kOutputs, kInputs, type, has_bias};
      const std::size_t bytes = packed_bytes(shape);
      EXPECT_EQ(ops->adopt(shape, aligned(*owner, bytes - 1), owner), nullptr);
      EXPECT_NE(ops->adopt(shape, aligned(*owner, bytes), owner), nullptr);
      EXPECT_EQ(ops->adopt(shape, aligned(*owner, bytes + 1), owner), nullptr);
      EXPECT_EQ(ops->adopt(shape, aligned(*owner, bytes, 32), owner), nullptr);
      EXPECT_EQ(ops->adopt(shape, {}, nullptr), nullptr);
    }
  }
}

TEST(PackedWeight, ItsBytesAreTheOnesThatTheLayoutsNumberStandsFor) {
  // Files of packed weights outlive the program. Where a number here has to change, PackedWeight::kLayout has to as well.
  ASSERT_STREQ(PackedWeight::kLayout, "cpu panels/2");
  const std::map<std::string, std::uint64_t> expected = {
      {"f32", 1259359140827751580u},   {"bf16", 11131593017623759230u},   {"f16", 13385582688933011221u},
      {"int8", 6981676631092175802u},  {"int4", 17560207428461305006u},   {"w8a8", 9854209417539209368u},
      {"w4a8", 17560207428461305006u}, {"w16a16", 11131593017623759230u}, {"fp8", 15195062566378864199u}};
  const auto ops = make_ops("auto", 1);
  for (const Kind& kind : kKinds) {
    const auto made = packed(*ops, kind, /*has_bias=*/true);
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const std::byte b : made->packed()) hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
    EXPECT_EQ(hash, expected.at(backend::name_of(made->format()))) << backend::name_of(made->format());
  }
}

TEST(CpuOps, RunsEveryPartOnce) {
  for (const std::uint32_t threads : {1u, 3u}) {
    const auto ops = make_ops("auto", threads);
    for (const std::uint32_t count : {0u, 1u, 2u, 1000u}) {
      std::vector<std::atomic<int>> runs(count);
      ops->for_parts(count, [&](std::uint32_t i) { ++runs[i]; });
      for (const auto& run : runs) EXPECT_EQ(run, 1);
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::tensors_test
