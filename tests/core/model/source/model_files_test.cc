#include "core/model/source/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstring>

#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::model_files_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::refusal;
using testing::TempDir;

std::string text(FileBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

TEST(ModelFiles, ADirectoryGivesItsFilesAndNothingElse) {
  const TempDir dir;
  dir.write("config.json", "{}");
  dir.write("empty", "");
  const auto files = ModelFiles::directory(dir.path() + "/");
  EXPECT_EQ(text(files->require("config.json")), "{}");
  EXPECT_EQ(files->find("config.json")->data(), files->find("config.json")->data()) << "mapped once";
  EXPECT_EQ(files->require("empty").size(), 0u);
  EXPECT_FALSE(files->find("absent").has_value());
  EXPECT_EQ(files->describe("config.json"), dir.path() + "/config.json");
}

TEST(ModelFiles, NamesThatArePathsFindNothing) {
  const TempDir dir;
  const auto files = ModelFiles::directory(dir.path());
  for (const std::string_view name : {"", ".", "..", "../passwd", "/etc/passwd", "a/b"})
    EXPECT_FALSE(files->find(name).has_value()) << name;
}

TEST(ModelFiles, ReleasedPagesReadTheSameAgain) {
  const TempDir dir;
  const std::string content(100'000, 'q');
  dir.write("weights", content);
  const auto files = ModelFiles::directory(dir.path());
  const FileBytes bytes = files->require("weights");
  files->release(bytes.subspan(1, 90'000));
  files->release(bytes.subspan(5, 3));
  files->release({});
  EXPECT_EQ(text(bytes), content);
}

TEST(ModelFiles, SaysWhatToDoWhereThereIsNoDirectory) {
  EXPECT_THAT(refusal([] { ModelFiles::directory("/no/such/model"); }),
              AllOf(HasSubstr("/no/such/model"), HasSubstr("there is no such directory"), HasSubstr("config.json")));
  const TempDir dir;
  dir.write("file", "x");
  EXPECT_THAT(refusal([&] { ModelFiles::directory(dir.path() + "/file"); }), HasSubstr("is not a directory"));
}

TEST(ModelFiles, RefusesWhatIsThereButCannotBeRead) {
  const TempDir dir;
  std::filesystem::create_directory(dir.path() + "/config.json");
  const auto files = ModelFiles::directory(dir.path());
  EXPECT_THAT(refusal([&] { files->find("config.json"); }), HasSubstr("is not a regular file"));
  EXPECT_THAT(refusal([&] { files->require("tokenizer.json"); }), AllOf(HasSubstr("/tokenizer.json is missing")));
}

TEST(ModelFiles, RefusesAPipeInsteadOfWaitingForItsWriter) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir.path() + "/config.json").c_str(), 0600), 0);
  const auto files = ModelFiles::directory(dir.path());
  EXPECT_THAT(refusal([&] { files->find("config.json"); }), HasSubstr("is not a regular file"));
}

TEST(ModelFiles, MemoryGivesTheBytesItWasGiven) {
  constexpr std::string_view kBytes = "{}";
  const std::array<std::pair<std::string_view, FileBytes>, 1> table = {
      {{"config.json", std::as_bytes(std::span(kBytes.data(), kBytes.size()))}}};
  const auto files = ModelFiles::memory(table);
  EXPECT_EQ(text(files->require("config.json")), "{}");
  EXPECT_FALSE(files->find("tokenizer.json").has_value());
  EXPECT_EQ(files->describe("config.json"), "embedded:config.json");
  files->release(files->require("config.json"));
}

}  // namespace
}  // namespace quire::model::model_files_test
