#include "core/model/source/digest.h"

#include <gtest/gtest.h>

#include <set>
#include <span>

#include "core/model/weights.h"
#include "tests/core/model/fake_ops.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::digest_test {
namespace {

using testing::filled;
using testing::fitting_tensors;
using testing::kTinyLlama;
using testing::safetensors_file;
using testing::TempDir;
using testing::TestTensor;

std::uint64_t digest_of(const std::vector<TestTensor>& tensors) {
  const TempDir dir;
  dir.write("model.safetensors", safetensors_file(tensors));
  const auto files = ModelFiles::directory(dir.path());
  return checkpoint_digest(Checkpoint::open(*files));
}

ModelSpec tiny() { return parse_config(kTinyLlama, "config.json"); }

TEST(HashBytes, DiffersForEveryLengthAndEveryBitOfAShortText) {
  std::set<std::uint64_t> seen;
  std::string text(200, '\0');
  for (std::size_t length = 0; length <= text.size(); ++length) {
    EXPECT_TRUE(seen.insert(hash_bytes(std::as_bytes(std::span(text.data(), length)), 0)).second) << length;
  }
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(seen.insert(hash_bytes(std::as_bytes(std::span(flipped)), 0)).second) << bit;
  }
}

TEST(HashBytes, HasNoMultiplicandThatSwallowsTheRest) {
  // A word equal to a lane's secret makes that product zero; the other word must still count.
  std::set<std::uint64_t> seen;
  for (std::uint64_t other = 0; other < 1000; ++other) {
    const std::uint64_t words[2] = {0x9e3779b97f4a7c15u, other};
    EXPECT_TRUE(seen.insert(hash_bytes(std::as_bytes(std::span(words)), 0)).second) << other;
  }
}

TEST(CheckpointDigest, ChangesWithAnyByteNameDtypeOrShapeAndNotWithTheOrderInTheFile) {
  std::vector<TestTensor> tensors = {filled("a", "F32", {4, 4}), filled("b", "F32", {8})};
  const std::uint64_t original = digest_of(tensors);
  EXPECT_EQ(digest_of(tensors), original);
  std::swap(tensors[0], tensors[1]);
  EXPECT_EQ(digest_of(tensors), original);
  std::swap(tensors[0], tensors[1]);

  std::set<std::uint64_t> seen = {original};
  for (std::size_t byte = 0; byte < tensors[0].data.size(); ++byte) {
    std::vector<TestTensor> changed = tensors;
    changed[0].data[byte] = static_cast<char>(changed[0].data[byte] ^ 0x10);
    EXPECT_TRUE(seen.insert(digest_of(changed)).second) << byte;
  }
  std::vector<TestTensor> changed = tensors;
  changed[0].shape = {2, 8};
  EXPECT_TRUE(seen.insert(digest_of(changed)).second);
  changed = tensors;
  changed[0].name = "c";
  EXPECT_TRUE(seen.insert(digest_of(changed)).second);
  changed = tensors;
  changed[0].dtype = "I32";
  EXPECT_TRUE(seen.insert(digest_of(changed)).second);
}

TEST(CheckpointDigest, IsTheSameForShardsAndForOneFile) {
  const TestTensor a = filled("a", "F32", {4});
  const TestTensor b = filled("b", "BF16", {4});
  const TempDir dir;
  dir.write("model.safetensors.index.json", R"({"weight_map": {"a": "2.safetensors", "b": "1.safetensors"}})");
  dir.write("1.safetensors", safetensors_file({b}));
  dir.write("2.safetensors", safetensors_file({a}));
  const auto files = ModelFiles::directory(dir.path());
  EXPECT_EQ(checkpoint_digest(Checkpoint::open(*files)), digest_of({a, b}));
}

TEST(CheckpointDigest, IsWhatLoadingAddsUp) {
  const TempDir dir;
  dir.write("model.safetensors", safetensors_file(fitting_tensors(tiny())));
  const auto files = ModelFiles::directory(dir.path());
  testing::FakeOps ops;
  EXPECT_EQ(load_weights(ops, tiny(), *files).digest(), checkpoint_digest(Checkpoint::open(*files)));
}

}  // namespace
}  // namespace quire::model::digest_test
