// A file of a test's own: a name in the temporary directory that nobody has, and no file behind it in the end.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/base/check.h"

namespace quire::test {

class TemporaryFile {
 public:
  TemporaryFile() : path_((std::filesystem::temp_directory_path() / "quire-XXXXXX").string()) {
    const int file = ::mkstemp(path_.data());
    CHECK(file >= 0);
    ::close(file);
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace quire::test
