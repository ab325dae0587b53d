// Rows as codes: what every table makes of a row. Rows in bf16 are seen through products alone: gemm_pairs_test.cc.
#include "core/cpu/row_coder.h"

#include "core/cpu/isa/select.h"
#include "tests/core/cpu/plain_quantised.h"

namespace quire::cpu::test::row_coder_test {
namespace {

HostBuffer buffer_of(const std::vector<float>& x, std::uint32_t rows) {
  const auto k = static_cast<std::uint32_t>(x.size() / rows);
  HostBuffer buffer(rows, k);
  for (std::size_t r = 0; r < rows; ++r) std::copy_n(x.data() + r * k, k, buffer.row(r));
  return buffer;
}

// Of k inputs, that wants codes.
PackedWeight weight_of(std::uint32_t k, backend::Format type = backend::Format::kW8A8) {
  return PackedWeight(backend::WeightShape{1, k, type, false});
}

// The first `rows` rows of x, coded one by one.
CodedRows coded_rows(RowCoder& coder, const std::string& isa, const HostBuffer& x, std::uint32_t rows) {
  const PackedWeight w = weight_of(x.width());
  for (std::uint32_t row = 0; row < rows; ++row) coder.code_row(select_kernels(isa), w, x, row);
  return coder.rows(w, 0);
}

void expect_plain(const std::string& isa, std::uint32_t rows, std::uint32_t k) {
  SCOPED_TRACE(isa + " rows " + std::to_string(rows) + " k " + std::to_string(k));
  Random random(rows * 31 + k);
  const std::vector<float> x = random.floats(std::size_t{rows} * k, 5.0f);
  RowCoder coder(rows);
  coder.reserve(weight_of(k));
  const CodedRows coded = coded_rows(coder, isa, buffer_of(x, rows), rows);
  for (std::size_t r = 0; r < rows; ++r) {
    const PlainRow plain = quantised_row(std::span(x).subspan(r * k, k));
    const std::int8_t* codes = coded.codes + r * coded.code_stride;
    for (std::size_t i = 0; i < k; ++i) ASSERT_EQ(codes[i], plain.codes[i]) << "row " << r << " at " << i;
    for (std::size_t i = k; i < (k + 255) / 256 * 256; ++i) ASSERT_EQ(codes[i], 0) << "row " << r << " at " << i;
    for (std::size_t g = 0; g < plain.scales.size(); ++g) {
      ASSERT_EQ(coded.groups[r * coded.group_stride + g].scale, plain.scales[g]) << "row " << r << " group " << g;
    }
  }
}

TEST(RowCoder, GivesThePlainCodesAndScalesOnEveryInstructionSet) {
  for (const std::string& isa : supported_isas()) {
    for (const std::uint32_t k : {1u, 15u, 16u, 17u, 255u, 256u, 257u, 1000u}) expect_plain(isa, 3, k);
  }
}

TEST(RowCoder, RoundsTiesToEven) {
  std::vector<float> x(16, 0.0f);
  x[0] = 127.0f;
  x[1] = 0.5f;
  x[2] = 1.5f;
  x[3] = -2.5f;
  x[4] = -127.0f;
  for (const std::string& isa : supported_isas()) {
    RowCoder coder(1);
    coder.reserve(weight_of(16));
    const CodedRows coded = coded_rows(coder, isa, buffer_of(x, 1), 1);
    EXPECT_EQ(std::vector<int>(coded.codes, coded.codes + 6), (std::vector<int>{127, 0, 2, -2, -127, 0})) << isa;
    EXPECT_EQ(coded.groups[0].scale, 1.0f);
  }
}

TEST(RowCoder, KeepsItsRoomWhereLessIsAskedFor) {
  RowCoder coder(2);
  coder.reserve(weight_of(600));
  coder.reserve(weight_of(16));
  const HostBuffer x = buffer_of(std::vector<float>(1200, 1.0f), 2);
  EXPECT_EQ(coded_rows(coder, "auto", x, 2).codes[599], 127);
}

TEST(RowCoderDeathTest, RefusesMoreRowsOrInputsThanThereIsRoomFor) {
  const Kernels& kernels = select_kernels("auto");
  const HostBuffer wide(2, 257);
  const HostBuffer deep(3, 256);
  RowCoder coder(2);
  coder.reserve(weight_of(256));
  EXPECT_DEATH(coder.code_row(kernels, weight_of(257), wide, 0), "CHECK failed.*scale_bytes_of");
  EXPECT_DEATH(coder.code_row(kernels, weight_of(256), deep, 2), "CHECK failed.*row");
  EXPECT_DEATH(coder.code_row(kernels, weight_of(256), wide, 0), "CHECK failed.*width");
  EXPECT_DEATH(coder.code_row(kernels, weight_of(257, backend::Format::kW16A16), wide, 0), "CHECK failed.*stride");
}

TEST(RowCoder, HasRoomForBothKindsOfRowsAtOnce) {
  RowCoder coder(2);
  coder.reserve(weight_of(600));
  coder.reserve(weight_of(300, backend::Format::kW16A16));
  const HostBuffer x = buffer_of(std::vector<float>(1200, 1.0f), 2);
  EXPECT_EQ(coded_rows(coder, "auto", x, 2).codes[599], 127);
  const PackedWeight rounded = weight_of(300, backend::Format::kW16A16);
  const HostBuffer narrow = buffer_of(std::vector<float>(600, 1.0f), 2);
  for (const std::uint32_t row : {0u, 1u}) coder.code_row(select_kernels("auto"), rounded, narrow, row);
  EXPECT_EQ(coder.rows(rounded, 1).groups, coder.rows(rounded, 0).groups);
}

}  // namespace
}  // namespace quire::cpu::test::row_coder_test
