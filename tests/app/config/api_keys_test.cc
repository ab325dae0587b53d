#include "app/config/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/base/start_error.h"
#include "tests/support/temporary_file.h"

namespace quire::app::api_keys_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string line(const std::string& name, const std::string& secret) {
  return api::keys::line_of({.name = name, .digest = api::keys::digest_of(secret)}) + "\n";
}

class ApiKeysTest : public ::testing::Test {
 protected:
  void put(const std::string& text) const { std::ofstream(file_.path(), std::ios::trunc) << text; }
  static std::string name_of(const ApiKeys& keys, const std::string& secret) {
    const auto caller = keys.table()->get()->find(secret);
    return caller ? caller->name : "";
  }
  std::string start_error(const std::vector<std::string>& plain) const {
    try {
      const ApiKeys keys(file_.path(), plain);
    } catch (const StartError& error) {
      return error.what();
    }
    return {};
  }

  const test::TemporaryFile file_;
};

TEST_F(ApiKeysTest, WithoutAnyNobodyNeedsOne) { EXPECT_EQ(ApiKeys("", {}).table(), nullptr); }

TEST_F(ApiKeysTest, PlainKeysAreUsersOfTheDefaultTenant) {
  const ApiKeys keys("", {"12345678", "another-key"});
  EXPECT_EQ(name_of(keys, "12345678"), "api-key-1");
  EXPECT_EQ(name_of(keys, "another-key"), "api-key-2");
  const auto caller = keys.table()->get()->find("12345678");
  EXPECT_EQ(caller->role, api::keys::Role::kUser);
  EXPECT_EQ(caller->tenant_id, 0u);
}

TEST_F(ApiKeysTest, PlainKeysReadMetricsWhereNoFileSaysWhoMay) {
  EXPECT_TRUE(ApiKeys("", {"12345678"}).table()->get()->find("12345678")->monitors);
  put(line("alice", "secret-a"));
  const ApiKeys both(file_.path(), {"12345678"});
  EXPECT_FALSE(both.table()->get()->find("12345678")->monitors);
  EXPECT_FALSE(both.table()->get()->find("secret-a")->monitors);
}

TEST_F(ApiKeysTest, PlainKeysHave8To512VisibleCharacters) {
  for (const std::size_t bytes : {8u, 511u, 512u}) EXPECT_NO_THROW(ApiKeys("", {std::string(bytes, 'k')})) << bytes;
  for (const std::string& bad : {std::string(7, 'k'), std::string(513, 'k'), std::string("kkkk kkkk"),
                                 std::string("kkkk\nkkkk"), std::string("kkkkkkk\xc3\xa4")}) {
    try {
      const ApiKeys keys("", {"good-one", bad});
      ADD_FAILURE() << bad;
    } catch (const StartError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("key 2 must be 8 to 512"), Not(HasSubstr("kkkk"))));
    }
  }
}

TEST_F(ApiKeysTest, BothKindsStandBesideEachOther) {
  put(line("alice", "secret"));
  const ApiKeys keys(file_.path(), {"plain-key"});
  EXPECT_EQ(name_of(keys, "secret"), "alice");
  EXPECT_EQ(name_of(keys, "plain-key"), "api-key-1");
}

TEST_F(ApiKeysTest, ABadFileIsNoStart) {
  EXPECT_THAT(start_error({}), HasSubstr("the file has no key"));
  put(line("alice", "a") + line("bob", "b") + "name=carol\nname=? hash=\n");
  EXPECT_THAT(start_error({}), AllOf(HasSubstr("--api-key-file " + file_.path()), HasSubstr("line 3: hash: missing"),
                                     HasSubstr("line 4: name"), HasSubstr("line 4: hash")));
  put(line("api-key-1", "a"));
  EXPECT_THAT(start_error({"plain-key"}), HasSubstr("api-key-1 has the name or the key of one of --api-key"));
  put(line("alice", "plain-key"));
  EXPECT_THAT(start_error({"plain-key"}), HasSubstr("alice has the name or the key of one of --api-key"));
  EXPECT_THROW(ApiKeys("/no/such/file", {}), StartError);
  EXPECT_THROW(ApiKeys("/", {}), StartError);
}

TEST_F(ApiKeysTest, AReloadTakesAGoodFileAndNoOther) {
  put(line("alice", "one"));
  ApiKeys keys(file_.path(), {"plain-key"});
  for (const std::string& bad : {std::string(), std::string("nonsense\n"), line("bob", "two") + "name=x\n"}) {
    put(bad);
    EXPECT_FALSE(keys.reload()) << bad;
    EXPECT_EQ(name_of(keys, "one"), "alice") << bad;
    EXPECT_EQ(name_of(keys, "two"), "") << bad;
  }
  put(line("bob", "two"));
  EXPECT_TRUE(keys.reload());
  EXPECT_EQ(name_of(keys, "one"), "");
  EXPECT_EQ(name_of(keys, "two"), "bob");
  EXPECT_EQ(name_of(keys, "plain-key"), "api-key-1");
}

TEST_F(ApiKeysTest, SeesWhatOthersMayReadOrChange) {
  put("x");
  for (const mode_t mode : {0600u, 0640u, 0400u, 0660u, 0604u, 0602u, 0606u}) {
    ASSERT_EQ(chmod(file_.path().c_str(), mode), 0);
    const Result<KeyFileText> read = read_key_file(file_.path());
    if (!read) continue;  // not ours to read at this mode
    EXPECT_EQ(read->open_to_others, (mode & 07) != 0) << mode;
    EXPECT_EQ(read->text, "x");
  }
}

}  // namespace
}  // namespace quire::app::api_keys_test
