// Codes that a checkpoint stores with a scale for each output: they are packed as they are, and multiplied like those
// that packing makes.
#include <cstring>
#include <limits>

#include "core/cpu/pack.h"
#include "core/cpu/tensors.h"
#include "tests/core/cpu/plain_quantised.h"

namespace quire::cpu::test::stored_codes_test {
namespace {

// Any codes but NaN, -128 among those of int8; scales of any sign and size.
struct Stored {
  Stored(Format format, std::uint32_t n, std::uint32_t k, std::uint64_t seed)
      : plain{k, k, {}, {}}, matrix{n, k, format, {}, {}} {
    constexpr float kLargest = std::numeric_limits<float>::max();
    constexpr float kExtremes[] = {0.0f, 0x1p-149f, -0x1.8p-130f, 0x1p-126f, kLargest / 1e6f};
    Random random(seed);
    for (std::uint32_t row = 0; row < n; ++row) {
      for (std::uint32_t i = 0; i < k; ++i) {
        auto code = static_cast<std::uint8_t>(i % 29 == 0 ? 0x80 : random.below(256));
        if (format == Format::kFp8 && (code & 0x7f) == 0x7f) code = 0;
        matrix.bits.push_back(code);
        plain.codes.push_back(format == Format::kFp8 ? f32_of_fp8(code)
                                                     : static_cast<float>(static_cast<std::int8_t>(code)));
      }
      const float scale = row % 7 == 3 ? kExtremes[row / 7 % std::size(kExtremes)] : random.uniform(0.01f);
      plain.scales.push_back(scale);
      std::uint8_t bytes[sizeof(scale)];
      std::memcpy(bytes, &scale, sizeof(scale));
      matrix.bits.insert(matrix.bits.end(), std::begin(bytes), std::end(bytes));
    }
  }
  Plain plain;
  Matrix matrix;
};

constexpr std::pair<Format, Format> kKinds[] = {{Format::kInt8, Format::kInt8},
                                                {Format::kInt8, Format::kW8A8},
                                                {Format::kInt8, Format::kW8A8PerRow},
                                                {Format::kFp8, Format::kFp8}};

TEST(StoredCodes, AreTheRowsOfTheWeight) {
  for (const auto& [stored, format] : kKinds) {
    const Stored w(stored, 40, 259, 61);
    const auto ops = make_ops("auto", 2);
    const auto packed = ops->pack({{w.matrix.view()}}, {}, format);
    std::vector<float> row(w.matrix.k);
    const std::vector<float> expected = w.plain.widened();
    for (std::uint32_t n = 0; n < w.matrix.n; ++n) {
      unpack_row(dynamic_cast<const PackedWeight&>(*packed), n, row.data());
      EXPECT_TRUE(same_bits(row, std::span(expected).subspan(std::size_t{n} * w.matrix.k, w.matrix.k)))
          << backend::name_of(format) << " row " << n;
    }
  }
}

TEST(StoredCodes, AreMultipliedBitForBitWhateverTheInstructionSet) {
  for (const auto& [stored, format] : kKinds) {
    for (const std::uint32_t k : {1u, 31u, 256u, 259u, 600u}) {
      const Stored w(stored, 37, k, 62 + k);
      constexpr std::uint32_t kRows = 5;
      Random random(k);
      std::vector<float> x = random.floats(std::size_t{kRows} * k);
      for (std::uint32_t i = 0; i < k; ++i) x[i] = 1.0f;  // the largest code at every input
      std::vector<float> expected;
      for (std::size_t r = 0; r < kRows; ++r) {
        const auto row = std::span(x).subspan(r * k, k);
        const PlainRow coded = quantised_row(row, format == Format::kW8A8PerRow ? k : 256);
        for (std::size_t n = 0; n < w.matrix.n; ++n) {
          const float sum = format.in_integers() ? plain_dot_in_integers(coded, w.plain, n, format)
                                                 : plain_dot(row, w.plain, n, format);
          expected.push_back(sum * w.plain.scales[n]);
        }
      }
      for (const std::string& isa : supported_isas()) {
        const auto ops = make_ops(isa, 1);
        const auto packed = ops->pack({{w.matrix.view()}}, {}, format);
        EXPECT_TRUE(same_bits(run_linear(*ops, x, *packed, kRows), expected))
            << isa << " " << backend::name_of(format) << " k " << k;
      }
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::stored_codes_test
