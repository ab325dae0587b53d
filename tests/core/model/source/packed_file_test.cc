// What a file of packed weights gives back is what was packed; whatever else it holds, it is not used.
#include "core/model/source/packed_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>

#include "core/cpu/cpu_ops.h"
#include "core/model/source/digest.h"
#include "tests/core/model/fake_ops.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::packed_file_test {
namespace {

namespace fs = std::filesystem;
using namespace testing;  // the tiny checkpoints
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kKey = 0x123456789abcdef0u;
constexpr std::size_t kPiece = std::size_t{2} << 20;

std::vector<std::byte> some_bytes(std::size_t count, std::uint32_t seed) {
  std::vector<std::byte> out(count);
  for (std::byte& b : out) b = static_cast<std::byte>((seed = seed * 1664525u + 1013904223u) >> 24);
  return out;
}

std::vector<FileBytes> views(const std::vector<std::vector<std::byte>>& weights) {
  return {weights.begin(), weights.end()};
}

// "" where the file is good.
std::string why_not(const std::string& path, std::uint64_t key = kKey) {
  FakeOps ops;
  const Result<PackedFile> file = PackedFile::open(path, key, ops);
  return file ? "" : file.error().message;
}

// A file of three weights, to be damaged.
class PackedFileTest : public ::testing::Test {
 protected:
  PackedFileTest() {
    for (const std::size_t bytes : {5000u, 64u, 12288u}) weights_.push_back(some_bytes(bytes, 7));
    EXPECT_TRUE(write_packed_file(path_, kKey, 99, views(weights_)));
    size_ = fs::file_size(path_);
    fs::permissions(path_, fs::perms::owner_write, fs::perm_options::add);
    fd_ = ::open(path_.c_str(), O_RDWR);
  }
  ~PackedFileTest() override { ::close(fd_); }

  template <typename T>
  T at(std::size_t offset) const {
    T value{};
    EXPECT_EQ(::pread(fd_, &value, sizeof(T), static_cast<off_t>(offset)), static_cast<ssize_t>(sizeof(T)));
    return value;
  }
  template <typename T>
  void put(std::size_t offset, T value) const {
    EXPECT_EQ(::pwrite(fd_, &value, sizeof(T), static_cast<off_t>(offset)), static_cast<ssize_t>(sizeof(T)));
  }
  // As if it had been written so.
  void hash_again() const {
    std::vector<std::byte> first(kPiece);
    EXPECT_EQ(::pread(fd_, first.data(), first.size(), 0), static_cast<ssize_t>(first.size()));
    put(8, hash_bytes(std::span(first).subspan(16), 0));
  }

  TempDir dir_;
  std::string path_ = dir_.path() + "/model.packed";
  std::vector<std::vector<std::byte>> weights_;
  std::size_t size_ = 0;
  int fd_ = -1;
};

TEST_F(PackedFileTest, GivesBackWhatWasWritten) {
  FakeOps ops;
  const Result<PackedFile> file = PackedFile::open(path_, kKey, ops);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->checkpoint_digest(), 99u);
  ASSERT_EQ(file->weights().size(), weights_.size());
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(file->weights()[i], weights_[i]));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file->weights()[i].data()) % 4096, 0u);
  }
}

TEST_F(PackedFileTest, WeightsOfEverySizeAroundPagesAndPiecesComeBackOnPages) {
  weights_.clear();
  for (const std::size_t whole : {std::size_t{4096}, kPiece}) {
    for (const std::size_t bytes : {whole - 1, whole, whole + 1}) weights_.push_back(some_bytes(bytes, 3));
  }
  weights_.push_back({});
  ASSERT_TRUE(write_packed_file(path_, kKey, 1, views(weights_)));
  FakeOps ops;
  const Result<PackedFile> file = PackedFile::open(path_, kKey, ops);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->weights().size(), weights_.size());
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(file->weights()[i], weights_[i])) << i;
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file->weights()[0].data()) % kPiece, 0u) << "huge pages need it";
}

TEST_F(PackedFileTest, StaysReadableWhenAnotherTakesItsName) {
  FakeOps ops;
  const Result<PackedFile> file = PackedFile::open(path_, kKey, ops);
  ASSERT_TRUE(file);
  ASSERT_TRUE(write_packed_file(path_, kKey + 1, 1, {}));
  EXPECT_TRUE(std::ranges::equal(file->weights()[2], weights_[2]));
}

TEST_F(PackedFileTest, IsNotUsedForAnotherKeyOrFromAnotherVersion) {
  EXPECT_THAT(why_not(path_, kKey ^ 1), HasSubstr("another checkpoint, or with other settings"));
  put(16, at<std::uint32_t>(16) + 1);
  EXPECT_THAT(why_not(path_), HasSubstr("its version is 2, and this program reads version 1"));
  put(0, 'Q');
  EXPECT_THAT(why_not(path_), HasSubstr("not a file of packed weights"));
}

TEST_F(PackedFileTest, AByteThatChangedIsNoticedWhereverItIs) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < 256; ++i) places.push_back(i);              // header and table
  for (std::size_t i = 256; i < kPiece; i += 30011) places.push_back(i);  // what fills them up
  for (std::size_t i = kPiece; i < size_; i += 61) places.push_back(i);   // the weights, and what fills those up
  places.push_back(size_ - 1);
  for (const std::size_t place : places) {
    const auto byte = at<std::uint8_t>(place);
    put<std::uint8_t>(place, byte ^ (1u << place % 8));
    ASSERT_NE(why_not(path_), "") << place;
    put(place, byte);
  }
  EXPECT_EQ(why_not(path_), "");
}

TEST_F(PackedFileTest, AFileOfAnotherLengthIsNoticed) {
  fs::resize_file(path_, size_ + 1);
  EXPECT_THAT(why_not(path_), HasSubstr("length differs from its header"));
  fs::resize_file(path_, size_ + 4096);
  EXPECT_NE(why_not(path_), "");
  fs::resize_file(path_, size_);
  ASSERT_EQ(why_not(path_), "");
  for (std::size_t bytes = size_ - 1; bytes > 200; bytes -= std::min<std::size_t>(bytes - 200, 9973)) {
    fs::resize_file(path_, bytes);
    ASSERT_NE(why_not(path_), "") << bytes;
  }
  for (std::size_t bytes = 201; bytes-- > 0;) {
    fs::resize_file(path_, bytes);
    ASSERT_NE(why_not(path_), "") << bytes;
  }
}

TEST_F(PackedFileTest, SizesThatDoNotFitAreRefusedThoughTheirHashIsRight) {
  constexpr std::size_t kNumWeights = 20, kWeightBytes = 40, kTable = 48;
  const auto weight_bytes = at<std::uint64_t>(kWeightBytes);
  for (const std::uint64_t wrong : {std::uint64_t{0}, weight_bytes - 1, weight_bytes + 1, weight_bytes + 4096,
                                    ~std::uint64_t{0}, ~std::uint64_t{4095}, std::uint64_t{1} << 63}) {
    put(kWeightBytes, wrong);
    hash_again();
    EXPECT_NE(why_not(path_), "") << wrong;
    put(kWeightBytes, weight_bytes);
    put(kTable, wrong);
    hash_again();
    EXPECT_THAT(why_not(path_), HasSubstr("its table is damaged")) << wrong;
    put<std::uint64_t>(kTable, weights_[0].size());
  }
  for (const std::uint32_t wrong : {0u, 2u, 4u, 1u << 20, ~0u}) {
    put(kNumWeights, wrong);
    hash_again();
    EXPECT_NE(why_not(path_), "") << wrong;
  }
  put<std::uint32_t>(kNumWeights, 3);
  hash_again();
  EXPECT_EQ(why_not(path_), "");
}

TEST_F(PackedFileTest, NoHeaderLeadsOutsideTheFile) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::vector<std::byte> whole(size_);
  ASSERT_EQ(::pread(fd_, whole.data(), size_, 0), static_cast<ssize_t>(size_));
  FakeOps ops;
  for (int i = 0; i < 300; ++i) {
    for (std::uint64_t changes = 1 + random() % 3; changes-- > 0;) {
      const std::size_t place = 16 + random() % 12 * 8;
      put(place, random() % 2 == 0 ? random() >> random() % 64 : at<std::uint64_t>(place) + (random() % 3 - 1) * 4096);
    }
    put(16, at<std::uint32_t>(16) & 1);
    hash_again();
    const Result<PackedFile> file = PackedFile::open(path_, at<std::uint64_t>(24), ops);
    if (file) {
      for (const FileBytes weight : file->weights()) hash_bytes(weight, 0);  // reads every byte
    }
    ASSERT_EQ(::pwrite(fd_, whole.data(), 256, 0), 256);
  }
}

TEST(PackedFile, IsMissingOrUnreadableForAReason) {
  const TempDir dir;
  FakeOps ops;
  EXPECT_EQ(PackedFile::open(dir.path() + "/none", kKey, ops).error().code, Code::kNotFound);
  EXPECT_THAT(why_not(dir.path()), HasSubstr("not a regular file"));
  dir.write("empty", "");
  EXPECT_THAT(why_not(dir.path() + "/empty"), HasSubstr("it is truncated"));
}

TEST(PackedFile, WhereItCannotBeWrittenSaysWhyAndLeavesNothing) {
  const TempDir dir;
  const std::vector<std::vector<std::byte>> weights = {some_bytes(3 * kPiece, 1)};
  EXPECT_THAT(write_packed_file(dir.path() + "/none/x", kKey, 1, views(weights)).error().message,
              HasSubstr("No such file or directory"));
  fs::create_directory(dir.path() + "/taken");
  EXPECT_THAT(write_packed_file(dir.path() + "/taken", kKey, 1, views(weights)).error().message,
              HasSubstr("cannot make"));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{kPiece, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);  // as a full disk
  EXPECT_THAT(write_packed_file(dir.path() + "/x", kKey, 1, views(weights)).error().message,
              HasSubstr("File too large"));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  fs::remove(dir.path() + "/taken");
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(PackedFile, OneProcessWritesItAtATimeAndWhatADeadOneLeftIsInNobodysWay) {
  const TempDir dir;
  const std::string path = dir.path() + "/x";
  const std::vector<std::vector<std::byte>> weights = {some_bytes(100, 1)};
  dir.write(".x.part", std::string(3 * kPiece, 'x'));
  const int other = ::open((dir.path() + "/.x.part").c_str(), O_RDWR);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_EQ(write_packed_file(path, kKey, 1, views(weights)).error().code, Code::kUnavailable);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(fs::file_size(dir.path() + "/.x.part"), 3 * kPiece) << "the other's";
  ::close(other);
  EXPECT_TRUE(write_packed_file(path, kKey, 1, views(weights)));
  EXPECT_EQ(why_not(path), "");
  EXPECT_FALSE(fs::exists(dir.path() + "/.x.part"));
}

// ---- loading through it

class LoadThroughPackedFile : public ::testing::Test {
 protected:
  explicit LoadThroughPackedFile(const std::string& extra = "") : config_text_("{" + extra + kTinyLlama.substr(1)) {
    write(config_text_, 0);
    cpu::CpuOptions options;
    options.num_threads = 2;
    ops_ = cpu::make_cpu_ops(options);
  }
  // A checkpoint for this config; `twist` changes one of its bytes.
  void write(const std::string& config, std::size_t twist) {
    config_text_ = config;
    std::vector<TestTensor> tensors = fitting_tensors(parse_config(config, "config.json"));
    tensors[3].data[0] = static_cast<char>(tensors[3].data[0] + twist);
    dir_.write("config.json", config);
    dir_.write("model.safetensors", safetensors_file(tensors));
  }
  Weights load(std::optional<backend::Format> quantize = std::nullopt, const std::string& path = "") {
    const auto files = ModelFiles::directory(dir_.path());
    return load_weights(*ops_, parse_config(config_text_, "config.json"), *files,
                        {.quantize = quantize, .packed_file = path, .on_packed = [this](auto...) { ++told_; }});
  }
  Weights through_file(std::optional<backend::Format> quantize = std::nullopt) { return load(quantize, path_); }
  Weights times(BlockActivation activation) {
    const auto files = ModelFiles::directory(dir_.path());
    return load_weights(*ops_, parse_config(config_text_, "config.json"), *files,
                        {.packed_file = path_, .blocks = activation});
  }
  // Another start uses what this one wrote.
  void expect_written_anew() {
    EXPECT_FALSE(through_file().from_packed_file());
    EXPECT_TRUE(through_file().from_packed_file());
  }

  TempDir dir_;
  std::string path_ = dir_.path() + "/model.packed";
  std::string config_text_;
  std::unique_ptr<backend::Ops> ops_;
  int told_ = 0;  // how far packing is
};

bool same_bytes(const backend::Weight& a, const backend::Weight& b) {
  return a.n() == b.n() && a.k() == b.k() && a.format() == b.format() && std::ranges::equal(a.packed(), b.packed());
}

void expect_same(const Weights& a, const Weights& b) {
  EXPECT_EQ(a.digest(), b.digest());
  EXPECT_EQ(a.packed_bytes(), b.packed_bytes());
  const std::vector<backend::Weight*> of_a = a.matrices();
  const std::vector<backend::Weight*> of_b = b.matrices();
  ASSERT_EQ(of_a.size(), of_b.size());
  for (std::size_t i = 0; i < of_a.size(); ++i) EXPECT_TRUE(same_bytes(*of_a[i], *of_b[i])) << i;
}

TEST_F(LoadThroughPackedFile, GivesTheWeightsThatPackingGives) {
  for (const std::string extra :
       {"", "\"tie_word_embeddings\": true, ", "\"attention_bias\": true, \"mlp_bias\": true, "}) {
    write("{" + extra + kTinyLlama.substr(1), 0);
    std::vector<std::optional<backend::Format>> all = {std::nullopt};
    all.insert(all.end(), backend::kQuantizedFormats.begin(), backend::kQuantizedFormats.end());
    for (const auto quantize : all) {
      const Weights packed = load(quantize);
      const Weights first = through_file(quantize);
      const Weights second = through_file(quantize);
      EXPECT_FALSE(packed.from_packed_file());
      EXPECT_FALSE(first.from_packed_file());
      EXPECT_TRUE(second.from_packed_file());
      expect_same(first, packed);
      expect_same(second, packed);
    }
  }
}

TEST_F(LoadThroughPackedFile, SaysHowFarPackingIsAndNothingWhereNothingIsPacked) {
  (void)through_file();
  EXPECT_GT(told_, 0);
  told_ = 0;
  EXPECT_TRUE(through_file().from_packed_file());
  EXPECT_EQ(told_, 0);
}

TEST_F(LoadThroughPackedFile, NoticesAnotherCheckpointConfigOrTypeAndReplacesTheFile) {
  expect_written_anew();
  write(config_text_, 1);
  expect_written_anew();
  write(replaced(config_text_, "\"max_position_embeddings\": 64", "\"max_position_embeddings\": 32"), 1);
  expect_written_anew();
  EXPECT_FALSE(through_file(backend::Format::kInt8).from_packed_file());
  EXPECT_TRUE(through_file(backend::Format::kInt8).from_packed_file());
  expect_written_anew();
  const std::string file = dir_.path() + "/model.safetensors";
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::nanoseconds(1'000'000));
  expect_written_anew();
}

// Codes that a checkpoint stores lie in another order for products in integers, in as many bytes.
TEST_F(LoadThroughPackedFile, NoticesAnotherFormOfActivations) {
  using enum BlockActivation;
  for (const BlockActivation activation : {kInt8, kF32, kInt8}) {
    EXPECT_FALSE(times(activation).from_packed_file());
    EXPECT_TRUE(times(activation).from_packed_file());
  }
}

TEST_F(LoadThroughPackedFile, NoticesAnotherCheckpointOfTheSameSizeAndTime) {
  expect_written_anew();
  const std::string file = dir_.path() + "/model.safetensors";
  const fs::file_time_type time = fs::last_write_time(file);
  write(config_text_, 1);
  fs::last_write_time(file, time);
  expect_written_anew();
}

TEST_F(LoadThroughPackedFile, ADamagedFileIsPackedAgainAndReplaced) {
  const Weights packed = load();
  expect_written_anew();
  fs::permissions(path_, fs::perms::owner_write, fs::perm_options::add);
  fs::resize_file(path_, fs::file_size(path_) - 1);
  expect_same(through_file(), packed);
  EXPECT_TRUE(through_file().from_packed_file());
  fs::remove(path_);
  dir_.write("model.packed", "something else");
  expect_written_anew();
}

TEST_F(LoadThroughPackedFile, AFileOfAnotherModelsWeightsIsNotUsedThoughItHasTheKey) {
  const auto files = ModelFiles::directory(dir_.path());
  const auto key = packed_key(*files, Checkpoint::open(*files), std::nullopt, ops_->layout());
  ASSERT_TRUE(key);
  std::vector<std::vector<std::byte>> forged = {std::vector<std::byte>(load().weight(Role::kEmbedding).bytes())};
  for (int i = 0; i < 12; ++i) {  // too few, and wrong ones
    ASSERT_TRUE(write_packed_file(path_, *key, 5, views(forged)));
    EXPECT_FALSE(through_file().from_packed_file()) << i;
    EXPECT_TRUE(through_file().from_packed_file()) << i;
    forged.push_back(some_bytes(512, 1));
  }
}

TEST_F(LoadThroughPackedFile, OneWeightTooManyIsNotUsedEither) {
  expect_written_anew();
  const auto files = ModelFiles::directory(dir_.path());
  const auto key = packed_key(*files, Checkpoint::open(*files), std::nullopt, ops_->layout());
  std::vector<std::vector<std::byte>> weights;
  {
    const Result<PackedFile> file = PackedFile::open(path_, *key, *ops_);
    ASSERT_TRUE(file);
    for (const FileBytes weight : file->weights()) weights.emplace_back(weight.begin(), weight.end());
  }
  ASSERT_TRUE(write_packed_file(path_, *key, 5, views(weights)));
  EXPECT_TRUE(through_file().from_packed_file());
  weights.push_back(weights.back());
  ASSERT_TRUE(write_packed_file(path_, *key, 5, views(weights)));
  EXPECT_FALSE(through_file().from_packed_file());
}

TEST_F(LoadThroughPackedFile, WithoutAPlaceToWriteStartsAllTheSame) {
  path_ = dir_.path() + "/none/model.packed";
  expect_same(through_file(), load());
  EXPECT_FALSE(through_file().from_packed_file());
}

TEST_F(LoadThroughPackedFile, ACheckpointThatDoesNotFitIsRefusedAsEver) {
  expect_written_anew();
  config_text_ = replaced(config_text_, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  EXPECT_THAT(refusal([&] { through_file(); }), HasSubstr("'model.layers.2.input_layernorm.weight' is missing"));
}

TEST_F(LoadThroughPackedFile, TheKeyChangesWithLayoutAndType) {
  const auto files = ModelFiles::directory(dir_.path());
  const Checkpoint checkpoint = Checkpoint::open(*files);
  const auto key = [&](std::optional<backend::Format> quantize, const std::string& layout) {
    return *packed_key(*files, checkpoint, quantize, layout);
  };
  EXPECT_EQ(key({}, "cpu panels/1"), key({}, "cpu panels/1"));
  EXPECT_NE(key({}, "cpu panels/1"), key({}, "cpu panels/2"));
  EXPECT_NE(key({}, "cpu panels/1"), key(backend::Format::kInt8, "cpu panels/1"));
}

TEST(PackedFile, ACheckpointInMemoryHasNone) {
  const std::string bytes = safetensors_file(fitting_tensors(parse_config(kTinyLlama, "config.json")));
  const std::pair<std::string_view, FileBytes> entry{"model.safetensors", std::as_bytes(std::span(bytes))};
  const auto files = ModelFiles::memory({&entry, 1});
  EXPECT_EQ(packed_key(*files, Checkpoint::open(*files), std::nullopt, "x"), std::nullopt);
  const TempDir dir;
  FakeOps ops;
  load_weights(ops, parse_config(kTinyLlama, "config.json"), *files, {.packed_file = dir.path() + "/x"});
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

}  // namespace
}  // namespace quire::model::packed_file_test
