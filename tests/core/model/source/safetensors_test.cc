#include "core/model/source/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/quantized/decoder_checkpoint.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::safetensors_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal;
using testing::safetensors_file;
using testing::TempDir;
using testing::TestTensor;
using testing::with_length;

std::vector<Tensor> parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "dir/model.safetensors");
}
std::string refused(const std::string& file) {
  return refusal([&] { parse(file); });
}
std::string refused(const std::string& header, const std::string& data) { return refused(with_length(header, data)); }

const std::string kTwoFloats = R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})";

TEST(Safetensors, GivesEachTensorItsDtypeShapeAndBytes) {
  const std::string file =
      safetensors_file({{"a", "F32", {1, 2}, "abcdefgh"}, {"b", "BF16", {}, "xy"}, {"c", "I64", {0}, ""}});
  const std::vector<Tensor> tensors = parse(file);
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_THAT(tensors[0].shape, ElementsAre(1u, 2u));
  EXPECT_EQ(tensors[0].format(), std::optional(backend::Format::kF32));
  EXPECT_EQ(tensors[0].data.size(), 8u);
  EXPECT_EQ(std::to_integer<char>(tensors[0].data[0]), 'a');
  const Tensor& scalar = tensors[1].name == "b" ? tensors[1] : tensors[2];
  EXPECT_EQ(scalar.num_elements(), 1u);
  EXPECT_EQ(scalar.format(), std::optional(backend::Format::kBF16));
}

TEST(Safetensors, TakesHeadersInAnyOrderAndPaddedWithSpaces) {
  const std::string header = R"({"b": {"data_offsets": [4, 8], "shape": [1], "dtype": "F32"},
    "a": {"shape": [1], "dtype": "F32", "data_offsets": [0, 4]}, "__metadata__": {"format": "pt"}}   )";
  EXPECT_EQ(parse(with_length(header, "12345678")).size(), 2u);
}

TEST(Safetensors, OffersDtypesItDoesNotComputeWithByName) {
  const std::vector<Tensor> tensors = parse(safetensors_file({{"w", "F8_E4M3", {4}, "abcd"}}));
  EXPECT_EQ(tensors[0].dtype, "F8_E4M3");
  EXPECT_EQ(tensors[0].format(), std::nullopt);
}

TEST(Safetensors, UnescapesNames) {
  EXPECT_EQ(parse(with_length(R"({"\u0061\"": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}})", ""))[0].name,
            "a\"");
}

TEST(Safetensors, RefusesAFileShorterThanItsLengthField) {
  for (std::size_t bytes = 0; bytes < 8; ++bytes)
    EXPECT_THAT(refused(std::string(bytes, '\0')), HasSubstr("header length"));
}

TEST(Safetensors, RefusesAHeaderThatOverrunsTheFile) {
  const std::string file = with_length(kTwoFloats, "12345678");
  for (std::size_t bytes = 8; bytes < 8 + kTwoFloats.size(); ++bytes) {
    EXPECT_THAT(refused(file.substr(0, bytes)), HasSubstr("exceeds the file"));
  }
}

TEST(Safetensors, RefusesEveryTruncationOfTheData) {
  const std::string file = with_length(kTwoFloats, "12345678");
  EXPECT_EQ(refused(file), "");
  for (std::size_t bytes = 8 + kTwoFloats.size(); bytes < file.size(); ++bytes) {
    EXPECT_THAT(refused(file.substr(0, bytes)),
                AllOf(HasSubstr("dir/model.safetensors"), HasSubstr("'w'"), HasSubstr("truncated")));
  }
}

TEST(Safetensors, RefusesAHeaderBeyondTheFormatsLimit) {
  for (const std::uint64_t length : {kMaxHeaderBytes + 1, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    std::string file(64, ' ');
    std::memcpy(file.data(), &length, sizeof(length));
    EXPECT_THAT(refused(file), HasSubstr("exceeds the format's limit"));
  }
}

TEST(Safetensors, RefusesWhatIsNotAHeader) {
  for (const std::string header : {"", "{", "nonsense", "{}}", "{} {}", R"({"w": )"})
    EXPECT_THAT(refused(header, ""), HasSubstr("header")) << header;
  for (const std::string header :
       {"[]",
        "3",
        "\"x\"",
        "null",
        "true",
        R"({"w": 3})",
        R"({"w": []})",
        R"({"w": null})",
        R"({"w": {}})",
        R"({"": {}})",
        R"({"w": {"dtype": 3, "shape": [], "data_offsets": [0, 0]}})",
        R"({"w": {"dtype": "F32", "shape": 3, "data_offsets": [0, 0]}})",
        R"({"w": {"dtype": "F32", "shape": [[1]], "data_offsets": [0, 0]}})",
        R"({"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 0]}})",
        R"({"w": {"dtype": "F32", "shape": [1.5], "data_offsets": [0, 0]}})",
        R"({"w": {"dtype": "F32", "shape": ["1"], "data_offsets": [0, 0]}})",
        R"({"w": {"dtype": "F32", "shape": [{}], "data_offsets": [0, 0]}})",
        R"({"w": {"dtype": "F32", "shape": [], "data_offsets": [0]}})",
        R"({"w": {"dtype": "F32", "shape": [], "data_offsets": [0, 1, 2]}})",
        R"({"w": {"dtype": "F32", "shape": []}})",
        R"({"w": {"dtype": "F32", "shape": [18446744073709551616], "data_offsets": [0, 0]}})",
        R"({"w": {"dtype": "F32", "shape": [], "data_offsets": [0, 0], "more": 1}})",
        R"({"w": {"dtype": "F32", "dtype": "F32", "shape": [], "data_offsets": [0, 0]}})",
        R"({"w": {"dtype": "F32", "shape": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1], "data_offsets": [0, 4]}})",
        R"({"__metadata__": {"a": 3}})",
        R"({"__metadata__": {"a": {}}})",
        R"({"__metadata__": 3})"}) {
    EXPECT_THAT(refused(header, ""), HasSubstr("dir/model.safetensors: safetensors header: ")) << header;
  }
}

TEST(Safetensors, RefusesANameThatIsThereTwice) {
  const std::string entry = R"("w": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})";
  EXPECT_THAT(refused("{" + entry + ", " + entry + "}", ""), AllOf(HasSubstr("'w'"), HasSubstr("twice")));
}

TEST(Safetensors, RefusesOffsetsThatOverlapLeaveHolesOrRunBackwards) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": )" + a +
           R"(}, "b": {"dtype": "F32", "shape": [1], "data_offsets": )" + b + "}}";
  };
  EXPECT_EQ(refused(two("[0, 4]", "[4, 8]"), "12345678"), "");
  EXPECT_THAT(refused(two("[0, 4]", "[0, 4]"), "1234"), HasSubstr("inside the tensor before it"));
  EXPECT_THAT(refused(two("[0, 4]", "[3, 7]"), "1234567"), HasSubstr("inside the tensor before it"));
  EXPECT_THAT(refused(two("[0, 4]", "[5, 9]"), "123456789"), HasSubstr("belong to no tensor"));
  EXPECT_THAT(refused(two("[0, 4]", "[4, 8]"), "123456789"), HasSubstr("the last 1 bytes belong to no tensor"));
  EXPECT_THAT(refused(two("[0, 4]", "[8, 4]"), "12345678"), HasSubstr("end before they begin"));
  EXPECT_THAT(refused(two("[0, 4]", "[18446744073709551612, 18446744073709551615]"), "12345678"),
              HasSubstr("exceed the file's data"));
}

TEST(Safetensors, RefusesALengthThatIsNotShapeTimesDtype) {
  const auto one = [](const std::string& dtype, const std::string& shape) {
    return refused(R"({"w": {"dtype": ")" + dtype + R"(", "shape": )" + shape + R"(, "data_offsets": [0, 8]}})",
                   "12345678");
  };
  EXPECT_EQ(one("F32", "[2]"), "");
  EXPECT_EQ(one("BF16", "[2, 2]"), "");
  EXPECT_THAT(one("F32", "[3]"), AllOf(HasSubstr("'w'"), HasSubstr("holds 8 bytes; F32 [3] needs 12")));
  EXPECT_THAT(one("F16", "[2]"), HasSubstr("needs 4"));
  EXPECT_THAT(one("F32", "[4294967296, 4294967296]"), HasSubstr("more than 2^64"));
  EXPECT_THAT(one("F64", "[2305843009213693953]"), HasSubstr("more than 2^64 bytes"));
}

const std::string kIndex =
    R"({"metadata": {"total_size": 8}, "weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})";

std::string open_refused(const TempDir& dir) {
  return refusal([&] { Checkpoint::open(*ModelFiles::directory(dir.path())); });
}

TEST(Checkpoint, ReadsShardsAndKeepsEachTensorsFile) {
  const TempDir dir;
  dir.write("model.safetensors.index.json", kIndex);
  dir.write("one.safetensors", safetensors_file({{"a", "F32", {1}, "1234"}}));
  dir.write("two.safetensors", safetensors_file({{"b", "BF16", {2}, "5678"}}));
  const auto files = ModelFiles::directory(dir.path());
  const Checkpoint checkpoint = Checkpoint::open(*files);
  ASSERT_NE(checkpoint.find("b"), nullptr);
  EXPECT_EQ(checkpoint.find("b")->file, dir.path() + "/two.safetensors");
  EXPECT_EQ(checkpoint.find("c"), nullptr);
  EXPECT_EQ(checkpoint.num_parameters(), 3u);
  EXPECT_EQ(checkpoint.bytes(), 8u);
}

TEST(Checkpoint, TakesWhatTheIndexNamesAndNotASingleFileBesideIt) {
  const TempDir dir;
  dir.write("model.safetensors.index.json", kIndex);
  dir.write("one.safetensors", safetensors_file({{"a", "F32", {1}, "1234"}}));
  dir.write("two.safetensors", safetensors_file({{"b", "F32", {1}, "5678"}}));
  dir.write("model.safetensors", safetensors_file({{"a", "F32", {2}, "12345678"}, {"c", "F32", {1}, "1234"}}));
  const auto files = ModelFiles::directory(dir.path());
  const Checkpoint checkpoint = Checkpoint::open(*files);
  EXPECT_EQ(checkpoint.find("a")->file, dir.path() + "/one.safetensors");
  EXPECT_EQ(checkpoint.find("c"), nullptr);
  EXPECT_THAT(checkpoint.files(), ElementsAre("one.safetensors", "two.safetensors"));
  dir.write("model.safetensors.index.json", R"({"weight_map": {"a": "model.safetensors", "c": "model.safetensors"}})");
  const auto again = ModelFiles::directory(dir.path());
  EXPECT_THAT(Checkpoint::open(*again).files(), ElementsAre("model.safetensors"));
}

TEST(Checkpoint, ReadsTheSingleFileWhereAllThatTheIndexNamesIsGone) {
  const TempDir dir;
  dir.write("model.safetensors.index.json", kIndex);
  dir.write("model.safetensors", safetensors_file({{"c", "F32", {1}, "1234"}}));
  const auto files = ModelFiles::directory(dir.path());
  EXPECT_THAT(Checkpoint::open(*files).files(), ElementsAre("model.safetensors"));
  dir.write("one.safetensors", safetensors_file({{"a", "F32", {1}, "1234"}}));  // a part of it is damage
  EXPECT_THAT(open_refused(dir), HasSubstr("two.safetensors is missing"));
}

TEST(Checkpoint, NamesADecodersTensorsAsItsModelDoes) {
  const TempDir dir;
  const auto names = [&](const std::string& one, const std::string& two) {
    dir.write("model.safetensors", safetensors_file({{one, "F32", {1}, "1234"}, {two, "F32", {1}, "5678"}}));
    const auto files = ModelFiles::directory(dir.path());
    std::string reported;
    const Checkpoint checkpoint = open_decoder(*files);
    for (const auto& [name, tensor] : checkpoint.tensors()) reported += name + " ";
    return reported;
  };
  EXPECT_EQ(names("embed_tokens.weight", "norm.weight"), "model.embed_tokens.weight model.norm.weight ");
  EXPECT_EQ(names("embed_tokens.weight", "lm_head.weight"), "lm_head.weight model.embed_tokens.weight ");
  EXPECT_EQ(names("model.embed_tokens.weight", "norm.weight"), "model.embed_tokens.weight norm.weight ");
}

TEST(Checkpoint, TakesATensorFromTheShardThatWeightMapNamesAndIgnoresOtherCopies) {
  const TempDir dir;
  dir.write("model.safetensors.index.json", kIndex);
  // A copy before the one that is named, one behind it, and one of a tensor that nobody names.
  dir.write("one.safetensors",
            safetensors_file({{"a", "F32", {1}, "1234"}, {"b", "F32", {2}, "12345678"}, {"x", "F32", {1}, "1111"}}));
  dir.write("two.safetensors",
            safetensors_file({{"a", "BF16", {2}, "5678"}, {"b", "F32", {1}, "5678"}, {"x", "F32", {1}, "2222"}}));
  const auto files = ModelFiles::directory(dir.path());
  const Checkpoint checkpoint = Checkpoint::open(*files);
  EXPECT_EQ(checkpoint.tensors().size(), 3u);
  EXPECT_EQ(checkpoint.find("a")->file, dir.path() + "/one.safetensors");
  EXPECT_EQ(checkpoint.find("b")->file, dir.path() + "/two.safetensors");
  EXPECT_EQ(checkpoint.find("b")->num_elements(), 1u);
  EXPECT_EQ(checkpoint.find("x")->file, dir.path() + "/one.safetensors");
}

TEST(Checkpoint, RefusesShardsThatDoNotMatchTheirIndex) {
  const TempDir dir;
  EXPECT_THAT(open_refused(dir), AllOf(HasSubstr("model.safetensors is missing"), HasSubstr("index.json")));
  dir.write("model.safetensors.index.json", R"({"metadata": {}})");
  EXPECT_THAT(open_refused(dir), HasSubstr("'weight_map' is missing"));
  dir.write("model.safetensors.index.json", R"({"weight_map": {"a": 3}})");
  EXPECT_THAT(open_refused(dir), HasSubstr("'weight_map.a' is 3"));
  dir.write("model.safetensors.index.json", R"({"weight_map": {"a": "../secret.safetensors"}})");
  EXPECT_THAT(open_refused(dir), AllOf(HasSubstr("../secret.safetensors"), HasSubstr("same directory")));
  dir.write("model.safetensors.index.json", kIndex);
  dir.write("one.safetensors", safetensors_file({{"a", "F32", {1}, "1234"}}));
  EXPECT_THAT(open_refused(dir), AllOf(HasSubstr("two.safetensors is missing"), HasSubstr("index.json names it")));
  dir.write("two.safetensors", safetensors_file({{"c", "F32", {1}, "1234"}}));
  EXPECT_THAT(open_refused(dir), AllOf(HasSubstr("two.safetensors: tensor 'b' is missing")));
  // It is in another file than the index says.
  dir.write("one.safetensors", safetensors_file({{"a", "F32", {1}, "1234"}, {"b", "F32", {1}, "1234"}}));
  EXPECT_THAT(open_refused(dir), HasSubstr("two.safetensors: tensor 'b' is missing"));
}

}  // namespace
}  // namespace quire::model::safetensors_test
