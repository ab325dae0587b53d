#include "core/model/source/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::mapped_file_test {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

TEST(MappedFile, OnHugePagesTheSameBytesBeginWhereAHugePageMay) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const TempDir dir;
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4096}, std::size_t{4097}, kHugePage - 1, kHugePage, kHugePage + 1, 3 * kHugePage}) {
    std::string content(bytes, 'q');
    content.back() = 'e';
    dir.write("file", content);
    const auto file = MappedFile::open(dir.path() + "/file", MappedFile::Pages::kHuge);
    ASSERT_TRUE(file);
    const FileBytes mapped = (*file)->bytes();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped.data()) % kHugePage, 0u);
    EXPECT_TRUE(std::ranges::equal(mapped, std::as_bytes(std::span(content)))) << bytes;
  }
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const TempDir dir;
  dir.write("file", "");
  for (const auto pages : {MappedFile::Pages::kSmall, MappedFile::Pages::kHuge}) {
    const auto file = MappedFile::open(dir.path() + "/file", pages);
    ASSERT_TRUE(file);
    EXPECT_TRUE((*file)->bytes().empty());
  }
}

TEST(MappedFile, ItsStampChangesWithItsSizeAndItsTime) {
  const TempDir dir;
  const std::string path = dir.path() + "/file";
  const auto stamp = [&] { return (*MappedFile::open(path))->stamp(); };
  dir.write("file", "one");
  const FileStamp first = stamp();
  EXPECT_EQ(first.bytes, 3u);
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::nanoseconds(1000));
  EXPECT_EQ(stamp().modified_ns, first.modified_ns + 1000);
  dir.write("file", "three");
  EXPECT_EQ(stamp().bytes, 5u);
}

TEST(MappedFile, SaysWhatIsMissingAndWhatIsNoFile) {
  const TempDir dir;
  EXPECT_EQ(MappedFile::open(dir.path() + "/none").error().code, Code::kNotFound);
  const auto directory = MappedFile::open(dir.path());
  EXPECT_EQ(directory.error().code, Code::kInternal);
  EXPECT_THAT(directory.error().message, HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace quire::model::mapped_file_test
