#include "api/limits/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::api::keys {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string hash_of(const std::string& secret) { return "hash=sha256:" + hex_of(digest_of(secret)); }

std::vector<std::string> problems_of(const std::string& text) { return parse_key_file(text).problems; }

TEST(KeyFile, ReadsAKeyALine) {
  const KeyFile file =
      parse_key_file("# clients\n\n  name=alice " + hash_of("a") +
                     "\t role=admin max_running=4 max_queued=16 tokens_per_minute=60000 tenant=team-a weight=3\r\n" +
                     hash_of("b") + " name=bob");
  ASSERT_THAT(file.problems, IsEmpty());
  ASSERT_EQ(file.entries.size(), 2u);
  const KeyEntry& alice = file.entries[0];
  EXPECT_EQ(alice.name, "alice");
  EXPECT_EQ(alice.digest, digest_of("a"));
  EXPECT_EQ(alice.role, Role::kAdmin);
  EXPECT_EQ(alice.limits.max_running, 4u);
  EXPECT_EQ(alice.limits.max_queued, 16u);
  EXPECT_EQ(alice.limits.tokens_per_minute, 60000u);
  EXPECT_EQ(alice.tenant, "team-a");
  EXPECT_EQ(alice.weight, 3u);
  const KeyEntry& bob = file.entries[1];
  EXPECT_EQ(bob.role, Role::kUser);
  EXPECT_FALSE(bob.limits.max_running || bob.limits.max_queued || bob.limits.tokens_per_minute);
  EXPECT_EQ(bob.tenant, "");
  EXPECT_EQ(bob.weight, 1u);
}

TEST(KeyFile, ItsLinesComeBack) {
  for (const Role role : {Role::kUser, Role::kMonitor, Role::kAdmin}) {
    const KeyEntry entry{.name = "a.b-c_9",
                         .digest = digest_of("x"),
                         .role = role,
                         .limits = {.max_running = 1, .max_queued = 4294967295u, .tokens_per_minute = 3},
                         .tenant = "t",
                         .weight = 7};
    const KeyFile file = parse_key_file(line_of(entry));
    ASSERT_THAT(file.problems, IsEmpty());
    EXPECT_EQ(line_of(file.entries.at(0)), line_of(entry));
  }
}

TEST(KeyFile, AWeightIsAWholeNumberUpToAThousand) {
  const std::string good = "name=alice " + hash_of("a");
  for (const std::uint32_t weight : {1u, 2u, 999u, 1000u}) {
    EXPECT_EQ(parse_key_file(good + " weight=" + std::to_string(weight)).entries.at(0).weight, weight);
  }
  for (const char* bad : {"0", "1001", "4294967296", "-1", "1.5", "", "two"}) {
    EXPECT_THAT(problems_of(good + " weight=" + bad), ElementsAre("line 1: weight: expected a whole number in 1..1000"))
        << bad;
  }
}

TEST(KeyFile, AProblemNamesItsLineAndField) {
  const std::string good = "name=alice " + hash_of("a");
  const std::pair<std::string, std::string> cases[] = {
      {hash_of("a"), "line 1: name: missing"},
      {"name=alice", "line 1: hash: missing"},
      {"\n\n" + good + " role=root", "line 3: role: expected user, admin or monitor"},
      {good + " max_running=0", "line 1: max_running: expected a whole number in 1..4294967295"},
      {good + " max_queued=4294967296", "line 1: max_queued: expected a whole number in 1..4294967295"},
      {good + " tokens_per_minute=1k", "line 1: tokens_per_minute: expected a whole number in 1..4294967295"},
      {good + " tokens_per_minute=", "line 1: tokens_per_minute: expected a whole number in 1..4294967295"},
      {good + " max_running=-1", "line 1: max_running: expected a whole number in 1..4294967295"},
      {good + " tenant=a/b", "line 1: tenant: expected 1 to 64 letters, digits and the characters - _ ."},
      {good + " name=bob", "line 1: name: given twice"},
      {good + "\nname=alice " + hash_of("b"), "line 2: name: alice is already the name of line 1"},
      {good + "\nname=bob " + hash_of("a"), "line 2: hash: the same as in line 1"},
      {good + " max_runing=1",
       "line 1: there is no field 'max_runing'; the fields are name, hash, role, max_running, max_queued, "
       "tokens_per_minute, "
       "tenant and weight"},
      {good + " admin", "line 1: expected field=value, found a word without ="},
      {"name= " + hash_of("a"), "line 1: name: expected 1 to 64 letters, digits and the characters - _ ."},
  };
  for (const auto& [text, problem] : cases) EXPECT_THAT(problems_of(text), ElementsAre(problem)) << text;
}

TEST(KeyFile, AllProblemsAreReportedTogether) {
  EXPECT_THAT(problems_of("name=? hash=md5:0 role=x\n\nqk-0\n"),
              ElementsAre(HasSubstr("line 1: name"), HasSubstr("line 1: hash"), HasSubstr("line 1: role"),
                          HasSubstr("line 3: expected field=value"), "line 3: name: missing", "line 3: hash: missing"));
}

TEST(KeyFile, NoProblemShowsWhatMayBeASecret) {
  const std::string secret = new_secret();
  for (const std::string& text :
       {secret, "name=a " + secret, "name=a hash=" + secret, "name=" + secret + "/ hash=" + secret, secret + "=",
        "name=a " + hash_of("b") + " role=" + secret, "name=a hash=sha256:" + secret.substr(3) + "0"}) {
    const std::vector<std::string> problems = problems_of(text);
    ASSERT_THAT(problems, Not(IsEmpty())) << text;
    for (const std::string& problem : problems) EXPECT_THAT(problem, Not(HasSubstr(secret.substr(3, 16)))) << text;
  }
}

TEST(KeyFile, NamesHaveUpTo64Characters) {
  const auto line = [](std::size_t bytes) { return "name=" + std::string(bytes, 'a') + " " + hash_of("a"); };
  for (const std::size_t bytes : {1u, 63u, 64u}) EXPECT_THAT(problems_of(line(bytes)), IsEmpty()) << bytes;
  EXPECT_THAT(problems_of(line(65)), ElementsAre(HasSubstr("1 to 64")));
}

TEST(KeyFile, LinesHaveUpTo1024Bytes) {
  const std::string line = "name=alice " + hash_of("a");
  const auto padded = [&](std::size_t bytes) { return line + std::string(bytes - line.size(), ' ') + "\n"; };
  EXPECT_THAT(problems_of(padded(1023)), IsEmpty());
  EXPECT_THAT(problems_of(padded(1024)), IsEmpty());
  EXPECT_THAT(problems_of(padded(1025)), ElementsAre("line 1: longer than 1024 bytes"));
}

TEST(KeyFile, HoldsUpTo1024Keys) {
  std::string text;
  const auto add = [&text](int i) { text += "name=k" + std::to_string(i) + " " + hash_of(std::to_string(i)) + "\n"; };
  for (int i = 0; i < 1023; ++i) add(i);
  EXPECT_EQ(parse_key_file(text).entries.size(), 1023u);
  add(1023);
  EXPECT_THAT(problems_of(text), IsEmpty());
  add(1024);
  EXPECT_THAT(problems_of(text), ElementsAre("line 1025: more than 1024 keys"));
}

TEST(KeyFile, IsUpTo1MiB) {
  EXPECT_THAT(problems_of(std::string(1u << 20, '\n')), IsEmpty());
  EXPECT_THAT(problems_of(std::string((1u << 20) + 1, '\n')), ElementsAre(HasSubstr("longer than 1048576 bytes")));
}

}  // namespace
}  // namespace quire::api::keys
