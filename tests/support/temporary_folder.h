// A folder of a test's own: a name in the temporary directory that nobody has, gone with all that is in it in the
// end. Parts of one test program run at the same time as separate processes, so two cases must never write to one
// fixed name.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/check.h"

namespace quire::test {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "quire-XXXXXX").string()) {
    CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(path_of(name)).parent_path());
    std::ofstream(path_of(name), std::ios::binary) << bytes;
  }

 private:
  std::string path_;
};

}  // namespace quire::test
