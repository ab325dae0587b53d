#include "app/model/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

namespace quire::app::machine_test {
namespace {

TEST(Machine, KnowsItself) {
  EXPECT_FALSE(cpu_name().empty());
  EXPECT_GE(usable_cpus(), 1u);
  ASSERT_TRUE(free_memory_bytes());
  EXPECT_GT(*free_memory_bytes(), 0u);
}

// A directory of control groups of its own, and a file that says which are the process's.
class Groups {
 public:
  Groups() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::temp_directory_path() /
            ("quire_groups_" + std::string(test->name()) + "_" + std::to_string(::getpid()));
    std::filesystem::create_directories(root_);
  }
  ~Groups() { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::optional<std::uint64_t> memory() const {
    return group_memory_bytes(root_.string(), (root_ / "membership").string());
  }
  std::optional<std::uint64_t> memory_limit() const {
    return group_memory_limit(root_.string(), (root_ / "membership").string());
  }
  void write_memory(const std::string& group, const std::string& max, const std::string& current,
                    const std::string& dropped = "0") const {
    write(group + "memory.max", max + "\n");
    write(group + "memory.current", current + "\n");
    write(group + "memory.stat", "anon 7\ninactive_file " + dropped + "\n");
  }
  std::optional<std::uint32_t> cpus() const { return quota_cpus(root_.string(), (root_ / "membership").string()); }

 private:
  std::filesystem::path root_;
};

TEST(Quota, IsRoundedUpAndNeverLessThanOneCpu) {
  const Groups groups;
  const std::pair<const char*, std::uint32_t> cases[] = {
      {"1 100000\n", 1},      {"99999 100000\n", 1},  {"100000 100000\n", 1}, {"100001 100000\n", 2},
      {"199999 100000\n", 2}, {"200000 100000\n", 2}, {"200001 100000\n", 3}, {"50000 10000\n", 5}};
  for (const auto& [text, cpus] : cases) {
    groups.write("cpu.max", text);
    EXPECT_EQ(groups.cpus(), cpus) << text;
  }
}

TEST(Quota, IsNothingWhereThereIsNoLimit) {
  const Groups groups;
  EXPECT_EQ(groups.cpus(), std::nullopt);
  for (const char* text : {"max 100000\n", "", "100000\n", "100000 0\n", "x y\n"}) {
    groups.write("cpu.max", text);
    EXPECT_EQ(groups.cpus(), std::nullopt) << text;
  }
}

TEST(Quota, IsTheTightestOfTheGroupsAboveTheProcess) {
  const Groups groups;
  groups.write("membership", "0::/system.slice/quire.service\n");
  groups.write("system.slice/quire.service/cpu.max", "max 100000\n");
  EXPECT_EQ(groups.cpus(), std::nullopt);
  groups.write("system.slice/cpu.max", "300000 100000\n");
  EXPECT_EQ(groups.cpus(), 3u);
  groups.write("system.slice/quire.service/cpu.max", "400000 100000\n");
  EXPECT_EQ(groups.cpus(), 3u);
  groups.write("system.slice/quire.service/cpu.max", "200000 100000\n");
  EXPECT_EQ(groups.cpus(), 2u);
  groups.write("system.slice/another.service/cpu.max", "100000 100000\n");
  EXPECT_EQ(groups.cpus(), 2u);
}

TEST(Quota, IsReadFromVersionOneToo) {
  const Groups groups;
  groups.write("membership", "5:cpuset:/elsewhere\n4:cpu,cpuacct:/docker/12ab\n");
  groups.write("cpu/cpu.cfs_period_us", "100000\n");
  groups.write("cpu/cpu.cfs_quota_us", "-1\n");
  groups.write("cpu/elsewhere/cpu.cfs_period_us", "100000\n");
  groups.write("cpu/elsewhere/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(groups.cpus(), std::nullopt);
  groups.write("cpu/cpu.cfs_quota_us", "250000\n");  // as a container sees its own group
  EXPECT_EQ(groups.cpus(), 3u);
  groups.write("cpu/docker/12ab/cpu.cfs_period_us", "50000\n");
  groups.write("cpu/docker/12ab/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(groups.cpus(), 2u);
}

TEST(Quota, IsOfTheMountsRootWhereTheGroupIsOutsideOfTheNamespace) {
  const Groups groups;
  groups.write("membership", "0::/../other\n");
  groups.write("inside/cpu.max", "100000 100000\n");
  groups.write("cpu.max", "300000 100000\n");
  EXPECT_EQ(groups.cpus(), 3u);
}

TEST(GroupMemory, IsWhatTheLimitLeavesBesideWhatCannotBeDropped) {
  const Groups groups;
  EXPECT_EQ(groups.memory(), std::nullopt);
  groups.write("membership", "0::/\n");
  groups.write_memory("", "max", "300");
  EXPECT_EQ(groups.memory(), std::nullopt);
  groups.write_memory("", "1000", "300", "100");
  EXPECT_EQ(groups.memory(), 800u);
  groups.write("memory.high", "900\n");
  EXPECT_EQ(groups.memory(), 700u);
  groups.write("memory.high", "max\n");
  EXPECT_EQ(groups.memory(), 800u);
  groups.write_memory("", "1000", "1001");
  EXPECT_EQ(groups.memory(), 0u);
}

TEST(GroupMemory, IsTheLeastOfTheProcesssOwnGroupAndThoseAboveIt) {
  const Groups groups;
  groups.write("membership", "0::/system.slice/quire.service\n");
  groups.write_memory("system.slice/another.service/", "10", "0");
  EXPECT_EQ(groups.memory(), std::nullopt);
  groups.write_memory("", "9000", "1000");
  EXPECT_EQ(groups.memory(), 8000u);
  groups.write_memory("system.slice/quire.service/", "5000", "1000");
  EXPECT_EQ(groups.memory(), 4000u);
  groups.write_memory("system.slice/", "6000", "3000");  // others hold most of it
  EXPECT_EQ(groups.memory(), 3000u);
}

TEST(GroupMemory, IsReadWhereAContainerSeesTheHostsNames) {
  const Groups groups;
  groups.write("membership", "0::/system.slice/docker-12ab.scope\n");  // its tree is the container's own
  groups.write_memory("", "2000", "500");
  EXPECT_EQ(groups.memory(), 1500u);
  groups.write("membership", "0::/../../kubepods/pod7\n");
  groups.write_memory("kubepods/pod7/", "100", "0");  // of the same name inside, and another
  EXPECT_EQ(groups.memory(), 1500u);
}

TEST(GroupMemoryLimit, IsTheLeastOfTheGroupAndItsAncestors) {
  const Groups groups;
  groups.write("membership", "0::/a/b\n");
  EXPECT_EQ(groups.memory_limit(), std::nullopt);
  groups.write_memory("a/b/", "max", "10");
  EXPECT_EQ(groups.memory_limit(), std::nullopt);
  groups.write_memory("a/", "5000", "4999");
  EXPECT_EQ(groups.memory_limit(), 5000u);
  groups.write("a/b/memory.high", "3000\n");
  EXPECT_EQ(groups.memory_limit(), 3000u);
}

TEST(GroupMemory, IsReadFromVersionOneToo) {
  const Groups groups;
  const auto write = [&](const std::string& group, const std::string& limit, const std::string& usage) {
    groups.write(group + "memory.limit_in_bytes", limit + "\n");
    groups.write(group + "memory.usage_in_bytes", usage + "\n");
    groups.write(group + "memory.stat", "inactive_file 1\ntotal_inactive_file 50\n");
  };
  groups.write("membership", "9:cpu,cpuacct:/elsewhere\n5:memory:/docker/12ab/inner\n");
  write("memory/elsewhere/", "10", "0");
  EXPECT_EQ(groups.memory(), std::nullopt);
  write("memory/", "9223372036854771712", "4000");  // what the kernel writes for none
  EXPECT_EQ(groups.memory(), std::nullopt);
  EXPECT_EQ(groups.memory_limit(), std::nullopt);
  write("memory/docker/12ab/", "3000", "1050");
  EXPECT_EQ(groups.memory(), 2000u);
  EXPECT_EQ(groups.memory_limit(), 3000u);
  write("memory/docker/12ab/inner/", "1000", "300");
  EXPECT_EQ(groups.memory(), 750u);
  EXPECT_EQ(groups.memory_limit(), 1000u);
}

}  // namespace
}  // namespace quire::app::machine_test
