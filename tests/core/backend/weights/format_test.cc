#include "core/backend/weights/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace quire::backend {
namespace {

Format in_groups_of_64() {
  Format format = Format::kInt4;
  format.group = 64;
  return format;
}

TEST(Formats, WithShortNamesAllHaveAnotherName) {
  std::set<std::string> names;
  for (const Format format : kNamedFormats) names.insert(name_of(format));
  EXPECT_EQ(names.size(), kNamedFormats.size());
  EXPECT_EQ(name_of(Format::kBF16), "bf16");
  EXPECT_EQ(name_of(Format::kW16A16), "w16a16");
  EXPECT_EQ(name_of(Format::kFp8), "fp8");
}

TEST(Formats, AreNamedByTheirFieldsOtherwise) {
  EXPECT_EQ(name_of(in_groups_of_64()), "int4 in groups of 64 with bf16 scales among the codes");
  Format format = in_groups_of_64();
  format.scale = Format::Scale::kF32;
  format.scale_place = Format::ScalePlace::kBehind;
  format.zero_point = Format::ZeroPoint::kPerGroup;
  format.activation = Format::Activation::kInt8;
  EXPECT_EQ(name_of(format), "int4 in groups of 64 with f32 scales, with zero points, times int8");
  format = Format::kFp8;
  format.activation = Format::Activation::kBF16;
  EXPECT_EQ(name_of(format), "fp8 with an f32 scale per output, times bf16");
}

TEST(Formats, DifferInEachField) {
  for (const Format a : kNamedFormats) {
    for (const Format b : kNamedFormats) EXPECT_EQ(a == b, name_of(a) == name_of(b));
  }
  EXPECT_NE(in_groups_of_64(), Format::kInt4);
}

TEST(Formats, WithOneScalePerOutputKeepThemBehindTheElements) {
  for (const Format format : kNamedFormats) {
    EXPECT_EQ(has_output_scales(format), format.bits == 8) << name_of(format);
  }
}

TEST(Formats, OfACheckpointArePlainAndTheOthersAreQuantized) {
  EXPECT_THAT(kPlainFormats, testing::ElementsAre(Format::kF32, Format::kBF16, Format::kF16));
  for (const Format format : kPlainFormats) EXPECT_EQ(format.scale, Format::Scale::kNone);
  EXPECT_EQ(kPlainFormats.size() + kQuantizedFormats.size(), kNamedFormats.size());
}

}  // namespace
}  // namespace quire::backend
