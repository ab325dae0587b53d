// Test support: configurations from flags, environment entries and files, as the commands read them.
// Owner   TempFile deletes its file; the rest are values.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "app/config/config.h"

namespace quire::app::testing {

class TempFile {
 public:
  explicit TempFile(const std::string& text) : path_(std::filesystem::temp_directory_path() / name()) {
    std::ofstream(path_) << text;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  static std::string name() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    return std::string("quire_") + test->name() + "_" + std::to_string(::getpid()) + ".toml";
  }
  std::filesystem::path path_;
};

inline Config settle(const Layer& layer, Problems& problems) { return resolve(std::span(&layer, 1), problems); }

inline Config with(std::string_view name, const std::string& value, Problems& problems) {
  return settle({{std::string(name), {"--" + std::string(name), {value}}}}, problems);
}

inline Layer environment(std::vector<std::string> entries, Problems& problems, std::vector<std::string>& notes) {
  std::vector<const char*> pointers;
  for (const std::string& entry : entries) pointers.push_back(entry.c_str());
  pointers.push_back(nullptr);
  return read_environment(pointers.data(), problems, notes);
}

}  // namespace quire::app::testing
