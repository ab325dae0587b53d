#include "app/drafting/step_costs_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace quire::app::step_costs_file_test {
namespace {

constexpr speculate::StepPrior kPrior = {
    .weight_bytes = 2e9, .bytes_per_s = 1e10, .fmas_per_row = 1e9, .fmas_per_s = 4e10};

class StepCostsFile : public ::testing::Test {
 protected:
  StepCostsFile() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::temp_directory_path() / (std::string(test->name()) + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
    path_ = (directory_ / "costs").string();
    for (int i = 0; i < 5; ++i) learned_.add(4, 0.25);
  }
  ~StepCostsFile() override { std::filesystem::remove_all(directory_); }

  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  std::filesystem::path directory_;
  std::string path_;
  speculate::StepCosts learned_{kPrior};
  const std::string key_ = step_costs_key("mode", "a cpu", 2);
};

TEST_F(StepCostsFile, ComesBackForTheSameKeyAlone) {
  ASSERT_TRUE(write_step_costs(path_, key_, learned_).ok());
  speculate::StepCosts again(kPrior);
  EXPECT_FALSE(read_step_costs(path_, step_costs_key("mode", "a cpu", 1), again).ok());
  EXPECT_EQ(again.text(), "");
  ASSERT_TRUE(read_step_costs(path_, key_, again).ok());
  EXPECT_EQ(again.text(), learned_.text());
}

TEST_F(StepCostsFile, IsReplacedAndLeavesNothingElseBehind) {
  ASSERT_TRUE(write_step_costs(path_, key_, speculate::StepCosts(kPrior)).ok());
  ASSERT_TRUE(write_step_costs(path_, key_, learned_).ok());
  speculate::StepCosts again(kPrior);
  ASSERT_TRUE(read_step_costs(path_, key_, again).ok());
  EXPECT_EQ(again.text(), learned_.text());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1);
}

TEST_F(StepCostsFile, IsOfNoUseCutOffAtAnyByteOrWithAnyByteMore) {
  ASSERT_TRUE(write_step_costs(path_, key_, learned_).ok());
  const std::string whole = bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(whole.substr(0, size));
    speculate::StepCosts again(kPrior);
    ASSERT_FALSE(read_step_costs(path_, key_, again).ok()) << size;
    ASSERT_EQ(again.text(), "") << size;
  }
  put(whole + "4 1 1\n");
  speculate::StepCosts again(kPrior);
  EXPECT_FALSE(read_step_costs(path_, key_, again).ok());
}

TEST_F(StepCostsFile, SaysWhatIsWrongWhereThereIsNoFileOrNoPlaceForOne) {
  speculate::StepCosts costs(kPrior);
  EXPECT_NE(read_step_costs(path_, key_, costs).error().message.find(path_), std::string::npos);
  EXPECT_FALSE(write_step_costs((directory_ / "no" / "such").string(), key_, learned_).ok());
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(write_step_costs(path_, key_, learned_).ok());
}

}  // namespace
}  // namespace quire::app::step_costs_file_test
