#include "core/model/gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/base/start_error.h"
#include "tests/support/gguf_writer.h"

namespace quire::model {
namespace {

using test::GgufWriter;
using test::kArray;
using test::kBool;
using test::kFloat;
using test::kInt64;
using test::kString;
using test::kUint32;
using test::kUint64;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GgufFile read(const std::string& bytes) { return {std::as_bytes(std::span(bytes)), "x.gguf"}; }

std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const StartError& error) {
    return error.what();
  }
  return "";
}

TEST(GgufFile, HasValuesOfEveryTypeByKey) {
  GgufWriter file;
  file.head(0, 13);
  file.key("u8", 0).put<std::uint8_t>(200);
  file.key("i8", 1).put<std::int8_t>(-3);
  file.key("u16", 2).put<std::uint16_t>(65535);
  file.key("i16", 3).put<std::int16_t>(-300);
  file.key("u32", kUint32).put<std::uint32_t>(4294967295u);
  file.key("i32", 5).put<std::int32_t>(-70000);
  file.key("f32", kFloat).put(0.5f);
  file.key("yes", kBool).put<std::uint8_t>(1);
  file.key("text", kString).text("a\0b");
  file.key("u64", kUint64).put<std::uint64_t>(1ull << 62);
  file.key("i64", kInt64).put<std::int64_t>(-(1ll << 62));
  file.key("f64", 12).put(0.25);
  file.array("words", kString, 2).text("x").text("");
  const GgufFile gguf = read(file.bytes);
  EXPECT_EQ(gguf.uint("u8"), 200u);
  EXPECT_EQ(gguf.integer("i8"), -3);
  EXPECT_EQ(gguf.uint("u16"), 65535u);
  EXPECT_EQ(gguf.integer("i16"), -300);
  EXPECT_EQ(gguf.uint("u32"), 4294967295u);
  EXPECT_EQ(gguf.integer("i32"), -70000);
  EXPECT_EQ(gguf.number("f32"), 0.5);
  EXPECT_EQ(gguf.number("u8"), 200.0);
  EXPECT_EQ(gguf.flag("yes"), true);
  EXPECT_EQ(gguf.text("text"), "a");
  EXPECT_EQ(gguf.uint("u64"), 1ull << 62);
  EXPECT_EQ(gguf.integer("i64"), -(1ll << 62));
  EXPECT_EQ(gguf.number("f64"), 0.25);
  EXPECT_THAT(*gguf.texts("words"), ElementsAre("x", ""));
  EXPECT_EQ(gguf.uint("none"), std::nullopt);
  EXPECT_THAT(*gguf.integers("u16"), ElementsAre(65535));  // a scalar is an array of one
}

TEST(GgufFile, RefusesAValueOfAnotherTypeThanAskedByItsKey) {
  GgufWriter file;
  file.head(0, 4);
  file.key("text", kString).text("x");
  file.key("negative", 5).put<std::int32_t>(-1);
  file.key("large", kUint64).put<std::uint64_t>(~0ull);
  file.array("list", kUint32, 1).put<std::uint32_t>(1);
  const GgufFile gguf = read(file.bytes);
  const auto refused = [](const auto& ask) {
    try {
      ask();
    } catch (const StartError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused([&] { return gguf.uint("text"); }), "x.gguf: key 'text' is no integer of 63 bits");
  EXPECT_EQ(refused([&] { return gguf.uint("negative"); }), "x.gguf: key 'negative' is -1; expected 0 or more");
  EXPECT_EQ(refused([&] { return gguf.uint("large"); }), "x.gguf: key 'large' is no integer of 63 bits");
  EXPECT_EQ(refused([&] { return gguf.uint("list"); }), "x.gguf: key 'list' is an array; expected an integer");
  EXPECT_EQ(refused([&] { return gguf.text("negative"); }), "x.gguf: key 'negative' is no text");
  EXPECT_EQ(refused([&] { return gguf.flag("text"); }), "x.gguf: key 'text' is neither true nor false");
  EXPECT_EQ(refused([&] { return gguf.number("text"); }), "x.gguf: key 'text' is no number");
  EXPECT_EQ(refused([&] { return gguf.numbers("list"); }), "x.gguf: key 'list' is no array of f32");
  EXPECT_EQ(refused([&] { return gguf.texts("list"); }), "x.gguf: key 'list' is no array of texts");
  EXPECT_EQ(refused([&] { return gguf.flags("list"); }), "x.gguf: key 'list' is no array of true and false");
}

std::string two_tensors(std::uint64_t alignment = 32) {
  GgufWriter file;
  file.head(2, 1).key("general.alignment", kUint32).put(static_cast<std::uint32_t>(alignment));
  file.tensor("a", {3, 2}, 0, 0);                                                 // f32: 24 bytes
  file.tensor("b", {32, 2, 1}, 2, (24 + alignment - 1) / alignment * alignment);  // Q4_0: 36 bytes
  return file.pad(alignment).data(24, 1).pad(alignment).data(36, 2).bytes;
}

TEST(GgufFile, HasTensorsWithOutputsFirstAtTheirAlignment) {
  for (const std::uint64_t alignment : {1u, 8u, 32u, 4096u}) {
    const std::string bytes = two_tensors(alignment);
    const GgufFile gguf = read(bytes);
    ASSERT_EQ(gguf.tensors().size(), 2u);
    const GgufTensor& a = gguf.tensors()[0];
    EXPECT_EQ(a.name + a.dtype, "aF32");
    EXPECT_THAT(a.shape, ElementsAre(2, 3));
    EXPECT_EQ(a.data.size(), 24u);
    EXPECT_EQ(a.data.front(), std::byte{1});
    const GgufTensor& b = gguf.tensors()[1];
    EXPECT_EQ(b.dtype, "Q4_0");
    EXPECT_THAT(b.shape, ElementsAre(1, 2, 32));
    EXPECT_EQ(b.data.size(), 36u);
    EXPECT_EQ(b.data.front(), std::byte{2});
    EXPECT_EQ(b.data.back(), std::byte{2});
  }
}

TEST(GgufFile, MayBeCutNowhere) {
  const std::string whole = two_tensors();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(refusal(whole.substr(0, length)), "") << length;
  }
  EXPECT_EQ(refusal(whole), "");
  EXPECT_EQ(refusal(whole + "padding"), "");
}

TEST(GgufFile, RefusesOtherVersionsByTheirNumber) {
  EXPECT_THAT(refusal("GGML1234"), HasSubstr("is no GGUF file"));
  EXPECT_THAT(refusal(GgufWriter().head(0, 0, 1).bytes), HasSubstr("version 1 is not read"));
  EXPECT_THAT(refusal(GgufWriter().head(0, 0, 4).bytes), HasSubstr("version 4 is not read"));
  EXPECT_THAT(refusal(GgufWriter().head(0, 0, 0x03000000).bytes), HasSubstr("big-endian"));
  EXPECT_EQ(refusal(GgufWriter().head(0, 0, 2).bytes), "");
}

TEST(GgufFile, RefusesCountsThatTheFileIsTooShortForAtOnce) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  EXPECT_THAT(refusal(GgufWriter().head(0, kMost).bytes), HasSubstr("18446744073709551615 keys"));
  EXPECT_THAT(refusal(GgufWriter().head(kMost, 0).bytes), HasSubstr("18446744073709551615 tensors"));
  EXPECT_THAT(refusal(GgufWriter().head(0, 1).put(kMost).data(100).bytes), HasSubstr("a key at byte"));
  EXPECT_THAT(refusal(GgufWriter().head(0, 1).key("k", kString).put(kMost).data(100).bytes),
              HasSubstr("a string at byte"));
  for (const std::uint32_t type : {0u, kUint32, kFloat, kString, kUint64}) {
    EXPECT_THAT(refusal(GgufWriter().head(0, 1).array("k", type, kMost).data(100).bytes),
                HasSubstr("key 'k' has 18446744073709551615 elements"));
    EXPECT_THAT(refusal(GgufWriter().head(0, 1).array("k", type, kMost / 8 + 2).data(100).bytes),
                HasSubstr("elements"));
  }
}

TEST(GgufFile, RefusesKeysAndTypesThatCannotBe) {
  EXPECT_THAT(refusal(GgufWriter().head(0, 1).key("k", 13).data(8).bytes),
              HasSubstr("key 'k' has the unknown type 13"));
  EXPECT_THAT(refusal(GgufWriter().head(0, 1).array("k", 99, 1).data(8).bytes), HasSubstr("unknown type 99"));
  EXPECT_THAT(refusal(GgufWriter().head(0, 1).array("k", kArray, 1).data(8).bytes), HasSubstr("is an array of arrays"));
  EXPECT_THAT(refusal(GgufWriter().head(0, 1).key("", kBool).data(8).bytes), HasSubstr("a key has 0 bytes"));
  EXPECT_THAT(refusal(GgufWriter().head(0, 1).key(std::string(1025, 'k'), kBool).data(8).bytes),
              HasSubstr("1025 bytes"));
  EXPECT_EQ(refusal(GgufWriter().head(0, 1).key(std::string(1024, 'k'), kBool).data(8).bytes), "");
  EXPECT_THAT(refusal(GgufWriter().head(0, 2).key("k", 0).data(1).key("k", 0).data(1).bytes),
              HasSubstr("is there twice"));
}

std::string one_tensor(std::vector<std::uint64_t> extents, std::uint32_t type, std::uint64_t offset = 0) {
  return GgufWriter().head(1, 0).tensor("t", std::move(extents), type, offset).pad().data(4096).bytes;
}

TEST(GgufFile, RefusesTensorsThatCannotBeByTheirName) {
  EXPECT_EQ(refusal(one_tensor({32, 32}, 0)), "");
  EXPECT_EQ(refusal(one_tensor({}, 0)), "");
  EXPECT_THAT(refusal(one_tensor({1, 1, 1, 1, 1}, 0)), HasSubstr("tensor 't' has 5 dimensions"));
  EXPECT_THAT(refusal(one_tensor({33}, 2)), HasSubstr("rows of 33 numbers, which are no whole blocks of Q4_0 (32)"));
  EXPECT_THAT(refusal(one_tensor({32, 33}, 0)), HasSubstr("tensor 't' ends beyond the file"));
  EXPECT_THAT(refusal(one_tensor({1ull << 63, 2}, 0)), HasSubstr("which the file is too short for"));
  EXPECT_THAT(refusal(one_tensor({1ull << 40}, 0)), HasSubstr("which the file is too short for"));
  EXPECT_THAT(refusal(one_tensor({32}, 0, 32)), HasSubstr("lies at 32, where 0 was expected"));
  EXPECT_THAT(refusal(one_tensor({32}, 4)), HasSubstr("type 4, which is unknown or was removed"));
  EXPECT_THAT(refusal(one_tensor({32}, 139)), HasSubstr("type 139, which is not of llama.cpp"));
  const auto twice = GgufWriter().head(2, 0).tensor("t", {8}, 0, 0).tensor("t", {8}, 0, 32).pad().data(64).bytes;
  EXPECT_THAT(refusal(twice), HasSubstr("tensor 't' is there twice"));
  const auto overlap = GgufWriter().head(2, 0).tensor("t", {8}, 0, 0).tensor("u", {8}, 0, 0).pad().data(64).bytes;
  EXPECT_THAT(refusal(overlap), HasSubstr("tensor 'u' lies at 0, where 32 was expected"));
}

TEST(GgufFile, RefusesAlignmentsThatAreNoPowerOfTwo) {
  for (const std::uint32_t alignment : {0u, 3u, 48u, 2u << 20}) {
    const auto bytes = GgufWriter().head(0, 1).key("general.alignment", kUint32).put(alignment).bytes;
    EXPECT_THAT(refusal(bytes), AllOf(HasSubstr("general.alignment"), HasSubstr("power of two"))) << alignment;
  }
}

TEST(GgufFile, NamesTheTypeToTakeInsteadOfOneThatIsNotRead) {
  EXPECT_EQ(explain_gguf_type("Q4_K"), "");
  EXPECT_EQ(explain_gguf_type("IQ3_XXS"), "IQ3_XXS, which is not read; take a file of type Q3_K");
  EXPECT_EQ(explain_gguf_type("TQ1_0"), "TQ1_0, which is not read; take a file of type Q2_K");
}

TEST(GgufFile, AnyBytesAreReadOrRefused) {
  std::mt19937 draw(1);
  const std::string whole = two_tensors();
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    for (int change = 0; change < 1 + i % 4; ++change) bytes[draw() % bytes.size()] = static_cast<char>(draw());
    try {
      const GgufFile gguf = read(bytes);
      for (const GgufTensor& tensor : gguf.tensors()) {
        const auto begin = reinterpret_cast<const char*>(tensor.data.data());
        ASSERT_TRUE(tensor.data.empty() ||
                    (begin >= bytes.data() && begin + tensor.data.size() <= bytes.data() + bytes.size()));
      }
    } catch (const StartError&) {
    }
  }
}

}  // namespace
}  // namespace quire::model
