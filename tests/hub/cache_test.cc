#include "hub/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "hub/digest.h"
#include "tests/support/temporary_folder.h"

namespace quire::hub {
namespace {

using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const std::string kCommit(40, 'a');
const std::string kOther(40, 'b');

RepoFile file(const std::string& path, const std::string& bytes, const std::string& blob) {
  return {path, bytes.size(), blob};
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(RepoCache, LinksAFileOfASnapshotToItsBlobRelatively) {
  const TemporaryFolder folder;
  const RepoCache cache(folder.path(), "org/name");
  for (const char* path : {"config.json", "a/b/c.json"}) {
    const RepoFile one = file(path, "text", std::string(64, path[0] == 'a' ? '1' : '2'));
    EXPECT_FALSE(cache.has_blob(one));
    write(cache.blob(one), "text");
    EXPECT_TRUE(cache.has_blob(one));
    EXPECT_FALSE(cache.has_link(kCommit, one));
    cache.link(kCommit, one);
    cache.link(kCommit, one);
    EXPECT_TRUE(cache.has_link(kCommit, one));
    EXPECT_TRUE(cache.has(kCommit, path));
    EXPECT_TRUE(std::filesystem::read_symlink(cache.snapshot(kCommit) / path).is_relative());
    EXPECT_FALSE(cache.has_blob(file(path, "longer", one.blob)));
  }
  EXPECT_THAT(cache.commits(), ElementsAre(kCommit));
}

TEST(RepoCache, ALinkIsRenewedWhereItLedToAnotherBlob) {
  const TemporaryFolder folder;
  const RepoCache cache(folder.path(), "org/name");
  const RepoFile old = file("x", "old", std::string(64, '1'));
  const RepoFile renewed = file("x", "new", std::string(64, '2'));
  write(cache.blob(old), "old");
  write(cache.blob(renewed), "new");
  cache.link(kCommit, old);
  cache.link(kCommit, renewed);
  EXPECT_FALSE(cache.has_link(kCommit, old));
  EXPECT_TRUE(cache.has_link(kCommit, renewed));
}

TEST(RepoCache, KeepsReferencesOfBranchesAndNoneOfCommits) {
  const TemporaryFolder folder;
  const RepoCache cache(folder.path(), "org/name");
  EXPECT_EQ(cache.commit_of("main"), std::nullopt);
  EXPECT_EQ(cache.commit_of(kCommit), kCommit);
  cache.write_ref("main", kCommit);
  cache.write_ref("refs/pr/1", kOther);
  cache.write_ref(kCommit, kCommit);
  EXPECT_EQ(cache.commit_of("main"), kCommit);
  EXPECT_THAT(cache.refs(), ElementsAre(Pair("main", kCommit), Pair("refs/pr/1", kOther)));
  write(cache.directory() / "refs/broken", "not a commit");
  write(cache.directory() / "refs/newline", kOther + "\n");
  EXPECT_EQ(cache.commit_of("broken"), std::nullopt);
  EXPECT_EQ(cache.commit_of("newline"), kOther);
  EXPECT_EQ(cache.commit_of("../../x"), std::nullopt);
}

TEST(RepoCache, KnowsWhatARepositoryDoesNotHave) {
  const TemporaryFolder folder;
  const RepoCache cache(folder.path(), "org/name");
  EXPECT_FALSE(cache.is_absent(kCommit, "a/b.json"));
  cache.note_absent(kCommit, "a/b.json");
  EXPECT_TRUE(cache.is_absent(kCommit, "a/b.json"));
  EXPECT_FALSE(cache.is_absent(kOther, "a/b.json"));
  EXPECT_EQ(cache.listed(kCommit), std::nullopt);
  write(cache.directory() / "trees" / (kCommit + ".json"), R"({"format_version": 1, "files": {"a": {}, "b/c": {}}})");
  EXPECT_THAT(*cache.listed(kCommit), ElementsAre("a", "b/c"));
  write(cache.directory() / "trees" / (kCommit + ".json"), "{");
  EXPECT_EQ(cache.listed(kCommit), std::nullopt);
}

TEST(RepoCache, IsFoundByTheNameOfItsFolder) {
  const TemporaryFolder folder;
  for (const char* name :
       {"models--b--c", "models--a--b-c.d", "datasets--a--b", "models--a", "version.txt", "models--..--x"}) {
    std::filesystem::create_directories(folder.path_of(name));
  }
  EXPECT_THAT(repos_in(folder.path()), ElementsAre("a/b-c.d", "b/c"));
  EXPECT_THAT(repos_in(folder.path_of("none")), IsEmpty());
  EXPECT_EQ(repo_of_snapshot("/x/models--a--b/snapshots/" + kCommit), "a/b");
  EXPECT_EQ(repo_of_snapshot("/x/models--a--b/snapshots/" + kCommit + "/"), "a/b");
  EXPECT_EQ(repo_of_snapshot("/x/models--a--b/snapshots/main"), std::nullopt);
  EXPECT_EQ(repo_of_snapshot("/x/a--b/snapshots/" + kCommit), std::nullopt);
  EXPECT_EQ(repo_of_snapshot("/models/a"), std::nullopt);
}

TEST(BlobDigest, IsShaOfTheBytesOrOfGitsBlob) {
  // printf text | sha256sum; printf text | git hash-object --stdin
  const std::string sha256 = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1";
  const std::string git = "f3a34851d44d6b97c90fbb99dd3d18c261b9a237";
  const std::string_view text = "text";
  for (const std::string& name : {sha256, git}) {
    BlobDigest digest(name, text.size());
    digest.add(std::as_bytes(std::span(text.substr(0, 1))));
    digest.add(std::as_bytes(std::span(text.substr(1))));
    EXPECT_EQ(digest.matches(), true) << name;
    digest.restart();
    digest.add(std::as_bytes(std::span(text.substr(1))));
    EXPECT_FALSE(digest.matches());
  }
}

}  // namespace
}  // namespace quire::hub
