// Files of the source tree, found from where the running test lies: build/PRESET/tests/NAME_test of it. Not from __FILE__, which
// a compiler cache makes relative.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/base/check.h"

namespace quire::test {

inline std::filesystem::path source_path(const std::string& path) {
  static const std::filesystem::path root = [] {
    std::filesystem::path at = std::filesystem::canonical("/proc/self/exe").parent_path();
    while (!std::filesystem::exists(at / "layers.txt") && at.has_relative_path()) at = at.parent_path();
    CHECK(std::filesystem::exists(at / "layers.txt"));
    return at;
  }();
  return root / path;
}

inline std::string source_text(const std::string& path) {
  std::ifstream file(source_path(path), std::ios::binary);
  CHECK(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace quire::test
