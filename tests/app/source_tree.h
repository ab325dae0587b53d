// Files of the source tree, found from where this header is.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace quire::app {

inline std::string source_text(const std::string& path) {
  const std::filesystem::path root = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
  std::ifstream file(root / path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace quire::app
