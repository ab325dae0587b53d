#include "app/machine.h"

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

}  // namespace
}  // namespace quire::app::machine_test
