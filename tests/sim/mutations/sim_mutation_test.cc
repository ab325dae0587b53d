// The simulator finds each of the bugs planted in mutations/*.mutation, and what it prints replays.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/sim/run_apart.h"

namespace quire::sim {
namespace {

constexpr int kSchedules = 5000;

struct Said {
  int status = -1;
  std::string text;
};

Said shell(const std::string& command) {
  Said said;
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return said;
  std::array<char, 4096> part;
  for (std::size_t got; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;) said.text.append(part.data(), got);
  const int status = pclose(pipe);
  said.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return said;
}

class SimMutation : public ::testing::TestWithParam<std::string> {};

TEST_P(SimMutation, IsFoundShrunkAndReplayed) {
  const std::string mutant = std::string(QUIRE_SIM_MUTANT_DIR) + "/sim_mutant_" + GetParam();
  const Said hunt = shell(mutant + " --hunt " + std::to_string(kSchedules));
  ASSERT_EQ(hunt.status, 1) << "not found in " << kSchedules << " schedules:\n" << hunt.text;
  const std::size_t begin = hunt.text.rfind("--replay '");
  ASSERT_NE(begin, std::string::npos) << hunt.text;
  const std::string replay = hunt.text.substr(begin, hunt.text.find('\n', begin) - begin);
  std::printf("  %s: %s", GetParam().c_str(), hunt.text.substr(hunt.text.rfind("seed ")).c_str());

  EXPECT_NE(shell(mutant + " " + replay).status, 0) << replay;
  const std::string text = replay.substr(10, replay.size() - 11);
  EXPECT_LE(parse(text).arrivals.size(), 3u) << "hardly minimal: " << text;
  const auto unchanged = run_apart(valid(parse(text)));
  EXPECT_FALSE(unchanged) << "fails without the bug, too: " << *unchanged;
}

// The file names, as cmake found them.
std::vector<std::string> planted() {
  std::istringstream words(QUIRE_SIM_MUTANTS);
  return {std::istream_iterator<std::string>(words), {}};
}
INSTANTIATE_TEST_SUITE_P(Planted, SimMutation, ::testing::ValuesIn(planted()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace quire::sim
