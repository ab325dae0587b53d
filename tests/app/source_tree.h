// Files of the source tree, found from where this header is.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace quire::app {

inline std::filesystem::path source_path(const std::string& path) {
  return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path() / path;
}

inline std::string source_text(const std::string& path) {
  std::ifstream file(source_path(path));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace quire::app
